package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const (
	// matchStep is how many lines or transfers are matched at once.
	matchStep = 2000
	// matchInterval is the shortest time between two matches of the same day and statement; a large
	// day waits longer.
	matchInterval = time.Minute
	matchShare    = 30
)

// dayMatch is the statement match of a day in progress.
type dayMatch struct {
	source *Source
	match  *staff.StatementMatch
	zone   *time.Location
	open   map[int64]bool // breaks
}

// matchDay matches a day with the statements that reconciliations have read, and sums its transfers. It only reads.
func (s *Source) matchDay(ctx context.Context, c *staff.DayClose, read []staff.Reconciliation, zone *time.Location) (*staff.DayMatch,
	error) {
	sums, err := s.sumBetween(ctx, c.From, c.To)
	if err != nil {
		return nil, err
	}
	out := &staff.DayMatch{Entries: sums.ByKind()}
	for _, r := range read {
		m, err := s.matchStatement(ctx, r, zone)
		if err != nil {
			return nil, err
		}
		out.Statements = append(out.Statements, m)
	}
	return out, nil
}

// matchStatement matches a day with the statement that a reconciliation has read, by order number and from
// both sides.
func (s *Source) matchStatement(ctx context.Context, r staff.Reconciliation, zone *time.Location) (*staff.StatementMatch, error) {
	t := &dayMatch{source: s, match: staff.NewStatementMatch(r.Provider, r.Day), zone: zone, open: map[int64]bool{}}
	t.match.ReconciliationID = r.ID
	var read struct{ ReadAt *time.Time }
	if err := s.read(ctx).Table("statements").Select("read_at").Where("provider = ? AND day = ?", r.Provider, string(r.Day)).
		Limit(1).Find(&read).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	t.match.ReadAt = mysql.OrZero(read.ReadAt)
	for _, pass := range []func(context.Context) error{t.lines, t.transfers, t.foundByRun} {
		if err := pass(ctx); err != nil {
			return nil, mysql.Classify(err)
		}
	}
	t.match.OpenBreaks = int64(len(t.open))
	t.match.Sort()
	return t.match, nil
}

type matchLineRow struct {
	ID      int64
	Day     string
	Op      string
	OrderNo string
	Amount  int64
	MovedAt time.Time
	Verdict string
}

func (r matchLineRow) line() staff.DatedLine {
	return staff.DatedLine{ID: r.ID, Day: payout.Day(r.Day), Broken: r.Verdict == mysql.VerdictBreak, StatementLine: payout.StatementLine{
		Op: payout.Op(r.Op), OrderNo: r.OrderNo, Amount: money.Fen(r.Amount), At: r.MovedAt.UTC()}}
}

// lines matches the statement lines of the day.
func (t *dayMatch) lines(ctx context.Context) error {
	for after := int64(0); ; {
		var rows []matchLineRow
		err := t.source.read(ctx).Raw(`SELECT id, day, op, order_no, amount, moved_at, verdict
			FROM statement_lines FORCE INDEX (statement_lines_day)
			WHERE provider = ? AND day = ? AND id > ? ORDER BY id LIMIT ?`, t.match.Provider, string(t.match.Day), after,
			matchStep).Scan(&rows).Error
		if err != nil || len(rows) == 0 {
			return err
		}
		here, numbers := map[int64]bool{}, []string{}
		for _, r := range rows {
			after, here[r.ID] = r.ID, true
			t.match.AddLine(r.line())
			numbers = append(numbers, r.OrderNo)
		}
		if err := t.compare(ctx, numbers, func(m staff.Movement) bool { return m.Line != nil && here[m.Line.ID] }); err != nil {
			return err
		}
	}
}

// transfers matches the transfers of the day at the provider. Those with a line of the day are done.
func (t *dayMatch) transfers(ctx context.Context) error {
	from, to := t.match.Day.Span(t.zone)
	after := staff.TransferCursor{At: from}
	for {
		var rows []mysql.TransferRow
		err := t.source.read(ctx).Raw(`SELECT * FROM transfers FORCE INDEX (transfers_created) WHERE created_at >= ? AND created_at < ?
			AND (created_at > ? OR id > ?) AND provider = ? ORDER BY created_at, id LIMIT ?`, after.At, to, after.At, after.ID, t.match.Provider,
			matchStep).Scan(&rows).Error
		if err != nil || len(rows) == 0 {
			return err
		}
		here, numbers := map[int64]bool{}, []string{}
		for _, r := range rows {
			after = staff.TransferCursor{At: r.CreatedAt.UTC(), ID: r.ID}
			p := r.Dated(t.match.Provider)
			t.match.AddTransfer(p)
			if p.Op != "" {
				here[r.ID] = true
				numbers = append(numbers, r.OrderNo)
			}
		}
		elsewhere := func(m staff.Movement) bool {
			return m.Post != nil && here[m.Post.ID] && (m.Line == nil || m.Line.Day != t.match.Day)
		}
		if err := t.compare(ctx, numbers, elsewhere); err != nil {
			return err
		}
	}
}

