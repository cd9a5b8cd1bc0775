package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hongbao/api"
	"hongbao/client"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

func newTicketKeysCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "ticket-keys",
		Short: "Add, list and revoke the keys with which apps sign tickets",
		Long: fmt.Sprintf(`Add, list and revoke the keys with which apps sign tickets, through the API with the key
of an administrator (role admin). The audit records every change. Only public keys are
stored; the private key stays with the app. Every API process applies a change within
%v.`, api.DefaultRefresh),
		Example: `  openssl genpkey -algorithm ed25519 -out ticket.pem      # by the app, once
  openssl pkey -in ticket.pem -pubout | hongbao ticket-keys add --app mall --reason 'campaigns'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newTicketKeysAddCommand(env), newTicketKeysListCommand(env), newTicketKeysRevokeCommand(env))
	return group
}

func newTicketKeysAddCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	var want wire.AddTicketKey
	file := "-"
	cmd := &cobra.Command{
		Use:   "add --app <app> --reason <text>",
		Short: "Add the public key with which an app signs tickets",
		Long: `Add the public Ed25519 key with which an app signs tickets, in the PEM form of
"openssl pkey -pubout". The command prints its id to standard output; tickets carry it as
kid in their header. An app may have several keys, so that a new one is known before the
old one is revoked. A revoked public key cannot be added again.`,
		Example: `  openssl pkey -in ticket.pem -pubout | hongbao ticket-keys add --app mall --reason 'yearly'
  hongbao ticket-keys add --app mall --file ticket.pub --name campaigns --reason 'ticket 4711'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			want.Reason = f.reason
			if want.AppID == "" {
				return &usageError{missingFlag("app")}
			}
			if want.PublicKey, err = readTicketKey(file, cmd.InOrStdin()); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				k, err := t.staff.AddTicketKey(ctx, want, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				if err := printf(t.out, "%s\n", k.ID); err != nil {
					return err
				}
				return printf(t.notes, "Tickets of %s with this kid in their header are accepted.\n", k.AppID)
			})
		},
	}
	f.add(cmd, true)
	flags := cmd.Flags()
	appID.flag(cmd, &want.AppID, "app", "`app` that holds the private key (required)")
	flags.StringVar(&file, "file", file, "file with the public key; - = standard input")
	flags.StringVar(&want.Name, "name", "", "purpose of the key")
	return cmd
}

// readTicketKey reads a public key. It refuses other content, which may be the private key by mistake.
func readTicketKey(file string, stdin io.Reader) (string, error) {
	in := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer opened.Close()
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, ticket.MaxPEM+1))
	if err != nil {
		return "", fmt.Errorf("read the public key: %w", err)
	}
	if _, err := ticket.ParseKey(string(text)); err != nil {
		return "", &usageError{fmt.Errorf("%s: %w; create one with openssl pkey -in ticket.pem -pubout", file, ticket.ErrKey)}
	}
	return string(text), nil
}

func newTicketKeysListCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	var filter client.TicketKeyFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the ticket keys of apps, also revoked ones",
		Long: `List the ticket keys of apps through the API, newest first, also revoked ones, with any
staff key. --json prints one key per line.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.listTicketKeys(ctx, filter) })
		},
	}
	f.add(cmd, false)
	appID.flag(cmd, &filter.AppID, "app", "only keys of this `app`")
	return cmd
}

func (t *staffCommand) listTicketKeys(ctx context.Context, filter client.TicketKeyFilter) error {
	return printLines(ctx, t.appCommand, func(ctx context.Context, p client.Page) (*wire.List[wire.TicketKey], error) {
		return t.staff.ListTicketKeys(ctx, filter, p)
	}, []any{"kid", "app", "name", "status", "added", "revoked"}, func(k *wire.TicketKey) []any {
		return []any{k.ID, k.AppID, optionalText(k.Name), k.Status, formatTime(k.CreatedAt), formatOptionalTime(k.RevokedAt)}
	})
}

func newTicketKeysRevokeCommand(env environment) *cobra.Command {
	f := staffFlags{command: cmdKeys, key: "admin-key"}
	cmd := &cobra.Command{
		Use:   "revoke <kid> --reason <text>",
		Short: "Revoke a ticket key of an app for good",
		Long: `Revoke a ticket key of an app for good, and with it all its tickets. Claims that were won
with them remain. Repeating it changes nothing.`,
		Args: ticketKeyID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				k, err := t.staff.RevokeTicketKey(ctx, args[0], wire.Reason{Reason: f.reason}, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				return printf(t.out, "Key %s of %s is revoked since %s; its tickets are refused.\n", k.ID, k.AppID, formatTime(*k.RevokedAt))
			})
		},
	}
	f.add(cmd, true)
	return cmd
}
