package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hongbao/api"
	"hongbao/internal/access"
)

// keyConfig holds the settings of `hongbao keys direct create`.
type keyConfig struct {
	MySQLDSN Secret
	Role     access.Role
	App      string // of role app
	Owner    string
}

func keysCommand() command {
	return command{
		use:   "keys",
		short: "Create, list, rotate, approve and revoke the API keys of apps and staff",
		long: fmt.Sprintf(`Create, list, rotate, approve and revoke the API keys of apps and staff. MySQL
holds only a hash of each token. Every API process follows a change within %v.

For daily use: create, list, rotate, approve and revoke call the API's staff listener
with the key of an administrator (role admin). The audit records every change with its
author and reason, no caller can revoke its own key, and keys that decide about money
need a second person.

For setup and emergencies: direct and ensure write to MySQL without an API key, and the
audit does not record them. Use them for the first two persons (an administrator, and a
person who approves the administrator's keys), for an unattended installation, and when
no administrator is left. token only prints a new token.`, api.DefaultRefresh),
		example: `  hongbao keys direct create --role admin --owner li-na    # first of all, once
  hongbao keys direct create --role admin --owner wang-wei # approves li-na's keys
  export HONGBAO_ADMIN_KEY=...                             # what it printed
  hongbao keys create --role app --app mall --reason 'new backend'`,
		sub: []command{keysCreate(), keysList(), keysRotate(), keysApprove(), keysRevoke(), keysDirect(), keysEnsure(), keysToken()},
	}
}

// keysDirect has the commands for an operator with MySQL access and without an administrator's key.
func keysDirect() command {
	return command{
		use:   "direct",
		short: "Create, list and revoke keys in MySQL, without the API and without audit",
		long: `Create, list and revoke keys in MySQL without the API: for the first key of an
administrator, and when none is left. The audit does not record these changes, and the
last key of an administrator can be revoked. For daily use run
"hongbao keys create|list|rotate|approve|revoke".`,
		sub: []command{
			{
				use:   "create",
				short: "Create a key and print its token, once",
				long: `Create a key. Its token is printed once to standard output and cannot be read again.
An app may have several keys, so that a new one can be rolled out before the old one is
revoked. Use the same owner name for all keys of a member of staff: approvals compare
owners.`,
				example: `  hongbao keys direct create --role admin --owner li-na
  hongbao keys direct create --role app --app mall`,
				as: local(cmdKeysDirectCreate),
				run: func(ctx context.Context, t *call) error {
					c := t.config
					cfg, err := keyConfig{MySQLDSN: c.secret("mysql-dsn"), Role: access.Role(c.text("role")), App: c.text("app"),
						Owner: c.text("owner")}.complete()
					if err != nil {
						return &usageError{err}
					}
					return createKey(ctx, cfg, t.out, t.notes)
				},
			},
			{
				use: "list", short: "List all keys, also revoked ones, without their tokens", as: local(cmdKeysDirectList),
				run: func(ctx context.Context, t *call) error { return listKeys(ctx, t.config.secret("mysql-dsn"), t.out) },
			},
			{
				use:   "revoke <id>",
				short: "Revoke a key for good",
				long: `Revoke a key for good. Give its id from "hongbao keys direct list" (the third part of
hb_role_id_secret), or a whole leaked token. Repeating it changes nothing.`,
				args: keyID.arg, as: local(cmdKeysDirectList),
				run: func(ctx context.Context, t *call) error {
					return revokeKey(ctx, t.config.secret("mysql-dsn"), idOfKey(t.args[0]), t.out)
				},
			},
		},
	}
}

// complete sets the owner of an app's key and refuses contradictory settings.
func (c keyConfig) complete() (keyConfig, error) {
	switch {
	case c.Role.Staff() && c.App != "":
		return c, fmt.Errorf("%w: --app goes with role app, not %s", errContradiction, c.Role)
	case c.Role.Staff() && c.Owner == "":
		return c, fmt.Errorf("--owner %w with role %s: write the name of a member of staff", errMissing, c.Role)
	case !c.Role.Staff() && c.App == "":
		return c, fmt.Errorf("--app %w with role %s", errMissing, c.Role)
	case c.Owner == "":
		c.Owner = c.App
	}
	return c, nil
}

func keysEnsure() command {
	return command{
		use:   "ensure",
		short: "Create the keys of given tokens unless they exist",
		long: `Create the keys of given tokens unless they exist, and the apps of those with role app.
Repeating it changes nothing. The token holds the role; the owner of a token with role
app is the app's id. A revoked key stays revoked. The command fails when a key exists
with another owner or token.

Use it for unattended installations, such as docker-compose.yml. Otherwise prefer
"hongbao keys direct create", which generates a token that no file holds.`,
		as: local(cmdKeysEnsure),
		run: func(ctx context.Context, t *call) error {
			tokens, err := parseTokens(t.config.text("keys"))
			if err != nil {
				return &usageError{err}
			}
			return ensureTokens(ctx, t.config.secret("mysql-dsn"), tokens, t.out)
		},
	}
}

func keysToken() command {
	return command{
		use:   "token",
		short: "Print a new token without storing anything",
		long: `Print a new token, for configuration files that are written before there is a database.
The token is valid once "hongbao keys ensure" has created its key.`,
		as: local(cmdKeysToken),
		run: func(_ context.Context, t *call) error {
			token, _ := access.NewToken(access.Role(t.config.text("role")))
			_, err := fmt.Fprintln(t.out, token)
			return err
		},
	}
}

// ensuredToken is a token whose key has to exist.
type ensuredToken struct {
	key   access.Key
	token Secret
}

// parseTokens parses owner=token pairs, separated by white space. Its errors name a pair by its position: pairs are secret.
func parseTokens(text string) ([]ensuredToken, error) {
	var out []ensuredToken
	seen := map[string]bool{}
	for i, pair := range strings.Fields(text) {
		owner, token, _ := strings.Cut(pair, "=")
		role, ok := access.RoleOf(token)
		switch {
		case !ok:
			return nil, fmt.Errorf("holds no token in pair %d: write owner=token owner=token", i+1)
		case role == access.RoleApp && !access.ValidAppID(owner), !access.ValidOwner(owner):
			return nil, fmt.Errorf("holds a wrong owner in pair %d: write the app's id, or the name of a member of staff", i+1)
		}
		id, _ := access.ParseToken(token)
		if seen[id] {
			return nil, fmt.Errorf("holds the key of pair %d twice: remove one", i+1)
		}
		seen[id] = true
		k := access.Key{ID: id, Role: role, Owner: owner, SecretHash: access.HashToken(token)}
		if role == access.RoleApp {
			k.AppID = owner
		}
		out = append(out, ensuredToken{key: k, token: Secret{token}})
	}
	if len(out) == 0 {
		return nil, errors.New("holds no token: write owner=token owner=token")
	}
	return out, nil
}
