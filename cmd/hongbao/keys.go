package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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

func newKeysCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "keys",
		Short: "Create, list, rotate, approve and revoke the API keys of apps and staff",
		Long: fmt.Sprintf(`Create, list, rotate, approve and revoke the API keys of apps and staff. MySQL
holds only a hash of each token. Every API process follows a change within %v.

For daily use: create, list, rotate, approve and revoke call the API's staff listener
with the key of an administrator (role admin). The audit records every change with its
author and reason, no caller can revoke its own key, and keys that decide about money
need a second person.

For setup and emergencies: direct and ensure write to MySQL without an API key, and the
audit does not record them. Use them for the first two persons (an administrator, and a
person who approves the administrator's keys), for an unattended installation, and when
no administrator is left. token only prints a new token.`, api.DefaultRefresh),
		Example: `  hongbao keys direct create --role admin --owner li-na    # first of all, once
  hongbao keys direct create --role admin --owner wang-wei # approves li-na's keys
  export HONGBAO_ADMIN_KEY=...                             # what it printed
  hongbao keys create --role app --app mall --reason 'new backend'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newKeysCreateCommand(env), newKeysListCommand(env), newKeysRotateCommand(env), newKeysApproveCommand(env),
		newKeysRevokeCommand(env), newKeysDirectCommand(env), newKeysEnsureCommand(env), newKeysTokenCommand(env))
	return group
}

// newKeysDirectCommand returns the commands for an operator with MySQL access and without an administrator's key.
func newKeysDirectCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "direct",
		Short: "Create, list and revoke keys in MySQL, without the API and without audit",
		Long: `Create, list and revoke keys in MySQL without the API: for the first key of an
administrator, and when none is left. The audit does not record these changes, and the
last key of an administrator can be revoked. For daily use run
"hongbao keys create|list|rotate|approve|revoke".`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newDirectCreateCommand(env), newDirectListCommand(env), newDirectRevokeCommand(env))
	return group
}

func newDirectCreateCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a key and print its token, once",
		Long: `Create a key. Its token is printed once to standard output and cannot be read again.
An app may have several keys, so that a new one can be rolled out before the old one is
revoked. Use the same owner name for all keys of a member of staff: approvals compare
owners.`,
		Example: `  hongbao keys direct create --role admin --owner li-na
  hongbao keys direct create --role app --app mall`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdKeysDirectCreate, env)
			if err != nil {
				return err
			}
			cfg := keyConfig{MySQLDSN: c.secret("mysql-dsn"), Role: access.Role(c.text("role")), App: c.text("app"), Owner: c.text("owner")}
			if cfg, err = cfg.complete(); err != nil {
				return &usageError{err}
			}
			return createKey(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addSettings(cmd, cmdKeysDirectCreate)
	return cmd
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

func newKeysEnsureCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ensure",
		Short: "Create the keys of given tokens unless they exist",
		Long: `Create the keys of given tokens unless they exist, and the apps of those with role app.
Repeating it changes nothing. The token holds the role; the owner of a token with role
app is the app's id. A revoked key stays revoked. The command fails when a key exists
with another owner or token.

Use it for unattended installations, such as docker-compose.yml. Otherwise prefer
"hongbao keys direct create", which generates a token that no file holds.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdKeysEnsure, env)
			if err != nil {
				return err
			}
			tokens, err := parseTokens(c.text("keys"))
			if err != nil {
				return &usageError{err}
			}
			return ensureTokens(cmd.Context(), c.secret("mysql-dsn"), tokens, cmd.OutOrStdout())
		},
	}
	addSettings(cmd, cmdKeysEnsure)
	return cmd
}

func newKeysTokenCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Print a new token without storing anything",
		Long: `Print a new token, for configuration files that are written before there is a database.
The token is valid once "hongbao keys ensure" has created its key.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdKeysToken, env)
			if err != nil {
				return err
			}
			token, _ := access.NewToken(access.Role(c.text("role")))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	addSettings(cmd, cmdKeysToken)
	return cmd
}

func newDirectListCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all keys, also revoked ones, without their tokens",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdKeysDirectList, env)
			if err != nil {
				return err
			}
			return listKeys(cmd.Context(), c.secret("mysql-dsn"), cmd.OutOrStdout())
		},
	}
	addSettings(cmd, cmdKeysDirectList)
	return cmd
}

func newDirectRevokeCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke <id>",
		Short: "Revoke a key for good",
		Long: `Revoke a key for good. Give its id from "hongbao keys direct list" (the third part of
hb_role_id_secret), or a whole leaked token. Repeating it changes nothing.`,
		Args: keyID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(cmd, cmdKeysDirectList, env)
			if err != nil {
				return err
			}
			return revokeKey(cmd.Context(), c.secret("mysql-dsn"), idOfKey(args[0]), cmd.OutOrStdout())
		},
	}
	addSettings(cmd, cmdKeysDirectList)
	return cmd
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