// compare collects the differences of order numbers, restricted to the movements that meant accepts.
func (t *dayMatch) compare(ctx context.Context, numbers []string, meant func(staff.Movement) bool) error {
	if len(numbers) == 0 {
		return nil
	}
	var lineRows []matchLineRow
	err := t.source.read(ctx).Raw(`SELECT id, day, op, order_no, amount, moved_at, verdict
		FROM statement_lines FORCE INDEX (statement_lines_order)
		WHERE provider = ? AND order_no IN ?`, t.match.Provider, numbers).Scan(&lineRows).Error
	if err != nil {
		return err
	}
	var postRows []mysql.TransferRow
	if err := t.source.read(ctx).Raw("SELECT * FROM transfers FORCE INDEX (transfers_order) WHERE order_no IN ?",
		numbers).Scan(&postRows).Error; err != nil {
		return err
	}
	lines, posts := make([]staff.DatedLine, len(lineRows)), make([]staff.DatedTransfer, len(postRows))
	for i, r := range lineRows {
		lines[i] = r.line()
	}
	for i, r := range postRows {
		posts[i] = r.Dated(t.match.Provider)
	}
	var found []staff.Difference
	for _, m := range staff.Pair(lines, posts) {
		if !meant(m) {
			continue
		}
		if d, differs := m.Differ(t.match.Day, t.zone); differs {
			found = append(found, d)
		}
	}
	breaks, err := t.breaks(ctx, found)
	for _, d := range found {
		d.Breaks = breaks[d.OrderNo]
		t.match.AddDifference(d)
	}
	return err
}

// breaks reads the breaks about the order numbers of differences.
func (t *dayMatch) breaks(ctx context.Context, of []staff.Difference) (map[string][]staff.MatchBreak, error) {
	if len(of) == 0 {
		return nil, nil
	}
	payments, numbers := []string{""}, []string{} // breaks about foreign order numbers have no payment
	for _, d := range of {
		numbers = append(numbers, d.OrderNo)
		if parts, err := payout.Parse(d.OrderNo); err == nil {
			payments = append(payments, parts.PaymentID)
		}
	}
	var rows []mysql.BreakRow
	err := t.source.read(ctx).Raw(`SELECT id, kind, order_no, resolved_at FROM breaks FORCE INDEX (breaks_subject)
		WHERE payment_id IN ? AND order_no IN ? ORDER BY id`, payments, numbers).Scan(&rows).Error
	out := map[string][]staff.MatchBreak{}
	for _, b := range rows {
		t.note(b)
		out[b.OrderNo] = append(out[b.OrderNo], staff.MatchBreak{ID: b.ID, Kind: payout.BreakKind(b.Kind), Open: b.ResolvedAt == nil})
	}
	return out, err
}

func (t *dayMatch) note(b mysql.BreakRow) {
	if b.ResolvedAt == nil {
		t.open[b.ID] = true
	}
}

// foundByRun also counts the breaks that the reconciliation saw last.
func (t *dayMatch) foundByRun(ctx context.Context) error {
	var rows []mysql.BreakRow
	err := t.source.read(ctx).Raw(`SELECT id, resolved_at FROM breaks FORCE INDEX (breaks_reconciliation) WHERE reconciliation_id = ?
		AND resolved_at IS NULL
		LIMIT 10000`, t.match.ReconciliationID).Scan(&rows).Error
	for _, b := range rows {
		t.note(b)
	}
	return err
}

// MatchDays matches past days that are not final with the statements read for them, of a provider and of those
// whose accounts they changed. It stores the days that become final: they never change again. It returns the number of
// stored days. Errors: ErrUnavailable.
func (s *Source) MatchDays(ctx context.Context, provider string, zone *time.Location) (int, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return 0, err
	}
	days, err := s.daysToMatch(ctx, payout.DayOf(now, zone))
	written := 0
	for _, day := range days {
		done, err := s.matchOnce(ctx, provider, day, zone, now)
		if err != nil {
			return written, err
		}
		if done {
			written++
		}
	}
	return written, err
}

