package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

// shapeFlags are the flags that describe a packet, or each packet of a campaign.
type shapeFlags struct {
	request wire.CreatePacket
	paidBy  wire.FundingSource
	life    time.Duration
}

func packetsCreate() command {
	var shape shapeFlags
	var key string
	return command{
		use:   "create --sender <user> --total <fen> --shares <n>",
		short: "Create a packet and wait until it is funded",
		long: `Create a packet: charge the sender, split the total into shares, open the packet. The
command waits until the charge has an outcome. On a timeout or a broken connection run
it again with the --idempotency-key that it prints: no second packet is created.`,
		example: "  hongbao packets create --sender alice --total 10000 --shares 10 --split even --greeting 恭喜发财",
		as:      callerApp,
		flags: func(flags *pflag.FlagSet) {
			shape.add(flags)
			timeFlag(flags, &shape.request.OpensAt, "opens-at", "`time` at which grabs begin, RFC 3339; default: at once")
			flags.StringVar(&key, "idempotency-key", "",
				"`key` of this request: a repeat with the same key creates no second packet; default: a new key")
		},
		run: func(ctx context.Context, t *call) error {
			if err := shape.read(); err != nil {
				return &usageError{err}
			}
			p, err := t.app.CreateAndWait(ctx, shape.request, client.Key(key))
			if p != nil {
				if shown := t.printPacket(p); shown != nil {
					return shown
				}
			}
			return err
		},
	}
}

func (f *shapeFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.request.SenderID, "sender", "", "id of the `user` who sends the packet, and is charged for it (required)")
	f.paidBy = wire.FundingSender
	choice(flags, &f.paidBy, "paid-by", "who pays; merchant is the app's balance: ",
		[]wire.FundingSource{wire.FundingSender, wire.FundingMerchant})
	flags.Int64Var((*int64)(&f.request.TotalAmount), "total", 0, "total amount in `fen` (required)")
	flags.IntVar(&f.request.ShareCount, "shares", 0, "number of shares, 1 to 1000000 (required)")
	f.request.Split = wire.SplitRandom
	choice(flags, &f.request.Split, "split", "split `mode`: ",
		[]wire.Split{wire.SplitRandom, wire.SplitEqual, wire.SplitEven, wire.SplitNormal})
	flags.Int64Var((*int64)(&f.request.MinShare), "min", 1, "smallest share in `fen`")
	flags.Int64Var((*int64)(&f.request.MaxShare), "max", 0, "largest share in `fen`; 0 = no cap")
	flags.StringVar(&f.request.Greeting, "greeting", "", "`text` for the recipients, at most 64 characters")
	f.life = 24 * time.Hour
	secondsFlag(flags, &f.life, "expires-in", "`duration` from opening to expiry: whole seconds, 10s to 168h")
	flags.StringSliceVar(&f.request.EligibleUserIDs, "eligible", nil,
		"ids of the `users` who may grab, separated by commas; default: every user")
	flags.BoolVar(&f.request.Tickets, "tickets", false, "require a ticket signed by the app for each grab; not with --eligible")
	flags.StringVar(&f.request.GroupID, "group", "", "`id` of a group of the app, stored with the packet")
	pairsFlag(flags, &f.request.Metadata, "metadata", "texts to store with the packet: `name=value`, several separated by commas")
}

func missingFlag(name string) error { return fmt.Errorf("--%s %w", name, errMissing) }

// read checks what the API cannot distinguish, such as a missing flag from a zero. The API checks the rest.
func (f *shapeFlags) read() error {
	var problems error
	if f.request.SenderID == "" {
		problems = errors.Join(problems, missingFlag("sender"))
	}
	if f.request.TotalAmount == 0 {
		problems = errors.Join(problems, missingFlag("total"))
	}
	if f.request.ShareCount == 0 {
		problems = errors.Join(problems, missingFlag("shares"))
	}
	if f.life == 0 { // would be left out of the request, which means the default
		problems = errors.Join(problems, errors.New("--expires-in 0s: write 10s or more"))
	}
	if least, most := f.request.MinShare, f.request.MaxShare; least < 1 || most < 0 {
		problems = errors.Join(problems, fmt.Errorf("--min %d or --max %d is too small: write --min 1 or more, --max 0 or more", least, most))
	}
	f.request.ExpiresInSeconds = int(f.life / time.Second)
	if f.paidBy != wire.FundingSender {
		f.request.Funding = &wire.CreateFunding{Source: f.paidBy}
	}
	return problems
}
