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
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func newReconcileCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare days with the provider's statement, and deal with what differs",
		Long: `Compare days with the provider's statement, and deal with the breaks that are found:
what one side has and the other has not, or has otherwise. Every day is compared by
itself; start compares one now.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newReconcileListCommand(env), newReconcileStartCommand(env), newReconcileShowCommand(env), newReconcileBreaksCommand(env),
		newReconcileResolveCommand(env))
	return group
}

var reconciliationStatuses = []string{string(payout.ReconciliationRequested), string(payout.ReconciliationRunning),
	string(payout.ReconciliationDone), string(payout.ReconciliationFailed)}

// checkDay checks a date, which may be left out.
func checkDay(date string) error {
	if date == "" {
		return nil
	}
	if _, err := payout.ParseDay(date); err != nil {
		return &usageError{fmt.Errorf("--date %q is not a day such as 2026-02-17", date)}
	}
	return nil
}

func newReconcileListCommand(env environment) *cobra.Command {
	f, page, filter := newFinanceFlags(), pageFlags{}, client.ReconciliationFilter{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List reconciliations, newest first",
		Long:  "List reconciliations, newest first, and why those that failed did. \"hongbao reconcile\nshow <id>\" has the whole of it.",
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
				fetch := func(ctx context.Context, p client.Page) (*client.List[client.Reconciliation], error) {
					return t.staff.ListReconciliations(ctx, filter, p)
				}
				columns := []any{"reconciliation", "provider", "day", "status", "lines", "matched", "repaired", "breaks", "asked by", "asked at",
					"error"}
				return printList(ctx, t.appCommand, page, fetch, columns, func(r *client.Reconciliation) []any {
					return []any{r.ID, r.Provider, r.Date, r.Status, r.Lines, r.Matched, r.Repaired, r.Breaks, r.RequestedBy, formatTime(r.CreatedAt),
						truncate(optionalText(r.Error))}
				})
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Status, "status", "", "in this `status`: "+strings.Join(reconciliationStatuses, ", "))
	flags.StringVar(&filter.Date, "date", "", "of this `day`: YYYY-MM-DD")
	flags.StringVar(&filter.Provider, "provider", "", "of this provider: its `name`")
	complete(cmd, "status", reconciliationStatuses...)
	complete(cmd, "date")
	complete(cmd, "provider")
	return cmd
}

func newReconcileStartCommand(env environment) *cobra.Command {
	f, want, wait := newFinanceFlags(), client.ReconcileRequest{}, false
	f.timeout = reconciliationWait
	cmd := &cobra.Command{
		Use:   "start --reason <text>",
		Short: "Compare a day now",
		Long: `Compare a day with the provider's statement now. While one of the same day is under
way, that is the answer. With --wait it waits for the end, two hours unless --timeout
says otherwise: the provider is asked for its statement for up to an hour. It shows
what differs: exit code 1 when something does, or when the statement could not be read.`,
		Example: "  hongbao reconcile start --date 2026-02-17 --reason 'provider announced corrections' --wait",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDay(want.Date); err != nil {
				return err
			}
			if !wait && !cmd.Flags().Changed("timeout") {
				f.timeout = time.Minute // to ask for one is done at once, or not at all
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				want.Reason, want.IdempotencyKey = f.reason, f.idempotencyKey
				r, err := t.staff.Reconcile(ctx, want)
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
	cmd.Flags().Lookup("timeout").Usage = "give up after this `time`, without --wait after a minute; 0 = never"
	flags := cmd.Flags()
	flags.StringVar(&want.Date, "date", "", "which `day`, YYYY-MM-DD in the time zone of the statement; empty = today")
	flags.StringVar(&want.Provider, "provider", "", "whose statement: a provider's `name`; empty = the only one")
	flags.BoolVar(&wait, "wait", false, "wait for its end, within --timeout, and show what differs")
	for _, name := range []string{"date", "provider", "wait"} {
		complete(cmd, name)
	}
	return cmd
}

const (
	// reconciliationPause is the pause between two looks at a reconciliation.
	reconciliationPause = 500 * time.Millisecond
	// reconciliationWait is for how long its end is waited for: a statement that cannot be
	// read is asked for again for an hour, and a large one is compared for a while.
	reconciliationWait = 2 * time.Hour
)

// awaitReconciliation waits for the end of a reconciliation and tells it.
func (t *staffCommand) awaitReconciliation(ctx context.Context, r *client.Reconciliation) error {
	for r.EndedAt == nil {
		if err := sleep(ctx, reconciliationPause); err != nil {
			return fmt.Errorf("reconciliation %s is still %s; hongbao reconcile show %s tells how it ends: %w", r.ID, r.Status, r.ID, err)
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
	if r.Status != string(payout.ReconciliationDone) || r.Breaks > 0 {
		return errReported
	}
	return nil
}

// reconciliation prints one.
func (t *staffCommand) printReconciliation(r *client.Reconciliation) error {
	if t.json {
		return t.printRaw(r.Raw)
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
	show := newGrid(t.out, "movement", "statement", "amount", "books", "amount")
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
		Long: "Show a reconciliation and the breaks that it saw last. With --json it prints the\nreconciliation alone; \"hongbao reconcile " +
			"breaks --reconciliation <id> --json\" the breaks.",
		Args: oneArg,
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
func (t *staffCommand) showReconciliation(ctx context.Context, r *client.Reconciliation) error {
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

func breakRow(b *client.Break) []any {
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
		Short:   "List breaks, newest first, whoever found them",
		Example: "  hongbao reconcile breaks --open --older-than 24h",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.PacketID != "" && !packet.ValidID(filter.PacketID) {
				return &usageError{fmt.Errorf("--packet %q is not the id of a packet", filter.PacketID)}
			}
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
				fetch := func(ctx context.Context, p client.Page) (*client.List[client.Break], error) {
					return t.staff.ListBreaks(ctx, filter, p)
				}
				return printList(ctx, t.appCommand, page, fetch, breakColumns, breakRow)
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Kind, "kind", "", "of this `kind`, not_booked for example")
	flags.StringVar(&filter.PacketID, "packet", "", "about this packet: its `id`")
	flags.StringVar(&filter.ReconciliationID, "reconciliation", "", "that this reconciliation saw last: its `id`")
	flags.BoolVar(&open, "open", false, "only what nobody has dealt with")
	flags.DurationVar(&filter.OlderThan, "older-than", 0, "seen first at least this `time` ago: whole seconds")
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
	cmd := &cobra.Command{
		Use:     "resolve <break id> --reason <text>",
		Short:   "Note how a break was dealt with; it moves no money",
		Example: "  hongbao reconcile resolve b4711 --reason 'provider has corrected the statement'",
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				b, err := t.staff.ResolveBreak(ctx, args[0], client.ResolveRequest{IdempotencyKey: f.idempotencyKey, Reason: f.reason})
				if err != nil {
					return err
				}
				if t.json {
					return t.printRaw(b.Raw)
				}
				return printf(t.out, "Break %s (%s) is resolved since %s by %s: %s\n", b.ID, b.Kind, formatTime(b.Resolved.At), b.Resolved.By,
					b.Resolved.Reason)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}
