package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/wire"
)

func newKeysCreateCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	var want wire.CreateKey
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "create --role <role> --reason <text>",
		Short: "Create a key through the API and print its token, once",
		Long: `Create a key through the API, as an administrator. Its token is printed once to standard
output and cannot be read again. An app may have several keys. Use the same owner name
for all keys of a member of staff: approvals compare owners. A key of role finance, or
of role admin for another person, is valid after a second person has approved it
("hongbao keys approve").

When the response is lost, the command names the next step. For the first key of an
administrator run "hongbao keys direct create".`,
		Example: `  hongbao keys create --role app --app mall --name checkout --reason 'ticket 4711'
  hongbao keys create --role finance --owner li-na --reason 'new in the team'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			want.Reason = f.reason
			expires, err := wholeSeconds("expires-in", life)
			if err != nil {
				return err
			}
			want.ExpiresInSeconds = wire.NonZero(expires)
			if want.Role == "" {
				return &usageError{missingFlag("role")}
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				made, err := t.staff.CreateKey(ctx, want, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printToken(made.Key, made.Token)
			})
		},
	}
	f.add(cmd, true)
	flags := cmd.Flags()
	flags.StringVar((*string)(&want.Role), "role", "", "role of the key: app, finance, ops, auditor or admin (required)")
	appID.flag(cmd, &want.AppID, "app", "`app` of the key; only with role app")
	flags.StringVar(&want.Owner, "owner", "", "owner of the key: a member of staff; default with role app: the app's id")
	flags.StringVar(&want.Name, "name", "", "purpose of the key")
	flags.DurationVar(&life, "expires-in", 0, "let the key expire after this `duration`; 0 = never")
	complete(cmd, "role", roleNames()...)
	return cmd
}

func newKeysRotateCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	var want wire.RotateKey
	var grace, life time.Duration
	cmd := &cobra.Command{
		Use:   "rotate <id> --reason <text>",
		Short: "Replace a key by a new one; the old one stays valid for a grace period",
		Long: `Replace a key by a new one of the same role, app, owner and name. The new token is
printed once to standard output. The old key stays valid for --grace. A new key of role
finance, or of role admin for another person, first needs approval ("hongbao keys
approve"): choose a grace period that is long enough.`,
		Example: `  hongbao keys rotate k3q5v2c7m4e2 --grace 24h --reason yearly`,
		Args:    keyID.arg,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			want.Reason = f.reason
			if want.GraceSeconds, err = wholeSeconds("grace", grace); err != nil {
				return err
			}
			expires, err := wholeSeconds("expires-in", life)
			if err != nil {
				return err
			}
			want.ExpiresInSeconds = wire.NonZero(expires)
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				made, err := t.staff.RotateKey(ctx, idOfKey(args[0]), want, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if err := t.printToken(made.Key, made.Token); err != nil || t.json {
					return err
				}
				return printf(t.notes, "The old key %s works until %s.\n", made.Replaced.ID, formatTime(*made.Replaced.ExpiresAt))
			})
		},
	}
	f.add(cmd, true)
	cmd.Flags().DurationVar(&grace, "grace", 24*time.Hour, "`duration` for which the old key stays valid: whole seconds, 0s to 720h")
	cmd.Flags().DurationVar(&life, "expires-in", 0, "let the new key expire after this `duration`; 0 = never")
	return cmd
}

func newKeysApproveCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	cmd := &cobra.Command{
		Use:   "approve <id> --reason <text>",
		Short: "Approve a key that another person created",
		Long: `Approve a key that waits for a second person: a key of role finance, or of role admin
for another person than its creator. The key is valid from then on. --admin-key accepts
the key of another administrator or of finance, but not of the person who created or
rotated the key. Check made_by and owner first (hongbao keys list). To reject a key,
revoke it as an administrator.`,
		Example: `  hongbao keys approve k3q5v2c7m4e2 --reason 'li-na has joined, asked her lead'`,
		Args:    keyID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				k, err := t.staff.ApproveKey(ctx, idOfKey(args[0]), f.decision(), client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				return printf(t.out, "Key %s of role %s for %s, made by %s, is %s.\n", k.ID, k.Role, k.Owner, optionalText(k.MadeBy), k.Status)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

func newKeysRevokeCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	cmd := &cobra.Command{
		Use:   "revoke <id> --reason <text>",
		Short: "Revoke a key for good, through the API",
		Long: `Revoke a key for good. Give its id from "hongbao keys list" (the third part of
hb_role_id_secret), or a whole leaked token. Repeating it changes nothing. The API
refuses to revoke the calling key and the last administrator key.`,
		Args: keyID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				k, err := t.staff.RevokeKey(ctx, idOfKey(args[0]), wire.Reason{Reason: f.reason}, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				return printf(t.out, "Key %s of role %s for %s is revoked since %s.\n", k.ID, k.Role, k.Owner, formatTime(*k.RevokedAt))
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

func newKeysListCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	var filter client.KeyFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys, ended ones too; tokens are not known",
		Long: `List the keys through the API, newest first, ended ones too. Any key of the staff
may. --json prints one key a line.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.listKeys(ctx, filter) })
		},
	}
	f.add(cmd, false)
	cmd.Flags().StringVar(&filter.Role, "role", "", "keys of this role only")
	appID.flag(cmd, &filter.AppID, "app", "keys of this `app` only")
	complete(cmd, "role", roleNames()...)
	return cmd
}

// idOfKey returns the id in a token, and any other text as it is. Messages and addresses must not hold a token.
func idOfKey(text string) string {
	if id, ok := access.ParseToken(text); ok {
		return id
	}
	return text
}

func (t *staffCommand) listKeys(ctx context.Context, filter client.KeyFilter) error {
	return printLines(ctx, t.appCommand, func(ctx context.Context, p client.Page) (*wire.List[wire.APIKey], error) {
		return t.staff.ListKeys(ctx, filter, p)
	}, []any{"key", "role", "owner", "name", "status", "created", "last used", "expires", "revoked", "replaced by", "made by", "approved by"},
		func(k *wire.APIKey) []any {
			return []any{k.ID, k.Role, k.Owner, optionalText(k.Name), k.Status, formatTime(k.CreatedAt), formatOptionalTime(k.LastUsedAt),
				formatOptionalTime(k.ExpiresAt), formatOptionalTime(k.RevokedAt), optionalText(k.ReplacedBy), optionalText(k.MadeBy),
				optionalText(k.ApprovedBy)}
		})
}

// printToken prints the token of a new key alone to out, for scripts, and remarks to notes. A nil token means that an earlier
// response held it.
func (t *staffCommand) printToken(k wire.APIKey, token *string) error {
	if t.json {
		if err := t.printAnswer(); err != nil {
			return err
		}
	}
	if token == nil {
		return fmt.Errorf("key %s exists already for this idempotency key, and only the first response held its token; if that response is "+
			"lost, run hongbao keys rotate %s --grace 0s --reason <text>", k.ID, k.ID)
	}
	if t.json {
		return nil
	}
	if err := printf(t.out, "%s\n", *token); err != nil {
		return fmt.Errorf("key %s is valid, but its token could not be printed; revoke it: %w", k.ID, err)
	}
	if err := printf(t.notes, "Key %s of role %s for %s. The token above is printed only once.\n", k.ID, k.Role, k.Owner); err != nil ||
		k.Status != wire.KeyStatus(access.KeyWaiting) {
		return err
	}
	return printf(t.notes, "It is not valid until another administrator or finance approves it: hongbao keys approve %s "+
		"--reason <text>\n", k.ID)
}
