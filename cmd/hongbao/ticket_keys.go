package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"hongbao/api"
	"hongbao/client"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

func ticketKeysCommand() command {
	return command{
		use:   "ticket-keys",
		short: "Add, list and revoke the keys with which apps sign tickets",
		long: fmt.Sprintf(`Add, list and revoke the keys with which apps sign tickets, through the API with the key
of an administrator (role admin). The audit records every change. Only public keys are
stored; the private key stays with the app. Every API process applies a change within
%v.`, api.DefaultRefresh),
		example: `  openssl genpkey -algorithm ed25519 -out ticket.pem      # by the app, once
  openssl pkey -in ticket.pem -pubout | hongbao ticket-keys add --app mall --reason 'campaigns'`,
		sub: []command{ticketKeysAdd(), ticketKeysList(), ticketKeysRevoke()},
	}
}

func ticketKeysAdd() command {
	var want wire.AddTicketKey
	file := "-"
	return command{
		use:   "add --app <app> --reason <text>",
		short: "Add the public key with which an app signs tickets",
		long: `Add the public Ed25519 key with which an app signs tickets, in the PEM form of
"openssl pkey -pubout". The command prints its id to standard output; tickets carry it as
kid in their header. An app may have several keys, so that a new one is known before the
old one is revoked. A revoked public key cannot be added again.`,
		example: `  openssl pkey -in ticket.pem -pubout | hongbao ticket-keys add --app mall --reason 'yearly'
  hongbao ticket-keys add --app mall --file ticket.pub --name campaigns --reason 'ticket 4711'`,
		as: callerAdmin, writes: true,
		flags: func(flags *pflag.FlagSet) {
			appID.flag(flags, &want.AppID, "app", "`app` that holds the private key (required)")
			flags.StringVar(&file, "file", file, "file with the public key; - = standard input")
			flags.StringVar(&want.Name, "name", "", "purpose of the key")
		},
		run: func(ctx context.Context, t *call) (err error) {
			if want.AppID == "" {
				return &usageError{missingFlag("app")}
			}
			if want.PublicKey, err = readTicketKey(file, t.in); err != nil {
				return err
			}
			want.Reason = t.reason
			k, err := t.staff.AddTicketKey(ctx, want, t.key())
			return t.shown(err, func() error {
				if err := printf(t.out, "%s\n", k.ID); err != nil {
					return err
				}
				return printf(t.notes, "Tickets of %s with this kid in their header are accepted.\n", k.AppID)
			})
		},
	}
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

func ticketKeysList() command {
	var filter wire.TicketKeyFilter
	return command{
		use:   "list",
		short: "List the ticket keys of apps, also revoked ones",
		long: `List the ticket keys of apps through the API, newest first, also revoked ones, with any
staff key. --json prints one key per line.`,
		as:    callerAdmin,
		flags: func(flags *pflag.FlagSet) { appID.flag(flags, &filter.AppID, "app", "only keys of this `app`") },
		run: func(ctx context.Context, t *call) error {
			return printList(t, everyLine, func(p client.Page) (*wire.List[wire.TicketKey], error) {
				return t.staff.ListTicketKeys(ctx, filter, p)
			}, []any{"kid", "app", "name", "status", "added", "revoked"}, func(k *wire.TicketKey) []any {
				return []any{k.ID, k.AppID, optionalText(k.Name), k.Status, formatTime(k.CreatedAt), formatOptionalTime(k.RevokedAt)}
			})
		},
	}
}

func ticketKeysRevoke() command {
	return command{
		use:   "revoke <kid> --reason <text>",
		short: "Revoke a ticket key of an app for good",
		long: `Revoke a ticket key of an app for good, and with it all its tickets. Claims that were won
with them remain. Repeating it changes nothing.`,
		args: ticketKeyID.arg, as: callerAdmin, writes: true,
		run: func(ctx context.Context, t *call) error {
			k, err := t.staff.RevokeTicketKey(ctx, t.args[0], t.why(), t.key())
			return t.shown(err, func() error {
				return printf(t.out, "Key %s of %s is revoked since %s; its tickets are refused.\n", k.ID, k.AppID, formatTime(*k.RevokedAt))
			})
		},
	}
}
