package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hongbao/api"
	"hongbao/internal/access"
)

// keyConfig is what `hongbao keys direct create` is told.
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

There are two ways. create, list, rotate, approve and revoke ask the API, on its staff
listener and with the key of an administrator (role admin): every change goes into
the audit with who and why, nobody can lock himself out, and nobody makes a key
alone with which money is decided about. This is the way for every day.

direct, ensure and token need no key: direct and ensure write to MySQL, and what
they do is in no audit. They are for the first two persons, an administrator and
one who approves the keys that the administrator makes, for an installation that is
set up without a person, and for when no administrator is left.`, api.DefaultRefresh),
		Example: `  hongbao keys direct create --role admin --owner li-na    # first of all, once
  hongbao keys direct create --role admin --owner wang-wei # who approves her keys
  export HONGBAO_ADMIN_KEY=...                             # what it printed
  hongbao keys create --role app --app mall --reason 'new backend'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newKeysCreateCommand(env), newKeysListCommand(env), newKeysRotateCommand(env), newKeysApproveCommand(env),
		newKeysRevokeCommand(env), newKeysDirectCommand(env), newKeysEnsureCommand(env), newKeysTokenCommand(env))
	return group
}

// newKeysDirectCommand is for whoever has MySQL and no key of an administrator.
func newKeysDirectCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "direct",
		Short: "Create, list and revoke keys in MySQL, without the API and without audit",
		Long: `Create, list and revoke keys in MySQL, without the API: for the first key of an
administrator, and for when none is left. What is done here is in no audit, and
nothing stops it from revoking the last key of an administrator. For every day
there are "hongbao keys create|list|rotate|approve|revoke".`,
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
		Long: `Create a key. Its token goes to standard output, once: nobody can read it again.
An app may have several keys, so that a new one can be rolled out before the old
one is revoked. A person of the staff has one owner name on all his keys: where a
second person has to approve, owners are compared.`,
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

// complete fills in the owner of an app's key and refuses what does not go together.
func (c keyConfig) complete() (keyConfig, error) {
	switch {
	case c.Role.Staff() && c.App != "":
		return c, fmt.Errorf("%w: --app goes with role app, not %s", errContradiction, c.Role)
	case c.Role.Staff() && c.Owner == "":
		return c, fmt.Errorf("--owner %w with role %s: whose key is it?", errMissing, c.Role)
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
		Short: "Make given tokens work",
		Long: `Make given tokens work: create their keys unless they exist, and the apps of
those with role app. It may be run again and again. The role stands in the token; the
owner of a token with role app is the app's id. A key that was revoked stays
revoked. It fails when a key exists with another owner or token.

For installations that are set up without a person, such as docker-compose.yml.
Where a person sets up, "hongbao keys direct create" is better: it makes a token that
nobody has seen.`,
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
		Long: `Print a new token. It opens nothing until "hongbao keys ensure" is told of it. For
files of settings that are written before there is a database.`,
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
		Short: "List the keys, revoked ones too; tokens are not known",
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
		Short: "End a key for ever",
		Long: `End a key for ever. The id is that of "hongbao keys direct list", the third part of
hb_role_id_secret; a whole token, found where it should not be, does too. Revoking
a key again changes nothing.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(cmd, cmdKeysDirectList, env)
			if err != nil {
				return err
			}
			id := args[0]
			if part, ok := access.ParseToken(id); ok {
				id = part // a token is not to be repeated in messages
			}
			return revokeKey(cmd.Context(), c.secret("mysql-dsn"), id, cmd.OutOrStdout())
		},
	}
	addSettings(cmd, cmdKeysDirectList)
	return cmd
}

// ensuredToken is a token that shall work.
type ensuredToken struct {
	key   access.Key
	token Secret
}

// parseTokens reads owner=token pairs, separated by white space. Its errors
// count the pairs and never show them.
func parseTokens(text string) ([]ensuredToken, error) {
	var out []ensuredToken
	seen := map[string]bool{}
	for i, pair := range strings.Fields(text) {
		owner, token, _ := strings.Cut(pair, "=")
		role, ok := access.RoleOf(token)
		switch {
		case !ok:
			return nil, fmt.Errorf("holds no token as number %d; want owner=token", i+1)
		case role == access.RoleApp && !access.ValidAppID(owner), !access.ValidOwner(owner):
			return nil, fmt.Errorf("holds a wrong owner as number %d", i+1)
		}
		id, _ := access.ParseToken(token)
		if seen[id] {
			return nil, fmt.Errorf("holds the key of number %d twice", i+1)
		}
		seen[id] = true
		k := access.Key{ID: id, Role: role, Owner: owner, SecretHash: access.HashToken(token)}
		if role == access.RoleApp {
			k.AppID = owner
		}
		out = append(out, ensuredToken{key: k, token: Secret{token}})
	}
	if len(out) == 0 {
		return nil, errors.New("holds no owner=token")
	}
	return out, nil
}
