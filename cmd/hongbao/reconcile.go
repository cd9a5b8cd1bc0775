package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/wire"
)

func reconcileCommand() command {
	return command{
		use:   "reconcile",
		short: "Compare days with the provider's statement, and resolve breaks",
		long: `Compare days with the provider's statement, and resolve breaks: entries that one side
lacks or that differ. Workers compare every day automatically; start compares one now.`,
		sub: []command{reconcileList(), reconcileStart(), reconcileShow(), reconcileBreaks(), reconcileResolve()},
	}
}

func reconcileList() command {
	var filter wire.ReconciliationFilter
	return command{
		use:   "list",
		short: "List reconciliations, newest first",
		long:  "List reconciliations, newest first, with the cause of failed ones. \"hongbao reconcile\nshow <id>\" shows the whole error.",
		as:    callerFinance, pages: true,
		flags: func(flags *pflag.FlagSet) {
			choice(flags, &filter.Status, "status", "only this `status`: ", []wire.ReconciliationStatus{wire.ReconciliationRequested,
				wire.ReconciliationRunning, wire.ReconciliationDone, wire.ReconciliationFailed})
			dayFlag(flags, &filter.Date, "date", "only this `day`, YYYY-MM-DD")
			flags.StringVar(&filter.Provider, "provider", "", "only the provider with this `name`")
		},
		run: func(ctx context.Context, t *call) error {
			columns := []any{"reconciliation", "provider", "day", "status", "lines", "matched", "repaired", "breaks", "asked by", "asked at",
				"error"}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Reconciliation], error) {
				return t.staff.ListReconciliations(ctx, filter, p)
			}, columns, func(r *wire.Reconciliation) []any {
				return []any{r.ID, r.Provider, r.Date, r.Status, r.Lines, r.Matched, r.Repaired, r.Breaks, r.RequestedBy, formatTime(r.CreatedAt),
					truncate(optionalText(r.Error))}
			})
		},
	}
}

func reconcileStart() command {
	var want wire.ReconcileRequest
	wait := false
	return command{
		use:   "start --reason <text>",
		short: "Compare a day now",
		long: `Compare a day with the provider's statement now. When a reconciliation of this day is
running, the command returns that one. --wait waits for its end, up to --timeout: the
statement is requested for up to an hour. Then the breaks are listed.

Exit code with --wait: 0 no breaks; 1 breaks, or the statement could not be read.`,
		example: "  hongbao reconcile start --date 2026-02-17 --reason 'provider announced corrections' --wait",
		as:      callerFinance, writes: true, timeout: reconciliationWait,
		flags: func(flags *pflag.FlagSet) {
			flags.Lookup("timeout").Usage = "give up after this `duration`, without --wait after 1m; 0 = never"
			dayFlag(flags, &want.Date, "date", "`day` to compare, YYYY-MM-DD in the time zone of the statement; default: today")
			flags.StringVar(&want.Provider, "provider", "", "`name` of the provider; default: the only one")
			flags.BoolVar(&wait, "wait", false, "wait for the end, up to --timeout, and list the breaks")
		},
		choose: func(t *call) (caller, error) {
			if !wait && !t.cmd.Flags().Changed("timeout") {
				t.timeout = time.Minute // the request returns at once
			}
			return callerFinance, nil
		},
		run: func(ctx context.Context, t *call) error {
			want.Reason = t.reason
			r, err := t.staff.Reconcile(ctx, want, t.key())
			switch {
			case err != nil:
				return err
			case wait:
				return t.awaitReconciliation(ctx, r)
			}
			return t.printReconciliation(r)
		},
	}
}

const (
	// reconciliationPause is the pause between two reads of a reconciliation.
	reconciliationPause = 500 * time.Millisecond
	// reconciliationWait is the default timeout of --wait: reading a statement is retried for an hour, and comparing a
	// large one takes time.
	reconciliationWait = 2 * time.Hour
)

// awaitReconciliation waits for the end of a reconciliation and prints it.
func (t *call) awaitReconciliation(ctx context.Context, r *wire.Reconciliation) error {
	for r.EndedAt == nil {
		next, ended, err := readLater(ctx, reconciliationPause, func() (*wire.Reconciliation, error) {
			return t.staff.Reconciliation(ctx, r.ID)
		})
		if ended != nil {
			return fmt.Errorf("reconciliation %s is still %s; for its end run hongbao reconcile show %s: %w", r.ID, r.Status, r.ID, ended)
		}
		if err != nil {
			return err
		}
		r = next
	}
	if err := t.showReconciliation(ctx, r); err != nil {
		return err
	}
	if r.Status != wire.ReconciliationDone || r.Breaks > 0 {
		return errReported
	}
	return nil
}

// printReconciliation prints a reconciliation.
func (t *call) printReconciliation(r *wire.Reconciliation) error {
	if t.json {
		return t.printAnswer()
	}
	provisional := ""
	if r.Provisional {
		provisional = "yes: it began before the day was over"
	}
	t.printFacts([][]any{
		{"reconciliation", r.ID}, {"provider", r.Provider}, {"day", r.Date}, {"status", r.Status}, {"provisional", provisional},
		{"error", optionalText(r.Error)}, {"lines", r.Lines}, {"matched", r.Matched}, {"in flight", r.InFlight}, {"repaired", r.Repaired},
		{"breaks", r.Breaks}, {"asked by", r.RequestedBy}, {"why", optionalText(r.Reason)}, {"asked at", formatTime(r.CreatedAt)},
		{"ended", formatOptionalTime(r.EndedAt)}, {"workflow", r.Workflow.ID}, {"Temporal UI", uiLink(r.Workflow)},
	})
	if len(r.Amounts) == 0 {
		return nil
	}
	show := newGrid(t.out, "movement", "statement", "amount", "MySQL", "amount")
	for _, a := range r.Amounts {
		show.row(a.Op, a.Provider.Count, formatYuan(a.Provider.Amount), a.Books.Count, formatYuan(a.Books.Amount))
	}
	show.render()
	return nil
}

