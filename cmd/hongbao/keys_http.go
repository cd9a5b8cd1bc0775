package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/wire"
)

func keysCreate() command {
	var want wire.CreateKey
	var life time.Duration
	return command{
		use:   "create --role <role> --reason <text>",
		short: "Create a key through the API and print its token, once",
		long: `Create a key through the API, as an administrator. Its token is printed once to standard
output and cannot be read again. An app may have several keys. Use the same owner name
for all keys of a member of staff: approvals compare owners. A key of role finance, or
of role admin for another person, is valid after a second person has approved it
("hongbao keys approve").

When the response is lost, the command names the next step. For the first key of an
administrator run "hongbao keys direct create".`,
		example: `  hongbao keys create --role app --app mall --name checkout --reason 'ticket 4711'
  hongbao keys create --role finance --owner li-na --reason 'new in the team'`,
		as: callerAdmin, writes: true,
		flags: func(flags *pflag.FlagSet) {
			choice(flags, &want.Role, "role", "role of the key: app, finance, ops, auditor or admin (required)", access.Roles)
			appID.flag(flags, &want.AppID, "app", "`app` of the key; only with role app")
			flags.StringVar(&want.Owner, "owner", "", "owner of the key: a member of staff; default with role app: the app's id")
			flags.StringVar(&want.Name, "name", "", "purpose of the key")
			secondsFlag(flags, &life, "expires-in", "let the key expire after this `duration`; 0 = never")
		},
		run: func(ctx context.Context, t *call) error {
			if want.Role == "" {
				return &usageError{missingFlag("role")}
			}
			want.Reason, want.ExpiresInSeconds = t.reason, seconds(life)
			made, err := t.staff.CreateKey(ctx, want, t.key())
			if err != nil {
				return err
			}
			return t.printToken(made.Key, made.Token)
		},
	}
}

func keysRotate() command {
	var want wire.RotateKey
	grace, life := 24*time.Hour, time.Duration(0)
	return command{
		use:   "rotate <id> --reason <text>",
		short: "Replace a key by a new one; the old one stays valid for a grace period",
		long: `Replace a key by a new one of the same role, app, owner and name. The new token is
printed once to standard output. The old key stays valid for --grace. A new key of role
finance, or of role admin for another person, first needs approval ("hongbao keys
approve"): choose a grace period that is long enough.`,
		example: `  hongbao keys rotate k3q5v2c7m4e2 --grace 24h --reason yearly`,
		args:    keyID.arg, as: callerAdmin, writes: true,
		flags: func(flags *pflag.FlagSet) {
			secondsFlag(flags, &grace, "grace", "`duration` for which the old key stays valid: whole seconds, 0s to 720h")
			secondsFlag(flags, &life, "expires-in", "let the new key expire after this `duration`; 0 = never")
		},
		run: func(ctx context.Context, t *call) error {
			want.Reason, want.GraceSeconds, want.ExpiresInSeconds = t.reason, int64(grace/time.Second), seconds(life)
			made, err := t.staff.RotateKey(ctx, idOfKey(t.args[0]), want, t.key())
			if err != nil {
				return err
			}
			if err := t.printToken(made.Key, made.Token); err != nil || t.json {
				return err
			}
			return printf(t.notes, "The old key %s works until %s.\n", made.Replaced.ID, formatTime(*made.Replaced.ExpiresAt))
		},
	}
}

func keysApprove() command {
	return command{
		use:   "approve <id> --reason <text>",
		short: "Approve a key that another person created",
		long: `Approve a key that waits for a second person: a key of role finance, or of role admin
for another person than its creator. The key is valid from then on. --admin-key accepts
the key of another administrator or of finance, but not of the person who created or
rotated the key. Check made_by and owner first (hongbao keys list). To reject a key,
revoke it as an administrator.`,
		example: `  hongbao keys approve k3q5v2c7m4e2 --reason 'li-na has joined, asked her lead'`,
		args:    keyID.arg, as: callerAdmin, writes: true,
		run: func(ctx context.Context, t *call) error {
			k, err := t.staff.ApproveKey(ctx, idOfKey(t.args[0]), t.why(), t.key())
			return t.shown(err, func() error {
				return printf(t.out, "Key %s of role %s for %s, made by %s, is %s.\n", k.ID, k.Role, k.Owner, optionalText(k.MadeBy), k.Status)
			})
		},
	}
}

func keysRevoke() command {
	return command{
		use:   "revoke <id> --reason <text>",
		short: "Revoke a key for good, through the API",
		long: `Revoke a key for good. Give its id from "hongbao keys list" (the third part of
hb_role_id_secret), or a whole leaked token. Repeating it changes nothing. The API
refuses to revoke the calling key and the last administrator key.`,
		args: keyID.arg, as: callerAdmin, writes: true,
		run: func(ctx context.Context, t *call) error {
			k, err := t.staff.RevokeKey(ctx, idOfKey(t.args[0]), t.why(), t.key())
			return t.shown(err, func() error {
				return printf(t.out, "Key %s of role %s for %s is revoked since %s.\n", k.ID, k.Role, k.Owner, formatTime(*k.RevokedAt))
			})
		},
	}
}

func keysList() command {
	var filter wire.KeyFilter
	return command{
		use:   "list",
		short: "List the keys, ended ones too; tokens are not known",
		long: `List the keys through the API, newest first, ended ones too. Any key of the staff
may. --json prints one key a line.`,
		as: callerAdmin,
		flags: func(flags *pflag.FlagSet) {
			choice(flags, &filter.Role, "role", "keys of this role only", access.Roles)
			appID.flag(flags, &filter.AppID, "app", "keys of this `app` only")
		},
		run: func(ctx context.Context, t *call) error {
			columns := []any{"key", "role", "owner", "name", "status", "created", "last used", "expires", "revoked", "replaced by", "made by",
				"approved by"}
			return printList(t, everyLine, func(p client.Page) (*wire.List[wire.APIKey], error) { return t.staff.ListKeys(ctx, filter, p) },
				columns, func(k *wire.APIKey) []any {
					return []any{k.ID, k.Role, k.Owner, optionalText(k.Name), k.Status, formatTime(k.CreatedAt), formatOptionalTime(k.LastUsedAt),
						formatOptionalTime(k.ExpiresAt), formatOptionalTime(k.RevokedAt), optionalText(k.ReplacedBy), optionalText(k.MadeBy),
						optionalText(k.ApprovedBy)}
				})
		},
	}
}

// idOfKey returns the id in a token, and any other text as it is. Messages and addresses must not hold a token.
func idOfKey(text string) string {
	if id, ok := access.ParseToken(text); ok {
		return id
	}
	return text
}

// printToken prints the token of a new key alone to out, for scripts, and remarks to notes. A nil token means that an earlier
// response held it.
func (t *call) printToken(k wire.APIKey, token *string) error {
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