// daysToMatch returns the past days that may become final: the last ones, and older ones reconciled
// again lately.
func (s *Source) daysToMatch(ctx context.Context, today payout.Day) ([]payout.Day, error) {
	var days []payout.Day
	for n := 1; n <= mysql.MatchDays; n++ {
		days = append(days, today.Add(-n))
	}
	lately, err := s.Reconciliations(ctx, staff.ReconciliationFilter{Limit: mysql.MatchDays})
	for _, r := range lately {
		if r.Day < days[mysql.MatchDays-1] && !slices.Contains(days, r.Day) {
			days = append(days, r.Day)
		}
	}
	return days, err
}

// readDay returns the last ended reconciliation of a day; its id is empty without one.
func (s *Source) readDay(ctx context.Context, provider string, day payout.Day) (staff.Reconciliation, error) {
	var row mysql.ReconciliationRow
	err := s.read(ctx).Raw(`SELECT * FROM reconciliations FORCE INDEX (reconciliations_active) WHERE provider = ? AND day = ?
		AND active IS NULL
		AND status = 'done' ORDER BY started_at DESC, id LIMIT 1`, provider, string(day)).Scan(&row).Error
	if err != nil || row.ID == "" {
		return staff.Reconciliation{}, mysql.Classify(err)
	}
	return row.Reconciliation()
}

// matchOnce matches a day unless it is final, its sums are not stored yet, a statement is missing, or the same
// readings were matched a short time ago.
func (s *Source) matchOnce(ctx context.Context, provider string, day payout.Day, zone *time.Location, now time.Time) (bool, error) {
	before, err := s.readCloseRow(ctx, day, zone)
	if err != nil || before.ClosedTo.IsZero() || before.kept {
		return false, err
	}
	if r, err := s.readDay(ctx, provider, day); err != nil || r.ID == "" || r.Provisional {
		return false, err // as most days without a final close
	}
	c, err := s.closeOf(ctx, day, zone, now)
	if err != nil {
		return false, err
	}
	read, complete, err := s.statementsOf(ctx, &c, provider)
	if err != nil || !complete {
		return false, err
	}
	if m := before.match; m != nil && m.IsOf(read) && now.Sub(mysql.OrZero(before.TiedAt)) < max(matchInterval, matchShare*before.took) {
		return false, nil
	}
	if c.Match, err = s.matchDay(ctx, &c, read, zone); err != nil {
		return false, err
	}
	done, err := s.db.Clock(ctx)
	if err != nil {
		return false, err
	}
	c.Match.MatchedAt = now
	text, err := json.Marshal(storedMatch{Zone: zone.String(), Day: day, Took: done.Sub(now), DayMatch: c.Match})
	if err != nil {
		return false, fmt.Errorf("encode statement match of %s: %w", day, err)
	}
	var final *time.Time
	if len(c.FindBlockers(false)) == 0 {
		final = &now
	}
	return true, s.db.Transact(ctx, failpoint.Administration, func(db *gorm.DB, _ time.Time) error {
		return db.Exec("UPDATE ledger_closes SET tie = ?, tied_at = ?, final_at = ? WHERE closed_to = ? AND final_at IS NULL", text, now, final,
			before.ClosedTo).Error
	})
}

// storedMatch is the stored form of a statement match.
type storedMatch struct {
	Zone string        `json:"zone"` // of the day: in another zone the row ends another day, or none
	Day  payout.Day    `json:"day"`
	Took time.Duration `json:"took"`
	*staff.DayMatch
}

type closeRow struct {
	ClosedTo time.Time
	TiedAt   *time.Time
	FinalAt  *time.Time
	Tie      []byte

	match *staff.DayMatch
	took  time.Duration
	kept  bool // the row is final, whatever day it ends
}

func (closeRow) TableName() string { return "ledger_closes" }

// readCloseRow reads the stored end of a day. ClosedTo is zero without one.
func (s *Source) readCloseRow(ctx context.Context, day payout.Day, zone *time.Location) (closeRow, error) {
	var row closeRow
	_, to := day.Span(zone)
	err := s.read(ctx).Select("closed_to", "tie", "tied_at", "final_at").Where("closed_to = ?", to).Limit(1).Find(&row).Error
	if err != nil {
		return row, mysql.Classify(err)
	}
	row.ClosedTo = row.ClosedTo.UTC()
	if row.kept = row.FinalAt != nil; row.Tie == nil {
		return row, nil
	}
	var kept storedMatch
	if err := json.Unmarshal(row.Tie, &kept); err != nil {
		return row, fmt.Errorf("decode statement match of %s: %w", day, err)
	}
	if kept.DayMatch == nil || kept.Day != day || kept.Zone != zone.String() {
		row.FinalAt = nil // of a day in another zone with the same end
		return row, nil
	}
	row.match, row.took = kept.DayMatch, kept.Took
	return row, nil
}