func reconcileShow() command {
	return command{
		use:   "show <reconciliation id>",
		short: "Show a reconciliation and its breaks",
		long: `Show a reconciliation and its breaks. --json prints the reconciliation alone; for the
breaks run "hongbao reconcile breaks --reconciliation <id> --json".`,
		args: reconciliationID.arg, as: callerFinance,
		run: func(ctx context.Context, t *call) error {
			r, err := t.staff.Reconciliation(ctx, t.args[0])
			if err != nil {
				return err
			}
			return t.showReconciliation(ctx, r)
		},
	}
}

// showReconciliation prints a reconciliation with its breaks.
func (t *call) showReconciliation(ctx context.Context, r *wire.Reconciliation) error {
	if err := t.printReconciliation(r); err != nil || t.json {
		return err
	}
	show, some := newGrid(t.out, breakColumns...), false
	for b, err := range t.staff.Breaks(ctx, wire.BreakFilter{ReconciliationID: r.ID}) {
		if err != nil {
			return err
		}
		show.row(breakRow(b)...)
		some = true
	}
	if some {
		show.render()
	}
	return nil
}

var breakColumns = []any{"break", "kind", "packet", "order number", "amount", "detail", "seen", "since", "resolved by", "how"}

func breakRow(b *wire.Break) []any {
	sum, by, how := "", "", ""
	if about := cmp.Or(b.Amount, b.PaymentAmount); about != nil {
		sum = formatYuan(*about)
	}
	if b.Resolved != nil {
		by, how = b.Resolved.By, b.Resolved.Reason
	}
	return []any{b.ID, b.Kind, optionalText(b.PacketID), optionalText(b.OrderNo), sum, b.Detail, b.Seen, formatTime(b.CreatedAt), by, how}
}

func reconcileBreaks() command {
	var filter wire.BreakFilter
	var olderThan time.Duration
	open := false
	return command{
		use: "breaks", short: "List breaks of all sources, newest first", example: "  hongbao reconcile breaks --open --older-than 24h",
		as: callerFinance, pages: true,
		flags: func(flags *pflag.FlagSet) {
			suggest(flags, &filter.Kind, "kind", "only this `kind`, such as not_booked",
				textsOf(slices.Concat(payout.MachineBreaks, payout.StatementBreaks)))
			packetID.flag(flags, &filter.PacketID, "packet", "only of the packet with this `id`")
			reconciliationID.flag(flags, &filter.ReconciliationID, "reconciliation", "only breaks last seen by the reconciliation with this `id`")
			flags.BoolVar(&open, "open", false, "only unresolved breaks")
			secondsFlag(flags, &olderThan, "older-than", "only breaks first seen at least this `duration` ago: whole seconds, such as 24h")
		},
		run: func(ctx context.Context, t *call) error {
			if filter.OlderThanSeconds = seconds(olderThan); open {
				filter.Resolved = new(bool)
			}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Break], error) { return t.staff.ListBreaks(ctx, filter, p) },
				breakColumns, breakRow)
		},
	}
}

func reconcileResolve() command {
	r := wire.ResolveBreak{Outcome: "none"}
	return command{
		use:   "resolve <break id> --reason <text>",
		short: "Resolve a break with a reason, or state what became of its money",
		long: `Resolve a break with a reason; no money moves. With another --outcome two persons state, with
evidence, what became of the money of the break's order number. moved: a statement line or the provider's last
answer shows it, and it is booked. not_moved: every order number is queried once more; then the payment fails, and
its next retry needs two persons. written_off: what the order number has in suspense is our loss.
The break is resolved when the decision has taken effect.`,
		example: `  hongbao reconcile resolve b4711 --reason 'provider has corrected the statement'
  hongbao reconcile resolve b4711 --outcome not_moved --evidence 'letter of the provider' --reason 'ticket 4711'`,
		args: breakID.arg, as: callerFinance, writes: true,
		flags: func(flags *pflag.FlagSet) {
			choice(flags, &r.Outcome, "outcome", "what became of the money: none, moved, not_moved or written_off",
				[]string{"none", "moved", "not_moved", "written_off"})
			flags.StringVar(&r.Evidence, "evidence", "", "evidence of the outcome, such as a letter of the provider (required with one)")
		},
		run: func(ctx context.Context, t *call) error {
			r.Reason = t.reason
			if r.States() {
				done, err := t.staff.DecideBreak(ctx, t.args[0], r, t.key())
				if err != nil {
					return err
				}
				return t.printDecision(decided{done.Decision, done.Approval, aboutPayment(done.Payout, done.Refund)})
			}
			b, err := t.staff.ResolveBreak(ctx, t.args[0], r, t.key())
			return t.shown(err, func() error {
				return printf(t.out, "Break %s (%s) is resolved since %s by %s: %s\n", b.ID, b.Kind, formatTime(b.Resolved.At), b.Resolved.By,
					b.Resolved.Reason)
			})
		},
	}
}
