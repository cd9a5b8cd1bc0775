package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"hongbao/internal/devstack"
)

// devConfig holds the settings of `hongbao dev`.
type devConfig struct {
	Home        string
	Ports       devstack.Ports
	Links       devstack.Links
	NoInstall   bool
	FirstPacket bool
	Unread      []string // unknown variables, withheld from the programs of the stack
}

func devCommand() command {
	return command{
		use:   "dev",
		short: "Run the whole stack on this machine, in the foreground",
		long: `Run the whole stack on this machine: Redis, MariaDB, Temporal with its web UI, the
sandbox payment provider, worker and API, as child processes without any system service.
Missing programs are installed or built first. The state is kept in one folder and
survives restarts. SIGINT or SIGTERM stops everything.

Once all parts are ready, dev.env in that folder holds addresses, keys and process ids; load
it with  . .hongbao/dev.env`,
		flags: func(flags *pflag.FlagSet) { addSettings(flags, cmdDev) },
		run: func(ctx context.Context, t *call) error {
			c, unread, err := readLocalConfig(t.cmd, cmdDev, t.env)
			if err != nil {
				return err
			}
			links, err := devstack.ParseLinks(c.text("links"))
			if err != nil {
				return err
			}
			port := func(name string) int { return int(c.number(portFlag(name))) }
			return runDev(ctx, devConfig{
				Home: c.text("home"),
				Ports: devstack.Ports{
					API: port("API"), Staff: port("STAFF"), Provider: port("PROVIDER"), Redis: port("REDIS"),
					MySQL: port("MYSQL"), Temporal: port("TEMPORAL"), TemporalUI: port("TEMPORAL_UI"),
				},
				Links: links, NoInstall: c.boolean("no-install"), FirstPacket: c.boolean("first-packet"), Unread: unread,
			}, t.out)
		},
		sub: []command{
			devSetup(),
			devState("status", "Show processes, addresses and health; exit code 1 unless all are healthy", showStatus),
			devState("stop", "Stop the stack and wait until all processes have ended", stopStack),
			devState("reset", "Stop the stack and delete its state", resetStack),
		},
	}
}

// devState is a command that acts on a home folder.
func devState(name, short string, act func(context.Context, devstack.Home, io.Writer) error) command {
	return command{
		use: name, short: short, flags: func(flags *pflag.FlagSet) { addSettings(flags, cmdDevState) },
		run: func(ctx context.Context, t *call) error {
			c, _, err := readLocalConfig(t.cmd, cmdDevState, t.env)
			if err != nil {
				return err
			}
			home, err := devstack.NewHome(c.text("home"))
			if err != nil {
				return err
			}
			return act(ctx, home, t.out)
		},
	}
}

func devSetup() command {
	return command{
		use: "setup", short: "Install and build the programs that the stack and the tests need",
		flags: func(flags *pflag.FlagSet) { addSettings(flags, cmdDevSetup) },
		run: func(ctx context.Context, t *call) error {
			c, _, err := readLocalConfig(t.cmd, cmdDevSetup, t.env)
			if err != nil {
				return err
			}
			_, err = setUp(ctx, devstack.Setup{NoInstall: c.boolean("no-install"), Tests: true, Out: t.out})
			return err
		},
	}
}

// setUp returns the programs of the servers and installs or builds missing ones. Outside a checkout it cannot build: the
// programs must be on PATH.
func setUp(ctx context.Context, setup devstack.Setup) (devstack.Tools, error) {
	binary, err := os.Executable()
	if err != nil {
		return devstack.Tools{}, fmt.Errorf("find the program's own file: %w", err)
	}
	for _, dir := range []string{filepath.Dir(binary), "."} {
		checkout, err := devstack.FindCheckout(dir)
		if err == nil {
			setup.Checkout = checkout
			return setup.Run(ctx)
		}
		if !errors.Is(err, devstack.ErrNoCheckout) {
			return devstack.Tools{}, err
		}
	}
	return devstack.FindTools(filepath.Dir(binary))
}

// runDev runs the stack until ctx ends.
func runDev(ctx context.Context, cfg devConfig, out io.Writer) error {
	ctx, stop := devSignals(ctx)
	defer stop()
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's own file: %w", err)
	}
	home, err := devstack.NewHome(cfg.Home)
	if err != nil {
		return err
	}
	return devstack.Run(ctx, devstack.Options{
		Home:          home.Dir(),
		Ports:         cfg.Ports,
		Binary:        binary,
		Links:         cfg.Links,
		Prepare:       prepare,
		DropVariables: cfg.Unread,
		Out:           out,
		Setup: func(ctx context.Context) (devstack.Tools, error) {
			return setUp(ctx, devstack.Setup{NoInstall: cfg.NoInstall, Out: out})
		},
		Ready: func(ctx context.Context, env devstack.Env, first bool) error {
			var err error
			if first && cfg.FirstPacket {
				err = firstPacket(ctx, env, out)
			}
			if ctx.Err() == nil {
				welcome(out, env, home)
			}
			return err
		},
	})
}

// devSignals handles the signals of a foreground program: SIGHUP (closed terminal) stops the stack, SIGPIPE (closed output)
// does not.
func devSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) { // nohup
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

func stopStack(ctx context.Context, home devstack.Home, out io.Writer) error {
	err := devstack.Stop(ctx, home)
	if errors.Is(err, devstack.ErrNotRunning) {
		_, err = fmt.Fprintf(out, "no stack is running in %s\n", home.Dir())
		return err
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "stopped the stack in %s\n", home.Dir())
	return err
}

func resetStack(ctx context.Context, home devstack.Home, out io.Writer) error {
	if err := devstack.Reset(ctx, home); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "deleted the state in %s\n", home.Dir())
	return err
}

// prepare migrates the schema of the local stack and creates missing apps and keys.
func prepare(ctx context.Context, env devstack.Env) (devstack.Keys, error) {
	dsn := Secret{env.MySQLDSN}
	err := runMigrate(ctx, migrateConfig{Action: migrateUp, MySQLDSN: dsn}, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		return devstack.Keys{}, err
	}
	return ensureKeys(ctx, dsn, env.Keys)
}
