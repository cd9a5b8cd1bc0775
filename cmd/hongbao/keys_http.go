package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"hongbao/access"
	"hongbao/client"
)

// clerk is one keys command at work: whom it asks and how it tells.
type clerk struct {
	*teller
	staff *client.Staff
	notes io.Writer // what belongs to a token, which alone goes to out
}

// keysFlags are the flags that the keys commands have besides their settings.
type keysFlags struct {
	json           bool
	timeout        time.Duration
	reason         string // of those that change something
	idempotencyKey string
}

func (f *keysFlags) add(cmd *cobra.Command, writes bool) {
	addSettings(cmd, cmdKeys)
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print what the API said instead of tables")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "give up after this `time`; 0 = never")
	if !writes {
		return
	}
	flags.StringVar(&f.reason, "reason", "", "why, for the audit (required)")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "names this wish; the same `key` does nothing a second time; empty = a new one")
	complete(cmd, "reason")
	complete(cmd, "idempotency-key")
}

// run reads the settings, makes the client and does the work within the timeout.
func (f *keysFlags) run(cmd *cobra.Command, env environment, work func(context.Context, *clerk) error) error {
	c, err := readConfig(cmd, cmdKeys, env)
	if err != nil {
		return err
	}
	if cmd.Flags().Lookup("reason") != nil && f.reason == "" {
		return &usageError{missingFlag("reason")}
	}
	if f.timeout < 0 {
		return &usageError{errors.New("--timeout is below zero")}
	}
	staff, err := client.NewStaff(c.text("staff-url"), c.secret("admin-key").Reveal(), client.WithUserAgent("hongbao-cli/"+version))
	if err != nil {
		return &usageError{err}
	}
	defer staff.Close()
	ctx := cmd.Context()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	t := &clerk{teller: &teller{out: cmd.OutOrStdout(), json: f.json}, staff: staff, notes: cmd.ErrOrStderr()}
	return t.refused(unanswered(work(ctx, t)))
}

// unanswered adds to an error what can be done when it is not known what has happened.
func unanswered(err error) error {
	_, said := errors.AsType[*client.Problem](err)
	call, called := errors.AsType[*client.CallError](err)
	if called && call.IdempotencyKey != "" && !said {
		return fmt.Errorf("%w\nit is not known whether that was done: run it again with --idempotency-key %s", err, call.IdempotencyKey)
	}
	return err
}

// wholeSeconds turns a flag into seconds.
func wholeSeconds(flag string, d time.Duration) (int64, error) {
	if d < 0 || d%time.Second != 0 {
		return 0, &usageError{fmt.Errorf("--%s %v is not a number of whole seconds", flag, d)}
	}
	return int64(d / time.Second), nil
}

