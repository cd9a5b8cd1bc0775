package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func newReconcileCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare days with the provider's statement, and resolve breaks",
		Long: `Compare days with the provider's statement, and resolve breaks: entries that one side
lacks or that differ. Workers compare every day automatically; start compares one now.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newReconcileListCommand(env), newReconcileStartCommand(env), newReconcileShowCommand(env), newReconcileBreaksCommand(env),
		newReconcileResolveCommand(env))
	return group
}

var reconciliationStatuses = []string{string(staff.ReconciliationRequested), string(staff.ReconciliationRunning),
	string(staff.ReconciliationDone), string(staff.ReconciliationFailed)}

// checkDay checks the value of --date; empty is accepted.
func checkDay(date string) error {
	if date == "" {
		return nil
	}
	if _, err := payout.ParseDay(date); err != nil {
		return &usageError{fmt.Errorf("parse --date %q: write YYYY-MM-DD, such as 2026-02-17", date)}
	}
	return nil
}

func newReconcileListCommand(env environment) *cobra.Command {
	f, page, filter := newFinanceFlags(), pageFlags{}, client.ReconciliationFilter{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List reconciliations, newest first",
		Long:  "List reconciliations, newest first, with the cause of failed ones. \"hongbao reconcile\nshow <id>\" shows the whole error.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOneOf("status", filter.Status, reconciliationStatuses); err != nil {
				return err
			}
			if err := checkDay(filter.Date); err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.Reconciliation], error) {
					return t.staff.ListReconciliations(ctx, filter, p)
				}
				columns := []any{"reconciliation", "provider", "day", "status", "lines", "matched", "repaired", "breaks", "asked by", "asked at",
					"error"}
				return printList(ctx, t.appCommand, page, fetch, columns, func(r *wire.Reconciliation) []any {
					return []any{r.ID, r.Provider, r.Date, r.Status, r.Lines, r.Matched, r.Repaired, r.Breaks, r.RequestedBy, formatTime(r.CreatedAt),
						truncate(optionalText(r.Error))}
				})
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Status, "status", "", "only this `status`: "+strings.Join(reconciliationStatuses, ", "))
	flags.StringVar(&filter.Date, "date", "", "only this `day`, YYYY-MM-DD")
	flags.StringVar(&filter.Provider, "provider", "", "only the provider with this `name`")
	complete(cmd, "status", reconciliationStatuses...)
	complete(cmd, "date")
	complete(cmd, "provider")
	return cmd
}

func newReconcileStartCommand(env environment) *cobra.Command {
	f, want, wait := newFinanceFlags(), wire.ReconcileRequest{}, false
	f.timeout = reconciliationWait
	cmd := &cobra.Command{
		Use:   "start --reason <text>",
		Short: "Compare a day now",
		Long: `Compare a day with the provider's statement now. When a reconciliation of this day is
running, the command returns that one. --wait waits for its end, up to --timeout: the
statement is requested for up to an hour. Then the breaks are listed.

