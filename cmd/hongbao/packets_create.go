package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// shapeFlags are the flags that describe a packet, or each packet of a campaign.
type shapeFlags struct {
	request     wire.CreatePacket
	total       int64
	least, most int64
	split       string
	life        time.Duration
}

// createFlags are the flags of "packets create".
type createFlags struct {
	appFlags
	shapeFlags
	opensAt, idempotencyKey string
}

func newPacketsCreateCommand(env environment) *cobra.Command {
	var f createFlags
	cmd := &cobra.Command{
		Use:   "create --sender <user> --total <fen> --shares <n>",
		Short: "Create a packet and wait until it is funded",
		Long: `Create a packet: charge the sender, split the total into shares, open the packet. The
command waits until the charge has an outcome. On a timeout or a broken connection run
it again with the --idempotency-key that it prints: no second packet is created.`,
		Example: "  hongbao packets create --sender alice --total 10000 --shares 10 --split even --greeting 恭喜发财",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.read(); err != nil {
				return &usageError{err}
			}
			return f.run(cmd, env, f.create)
		},
	}
	addAppFlags(cmd, &f.appFlags, time.Minute)
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.opensAt, "opens-at", "", "`time` at which grabs begin, RFC 3339; default: at once")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "",
		"`key` of this request: a repeat with the same key creates no second packet; "+
			"default: a new key")
	for _, name := range []string{"opens-at", "idempotency-key"} {
		complete(cmd, name)
	}
	return cmd
}

func (f *shapeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.request.SenderID, "sender", "", "id of the `user` who is charged (required)")
	flags.Int64Var(&f.total, "total", 0, "total amount in `fen` (required)")
	flags.IntVar(&f.request.ShareCount, "shares", 0, "number of shares, 1 to 1000000 (required)")
	flags.StringVar(&f.split, "split", string(wire.SplitRandom), "split `mode`: "+strings.Join(splits, ", "))
	flags.Int64Var(&f.least, "min", 1, "smallest share in `fen`")
	flags.Int64Var(&f.most, "max", 0, "largest share in `fen`; 0 = no cap")
	flags.StringVar(&f.request.Greeting, "greeting", "", "`text` for the recipients, at most 64 characters")
	flags.DurationVar(&f.life, "expires-in", 24*time.Hour, "`duration` from opening to expiry: whole seconds, 10s to 168h")
	flags.StringSliceVar(&f.request.EligibleUserIDs, "eligible", nil,
		"ids of the `users` who may grab, separated by commas; default: every user")
	flags.BoolVar(&f.request.Tickets, "tickets", false, "require a ticket signed by the app for each grab; not with --eligible")
	flags.StringVar(&f.request.GroupID, "group", "", "`id` of a group of the app, stored with the packet")
	flags.Var(&pairsFlag{&f.request.Metadata}, "metadata", "texts to store with the packet: `name=value`, several separated by commas")
	complete(cmd, "split", splits...)
	for _, name := range []string{"sender", "total", "shares", "min", "max", "greeting", "expires-in", "eligible", "tickets", "group",
		"metadata"} {
		complete(cmd, name)
	}
}

var splits = []string{string(wire.SplitRandom), string(wire.SplitEqual), string(wire.SplitEven), string(wire.SplitNormal)}

// complete completes a flag with values; without values it suppresses file names.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	})
	if err != nil {
		panic("completion of --" + flag + ": " + err.Error())
	}
}

func missingFlag(name string) error { return fmt.Errorf("--%s %w", name, errMissing) }

// read checks what the API cannot distinguish, such as a missing flag from a zero. The API checks the rest.
func (f *createFlags) read() error {
	problems := f.shapeFlags.read()
	if f.opensAt != "" {
		at, err := time.Parse(time.RFC3339, f.opensAt)
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("parse --opens-at %q: write an RFC 3339 time such as 2026-02-17T20:00:00+08:00", f.opensAt))
		}
		f.request.OpensAt = at
	}
	return problems
}

func (f *shapeFlags) read() error {
	var problems error
	if f.request.SenderID == "" {
		problems = errors.Join(problems, missingFlag("sender"))
	}
	if f.total == 0 {
		problems = errors.Join(problems, missingFlag("total"))
	}
	if f.request.ShareCount == 0 {
		problems = errors.Join(problems, missingFlag("shares"))
	}
	// 0 and less would be left out of the request, which means the default.
	if f.life <= 0 || f.life%time.Second != 0 {
		problems = errors.Join(problems, fmt.Errorf("--expires-in %v: write whole seconds, such as 90s", f.life))
	}
	if f.least < 1 || f.most < 0 {
		problems = errors.Join(problems, fmt.Errorf("--min %d or --max %d is too small: write --min 1 or more, --max 0 or more", f.least, f.most))
	}
	f.request.TotalAmount, f.request.MinShare, f.request.MaxShare = money.Fen(f.total), money.Fen(f.least), money.Fen(f.most)
	f.request.Split = wire.Split(f.split)
	f.request.ExpiresInSeconds = int(f.life / time.Second)
	return problems
}

func (f *createFlags) create(ctx context.Context, t *appCommand) error {
	p, err := t.client.CreateAndWait(ctx, f.request, client.Key(f.idempotencyKey))
	if p != nil {
		if shown := t.printPacket(p); shown != nil {
			return shown
		}
	}
	return withKeyIfUnanswered(err)
}

// withKeyIfUnanswered adds the idempotency key to an error without an API response; problemText handles the others.
func withKeyIfUnanswered(err error) error {
	if _, answered := errors.AsType[*client.Problem](err); !answered {
		return withIdempotencyKey(err, err)
	}
	return err
}
