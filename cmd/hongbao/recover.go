package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hongbao/internal/payout"
	"hongbao/worker"
)

// recoverFlags is how the books are recovered, and how that is told.
type recoverFlags struct {
	dryRun bool
	json   bool
	since  string
	lanes  bool
	by     string
	leave  []string
}

func newRecoverCommand(env environment) *cobra.Command {
	var f recoverFlags
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Put back into a restored MySQL what has happened since the backup",
		Long: `Put back into a MySQL that was restored from an older backup what has happened since
(docs/disaster.md). It reads the provider's statement since the backup, asks the
provider about every number that may have been sent, and takes packets and claims
from Redis and from Temporal's runs. It sends nothing that moves money.

Workers and API may run meanwhile: until it is through they send, close and decide
nothing. It may be stopped at any time and run again; what is in the books is not
put in twice. Books that are not restored stay as they are.

What cannot be told becomes a break of kind restored, and its packet stays as it is
until a person has resolved that. An order about which the provider gives no usable
answer is named, and keeps the books restored: ask the provider, and run it again; or
leave it to a person (--leave). When the provider answers at last, recover again
(--since) before that break is resolved.

Exit code: 0 the books are normal (or --dry-run); 1 they are not, or something is
left to a person; 2 wrong settings.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdRecover, env)
			if err != nil {
				return err
			}
			since := time.Time{}
			if f.since != "" {
				if since, err = time.Parse(time.RFC3339, f.since); err != nil {
					return &usageError{fmt.Errorf("--since: not a time like 2026-03-01T04:10:00Z: %q", f.since)}
				}
			}
			for _, no := range f.leave {
				if parts, err := payout.Parse(no); err != nil || parts.Attempt == 0 {
					return &usageError{fmt.Errorf("--leave: not an order number: %q", no)}
				}
			}
			if f.by == "" {
				return &usageError{fmt.Errorf("--by %w: who recovers, for the audit", errMissing)}
			}
			return f.recover(cmd.Context(), c, since, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing but that the books are restored; tell what would be looked at")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	flags.StringVar(&f.since, "since", "", "until when the books hold everything, as `time` in RFC 3339, when that is earlier than their "+
		"last heartbeat; also declares books restored of which nobody has noticed it")
	flags.BoolVar(&f.lanes, "rebuild-lanes", false, "Redis was restored or lost too: have every lane of the pool made again from the "+
		"books, once they are normal")
	flags.StringVar(&f.by, "by", "", "`name` of who recovers, for the audit")
	flags.StringSliceVar(&f.leave, "leave", nil, "`orders` that are left to a person when the provider gives no usable answer about them")
	complete(cmd, "since")
	complete(cmd, "leave")
	complete(cmd, "by")
	addSettings(cmd, cmdRecover)
	return cmd
}

// recover recovers, and tells how far it is on errs.
func (f recoverFlags) recover(ctx context.Context, c config, since time.Time, out, errs io.Writer) error {
	r, end, err := openRecover(ctx, c, errs)
	if err != nil {
		return err
	}
	defer end()
	r.By, r.Since, r.DryRun, r.Rebuild, r.Leave = f.by, since, f.dryRun, f.lanes, f.leave
	var shown meter
	r.Progress = func(done, of int) {
		if shown == nil {
			shown = newMeter(errs, "packets", of)
		}
		shown.set(done)
	}
	told, err := r.Run(ctx)
	if shown != nil {
		shown.end()
	}
	if errors.Is(err, worker.ErrUnanswered) {
		return fmt.Errorf("%w: ask the provider and run it again, or leave them to a person with --leave", err)
	}
	if err != nil {
		return err
	}
	if f.json {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(told)
	} else {
		err = showRecovery(out, told)
	}
	if err == nil && len(told.Undecided) > 0 {
		err = errReported
	}
	return err
}

func showRecovery(out io.Writer, v worker.Recovery) error {
	if !v.Ended && !v.DryRun || v.DryRun && v.Books.State == payout.MySQLNormal {
		return printf(out, "The books are normal (number %d); nothing was changed.\n", v.Books.Heartbeat)
	}
	t := newGrid(out)
	for _, row := range [][]any{
		{"statement read since", v.Since.UTC().Format(time.RFC3339)}, {"movements since then", v.Lines}, {"of them not in the books", v.Unknown},
		{"packets looked at", v.Packets}, {"packets put back", v.Made}, {"claims put back", v.Claims},
		{"of them known by account only", v.Guessed}, {"order numbers put back", v.Numbers}, {"cancels put back", v.Cancels},
		{"packets that had been closed", v.Closed}, {"questions to the provider", v.Asked}, {"lanes that Redis had in a later epoch", v.Raised},
		{"lanes to be made again from the books", v.Shut},
	} {
		t.row(row...)
	}
	t.render()
	for _, u := range v.Undecided {
		if err := printf(out, "UNDECIDED %s\n", u); err != nil {
			return err
		}
	}
	if v.DryRun {
		return printf(out, "Dry run: nothing was put back. The books are %s.\n", v.Books.State)
	}
	return printf(out, "The books are %s (number %d); %d left to a person.\n", v.Books.State, v.Books.Heartbeat, len(v.Undecided))
}