func newKeysCreateCommand(env environment) *cobra.Command {
	var f keysFlags
	var want client.CreateKeyRequest
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "create --role <role> --reason <text>",
		Short: "Create a key through the API and print its token, once",
		Long: `Create a key through the API, as an administrator. Its token goes to standard
output, once: nobody can read it again. An app may have several keys. A person of
the staff has one owner name on all his keys: where a second person has to
approve, owners are compared.

Exit code: 0 made and printed; 1 refused, or the token got lost on its way, and
then it says how to go on; 2 wrong arguments. For the first key of an
administrator: "hongbao keys direct create".`,
		Example: `  hongbao keys create --role app --app mall --name checkout --reason 'ticket 4711'
  hongbao keys create --role finance --owner li-na --reason 'new in the team'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			want.Reason, want.IdempotencyKey = f.reason, f.idempotencyKey
			if want.ExpiresInSeconds, err = wholeSeconds("expires-in", life); err != nil {
				return err
			}
			if want.Role == "" {
				return &usageError{missingFlag("role")}
			}
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
				made, err := t.staff.CreateKey(ctx, want)
				if err != nil {
					return err
				}
				return t.token(made.Key, made.Token, made.Raw)
			})
		},
	}
	f.add(cmd, true)
	flags := cmd.Flags()
	flags.StringVar(&want.Role, "role", "", "app, finance, ops, auditor or admin (required)")
	flags.StringVar(&want.AppID, "app", "", "the app whose key it is; with role app only")
	flags.StringVar(&want.Owner, "owner", "", "who gets the key: a person of the staff; empty with role app = the app's id")
	flags.StringVar(&want.Name, "name", "", "what it is for")
	flags.DurationVar(&life, "expires-in", 0, "end it by itself after this `time`; 0 = never")
	complete(cmd, "role", roleNames()...)
	return cmd
}

func newKeysRotateCommand(env environment) *cobra.Command {
	var f keysFlags
	var want client.RotateKeyRequest
	var grace, life time.Duration
	cmd := &cobra.Command{
		Use:   "rotate <id> --reason <text>",
		Short: "Replace a key by a new one; the old one works for a grace time",
		Long: `Replace a key by a new one of the same role, app, owner and name. The token of the
new one goes to standard output, once. The old one works on for the grace and is
refused then. Exit codes as of "hongbao keys create".`,
		Example: `  hongbao keys rotate k3q5v2c7m4e2 --grace 24h --reason yearly`,
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			want.Reason, want.IdempotencyKey = f.reason, f.idempotencyKey
			if want.GraceSeconds, err = wholeSeconds("grace", grace); err != nil {
				return err
			}
			if want.ExpiresInSeconds, err = wholeSeconds("expires-in", life); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
				made, err := t.staff.RotateKey(ctx, keyID(args[0]), want)
				if err != nil {
					return err
				}
				if err := t.token(made.Key, made.Token, made.Raw); err != nil || t.json {
					return err
				}
				return printf(t.notes, "The old key %s works until %s.\n", made.Replaced.ID, when(*made.Replaced.ExpiresAt))
			})
		},
	}
	f.add(cmd, true)
	cmd.Flags().DurationVar(&grace, "grace", 24*time.Hour, "for how long the old key works on: whole seconds, 0s to 720h")
	cmd.Flags().DurationVar(&life, "expires-in", 0, "end the new key by itself after this `time`; 0 = never")
	return cmd
}

func newKeysRevokeCommand(env environment) *cobra.Command {
	var f keysFlags
	cmd := &cobra.Command{
		Use:   "revoke <id> --reason <text>",
		Short: "End a key for ever, through the API",
		Long: `End a key for ever. The id is that of "hongbao keys list", the third part of
hb_role_id_secret; a whole token, found where it should not be, does too. Revoking
a key again changes nothing. Refused are the key that asks, and the last one that
may administer keys.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
				k, err := t.staff.RevokeKey(ctx, keyID(args[0]), client.RevokeKeyRequest{IdempotencyKey: f.idempotencyKey, Reason: f.reason})
				if err != nil {
					return err
				}
				if t.json {
					return t.raw(k.Raw)
				}
				return printf(t.out, "Key %s of role %s for %s is revoked since %s.\n", k.ID, k.Role, k.Owner, when(*k.RevokedAt))
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

func newKeysListCommand(env environment) *cobra.Command {
	var f keysFlags
	var filter client.KeyFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys, ended ones too; tokens are not known",
		Long: `List the keys through the API, newest first, ended ones too. Any key of the staff
may. --json prints one key a line.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error { return t.list(ctx, filter) })
		},
	}
	f.add(cmd, false)
	cmd.Flags().StringVar(&filter.Role, "role", "", "keys of this role only")
	cmd.Flags().StringVar(&filter.AppID, "app", "", "keys of this app only")
	complete(cmd, "role", roleNames()...)
	return cmd
}

// keyID takes an id, or the token it stands in, which is not to be repeated in
// messages or addresses.
func keyID(text string) string {
	if id, ok := access.ParseToken(text); ok {
		return id
	}
	return text
}

func (t *clerk) list(ctx context.Context, filter client.KeyFilter) error {
	show := newTable(t.out)
	show.AppendHeader(table.Row{"key", "role", "owner", "name", "status", "created", "last used", "expires", "revoked", "replaced by"})
	for k, err := range t.staff.Keys(ctx, filter) {
		if err != nil {
			return err
		}
		if t.json {
			if err := t.raw(k.Raw); err != nil {
				return err
			}
			continue
		}
		show.AppendRow(table.Row{k.ID, k.Role, k.Owner, orNone(k.Name), k.Status, when(k.CreatedAt), whenever(k.LastUsedAt), whenever(k.ExpiresAt),
			whenever(k.RevokedAt), orNone(k.ReplacedBy)})
	}
	if !t.json {
		show.Render()
	}
	return nil
}

// token prints the token of a new key alone to out, for scripts, and what belongs
// to it to notes. Without a token the answer that had it got lost.
func (t *clerk) token(k client.APIKey, token *string, raw []byte) error {
	if t.json {
		if err := t.raw(raw); err != nil {
			return err
		}
	}
	if token == nil {
		return fmt.Errorf("key %s was made before under this idempotency key, and its token was told to that request only; if that answer got lost: "+
			"hongbao keys rotate %s --grace 0s", k.ID, k.ID)
	}
	if t.json {
		return nil
	}
	if err := printf(t.out, "%s\n", *token); err != nil {
		return fmt.Errorf("key %s works, but its token could not be printed; revoke it: %w", k.ID, err)
	}
	return printf(t.notes, "Key %s of role %s for %s. The token above is shown this once.\n", k.ID, k.Role, k.Owner)
}

func orNone(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func whenever(at *time.Time) string {
	if at == nil {
		return ""
	}
	return when(*at)
}