Exit code with --wait: 0 no breaks; 1 breaks, or the statement could not be read.`,
		Example: "  hongbao reconcile start --date 2026-02-17 --reason 'provider announced corrections' --wait",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDay(string(want.Date)); err != nil {
				return err
			}
			if !wait && !cmd.Flags().Changed("timeout") {
				f.timeout = time.Minute // the request returns at once
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				want.Reason = f.reason
				r, err := t.staff.Reconcile(ctx, want, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if !wait {
					return t.printReconciliation(r)
				}
				return t.awaitReconciliation(ctx, r)
			})
		},
	}
	f.add(cmd, true)
	cmd.Flags().Lookup("timeout").Usage = "give up after this `duration`, without --wait after 1m; 0 = never"
	flags := cmd.Flags()
	flags.StringVar((*string)(&want.Date), "date", "", "`day` to compare, YYYY-MM-DD in the time zone of the statement; default: today")
	flags.StringVar(&want.Provider, "provider", "", "`name` of the provider; default: the only one")
	flags.BoolVar(&wait, "wait", false, "wait for the end, up to --timeout, and list the breaks")
	for _, name := range []string{"date", "provider", "wait"} {
		complete(cmd, name)
	}
	return cmd
}

const (
	// reconciliationPause is the pause between two reads of a reconciliation.
	reconciliationPause = 500 * time.Millisecond
	// reconciliationWait is the default timeout of --wait: reading a statement is retried for an hour, and comparing a
	// large one takes time.
	reconciliationWait = 2 * time.Hour
)

// awaitReconciliation waits for the end of a reconciliation and prints it.
func (t *staffCommand) awaitReconciliation(ctx context.Context, r *wire.Reconciliation) error {
	for r.EndedAt == nil {
		if err := sleep(ctx, reconciliationPause); err != nil {
			return fmt.Errorf("reconciliation %s is still %s; for its end run hongbao reconcile show %s: %w", r.ID, r.Status, r.ID, err)
		}
		next, err := t.staff.Reconciliation(ctx, r.ID)
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
func (t *staffCommand) printReconciliation(r *wire.Reconciliation) error {
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

func newReconcileShowCommand(env environment) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:   "show <reconciliation id>",
		Short: "Show a reconciliation and its breaks",
		Long: "Show a reconciliation and its breaks. --json prints the reconciliation alone; for the\nbreaks run \"hongbao reconcile " +
			"breaks --reconciliation <id> --json\".",
		Args: reconciliationID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				r, err := t.staff.Reconciliation(ctx, args[0])
				if err != nil {
					return err
				}
				return t.showReconciliation(ctx, r)
			})
		},
	}
	f.add(cmd, false)
	return cmd
}

// showReconciliation prints a reconciliation with its breaks.
func (t *staffCommand) showReconciliation(ctx context.Context, r *wire.Reconciliation) error {
	if err := t.printReconciliation(r); err != nil || t.json {
		return err
	}
	show, some := newGrid(t.out, breakColumns...), false
	for b, err := range t.staff.Breaks(ctx, client.BreakFilter{ReconciliationID: r.ID}) {
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

func newReconcileBreaksCommand(env environment) *cobra.Command {
	f, page, filter, open := newFinanceFlags(), pageFlags{}, client.BreakFilter{}, false
	cmd := &cobra.Command{
		Use:     "breaks",
		Short:   "List breaks of all sources, newest first",
		Example: "  hongbao reconcile breaks --open --older-than 24h",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := wholeSeconds("older-than", filter.OlderThan); err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			if open {
				filter.Resolved = new(bool)
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.Break], error) {
					return t.staff.ListBreaks(ctx, filter, p)
				}
				return printList(ctx, t.appCommand, page, fetch, breakColumns, breakRow)
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Kind, "kind", "", "only this `kind`, such as not_booked")
	packetID.flag(cmd, &filter.PacketID, "packet", "only of the packet with this `id`")
	reconciliationID.flag(cmd, &filter.ReconciliationID, "reconciliation", "only breaks last seen by the reconciliation with this `id`")
	flags.BoolVar(&open, "open", false, "only unresolved breaks")
	flags.DurationVar(&filter.OlderThan, "older-than", 0, "only breaks first seen at least this `duration` ago: whole seconds, such as 24h")
	complete(cmd, "kind", breakKinds()...)
	for _, name := range []string{"packet", "reconciliation", "open", "older-than"} {
		complete(cmd, name)
	}
	return cmd
}

func breakKinds() []string {
	var kinds []string
	for _, k := range slices.Concat(payout.MachineBreaks, payout.StatementBreaks) {
		kinds = append(kinds, string(k))
	}
	return kinds
}

func newReconcileResolveCommand(env environment) *cobra.Command {
	f := newFinanceFlags()
	var outcome, evidence string
	cmd := &cobra.Command{
		Use:   "resolve <break id> --reason <text>",
		Short: "Resolve a break with a reason, or state what became of its money",
		Long: `Resolve a break with a reason; no money moves. With --outcome moved or not_moved two persons state,
with evidence, what became of the money of the break's order number. moved: a statement line or the provider's last
answer shows it, and it is booked. not_moved: every order number is queried once more; then the payment fails, and
its next retry needs two persons. The break is resolved when the decision has taken effect.`,
		Example: `  hongbao reconcile resolve b4711 --reason 'provider has corrected the statement'
  hongbao reconcile resolve b4711 --outcome not_moved --evidence 'letter of the provider' --reason 'ticket 4711'`,
		Args: breakID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				r := wire.ResolveBreak{Reason: f.reason, Outcome: outcome, Evidence: evidence}
				if r.States() {
					done, err := t.staff.DecideBreak(ctx, args[0], r, client.Key(f.idempotencyKey))
					if err != nil {
						return err
					}
					return t.printDecision(done.Decision, done.Approval, aboutPayment(done.Payout, done.Refund))
				}
				b, err := t.staff.ResolveBreak(ctx, args[0], r, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				return printf(t.out, "Break %s (%s) is resolved since %s by %s: %s\n", b.ID, b.Kind, formatTime(b.Resolved.At), b.Resolved.By,
					b.Resolved.Reason)
			})
		},
	}
	f.add(cmd, true)
	cmd.Flags().StringVar(&outcome, "outcome", "none", "what became of the money: none, moved or not_moved")
	cmd.Flags().StringVar(&evidence, "evidence", "", "evidence of the outcome, such as a letter of the provider (required with one)")
	complete(cmd, "outcome", "none", "moved", "not_moved")
	complete(cmd, "evidence")
	return cmd
}
