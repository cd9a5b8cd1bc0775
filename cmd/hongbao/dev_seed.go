package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hongbao/api"
	"hongbao/devstack"
	"hongbao/history"
	"hongbao/provider"
	"hongbao/provider/sandbox"
	"hongbao/store"
)

// seedConfig is what `hongbao dev seed` is told.
type seedConfig struct {
	Home      string
	NoInstall bool
	Payouts   int
	Days      int
	Number    uint64
}

func newDevSeedCommand(env environment) *cobra.Command {
	var cfg seedConfig
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill the books of a new local stack with a past, e.g. a million payouts",
		Long: `Fill the books of a local stack with a past: packets that were opened, grabbed and
closed over so many days, their charges, payouts, attempts, refunds and postings,
failures and what people decided about them, the audit, and what the sandbox
provider has on record. Everything ties as if it had been lived through: the
checks of "hongbao ledger verify", "audit verify", "doctor" and of reconciliation
hold. What is not at its end has failed or came back and waits for a person;
nothing is left to do for the worker.

The stack must not run, and its books must be empty: a past lies before everything
else. It starts the MariaDB of the home folder by itself and no other part, so it
can fill nothing but a local stack.

  make reset
  hongbao dev seed --payouts 1000000
  make run

The same number makes the same past, apart from when it ends, which is now. When it
is interrupted the books hold part of it: "hongbao dev reset", and begin again.`,
		Example: `  hongbao dev seed --payouts 20000 --days 7
  hongbao dev seed --payouts 1000000 --number 7 --home /tmp/million`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := readLocalConfig(cmd, cmdDevSeed, env)
			if err != nil {
				return err
			}
			cfg.Home, cfg.NoInstall = c.text("home"), c.yes("no-install")
			if cfg.Payouts < 1 || cfg.Payouts > history.MaxPayouts {
				return &usageError{fmt.Errorf("--payouts must be 1 to %d: %d", history.MaxPayouts, cfg.Payouts)}
			}
			if cfg.Days < 1 || cfg.Days > history.MaxDays {
				return &usageError{fmt.Errorf("--days must be 1 to %d: %d", history.MaxDays, cfg.Days)}
			}
			return seedStack(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&cfg.Payouts, "payouts", 1_000_000, "how many payouts, 1 to 10000000")
	cmd.Flags().IntVar(&cfg.Days, "days", 30, "over how many days, 1 to 366; the last one ends now")
	cmd.Flags().Uint64Var(&cfg.Number, "number", 1, "which past: the same number makes the same one")
	addSettings(cmd, cmdDevSeed)
	return cmd
}

// seedStack makes a past and puts it into the books of both sides.
func seedStack(ctx context.Context, cfg seedConfig, out io.Writer) error {
	ctx, stop := devSignals(ctx)
	defer stop()
	tools, err := setUp(ctx, devstack.Setup{NoInstall: cfg.NoInstall, Out: out})
	if err != nil {
		return err
	}
	began := time.Now()
	err = devstack.OpenBooks(ctx, cfg.Home, tools, prepare, func(ctx context.Context, books devstack.Books) error {
		made, err := seedBooks(ctx, cfg, books, out)
		if err != nil {
			return err
		}
		return printf(out, "%d packets with %d payouts over %d days, in %v; writing what is still in memory\n", made.packets, made.payouts, cfg.Days, time.Since(began).Round(time.Second))
	})
	switch {
	case errors.Is(err, devstack.ErrRunning):
		return fmt.Errorf("%w: `make stop` stops it", err)
	case errors.Is(err, store.ErrNotEmpty), errors.Is(err, sandbox.ErrArchive):
		return fmt.Errorf("%w; a past lies before everything else: `make reset` deletes what is there", err)
	case err != nil:
		return err
	}
	return printf(out, "The past is in the books; `make run` starts the stack on them.\n")
}

// seeded is how much was made.
type seeded struct{ packets, payouts int }

func seedBooks(ctx context.Context, cfg seedConfig, books devstack.Books, out io.Writer) (made seeded, err error) {
	salt, err := demoSalt(ctx, Secret{books.MySQLDSN})
	if err != nil {
		return made, err
	}
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://127.0.0.1", APIKey: "unused"}) // it encodes, and is asked nothing
	if err != nil {
		return made, err
	}
	defer pay.Close()
	past, err := history.New(history.Config{
		Payouts: cfg.Payouts, Days: cfg.Days, Number: cfg.Number, Until: time.Now(), App: demoApp, Salt: salt, SeedKey: key32(Secret{books.SeedKey}),
		Provider: pay.Name(), Limits: pay.Limits(), Encode: pay.EncodeRequest, Staff: []string{"finance", "finance2", "li-na", "wang-wei"},
		ApproveFrom: api.DefaultApprovalAmount,
	})
	if err != nil {
		return made, err
	}
	archive, err := sandbox.NewArchive(books.ProviderDB)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the loader where something else went wrong
	loader, err := store.NewLoader(ctx, books.MySQLDSN)
	if err != nil {
		return made, err
	}
	progress := newMeter(out, "payouts", cfg.Payouts)
	made.packets, err = pour(past, cfg.Payouts, loader, archive, progress)
	made.payouts = past.Payouts()
	if err != nil {
		cancel()
	}
	progress.end()
	return made, errors.Join(err, loader.Close())
}

// pour puts a past into the books of both sides, packet by packet.
func pour(past *history.History, wanted int, loader *store.Loader, archive *sandbox.Archive, progress meter) (packets int, err error) {
	for {
		p, err := past.Next()
		if err != nil || p == nil {
			return packets, err
		}
		packets++
		if err := loader.Add(p); err != nil {
			return packets, err
		}
		for _, payment := range p.Payments {
			for _, o := range payment.Orders {
				if err := archive.Add(pastOrder(o)); err != nil {
					return packets, err
				}
			}
		}
		progress.set(min(past.Payouts(), wanted))
	}
}

func pastOrder(o history.Order) sandbox.Past {
	return sandbox.Past{
		Op: string(o.Op), OrderNo: o.OrderNo, Account: o.Account, Amount: int64(o.Amount), Currency: o.Currency, Remark: o.Remark, ChargeOrderNo: o.ChargeOrderNo,
		Status: sandbox.Status(o.Outcome), Code: o.Code, Message: o.Message, ProviderRef: o.Ref, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, ReturnedAt: o.ReturnedAt,
	}
}

// demoSalt is the salt of the app that the past is of.
func demoSalt(ctx context.Context, dsn Secret) (salt []byte, err error) {
	err = withStore(dsn, func(db *store.Store) error {
		apps, _, err := db.Access(ctx)
		for _, a := range apps {
			if a.ID == demoApp {
				salt = a.Salt
			}
		}
		return err
	})
	if err == nil && salt == nil {
		err = fmt.Errorf("app %s: %w", demoApp, store.ErrNotFound)
	}
	return salt, err
}
