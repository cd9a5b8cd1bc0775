package report

import (
	"context"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// tallyLimit bounds the rows of a list that are counted. Larger counts are reported as "at least".
const tallyLimit = 10_000

// conditions are the parts of a WHERE clause with their arguments.
type conditions struct {
	texts []string
	args  []any
}

func (c *conditions) and(text string, args ...any) {
	c.texts, c.args = append(c.texts, text), append(c.args, args...)
}

func (c *conditions) all() string {
	if len(c.texts) == 0 {
		return "TRUE"
	}
	return strings.Join(c.texts, " AND ")
}

// counting describes a list counted in one statement. within is what an index finds: at most
// tallyLimit of those rows are read. fits is checked on the rows read; otherwise a filter that
// matches few rows would read all.
type counting struct {
	from    string // table and index
	columns string // what is added up, as x, or the key of its join
	join    string // join to what is added up
	sum     string // amount of one row
	without string // condition of a matching row without an amount
	within  conditions
	fits    conditions
}

// none is used when nothing is added up, or when every row has an amount.
const none = "0"

// total runs a counting.
func (s *Source) total(ctx context.Context, c counting) (t staff.ListTotal, err error) {
	var row struct{ Looked, N, Bare, Sum int64 }
	args := append([]any{int64(money.Saturated)}, c.fits.args...)
	args = append(append(args, c.within.args...), tallyLimit+1)
	err = s.read(ctx).Raw("SELECT COUNT(*) AS looked, COALESCE(SUM(f.fits), 0) AS n, COALESCE(SUM("+c.without+
		"), 0) AS bare, LEAST(COALESCE(SUM("+c.sum+"), 0), ?) AS sum FROM (SELECT ("+
		c.fits.all()+") AS fits, "+c.columns+" FROM "+c.from+" WHERE "+c.within.all()+" LIMIT ?) f"+c.join, args...).Scan(&row).Error
	t.Count, t.Amount, t.WithoutAmount, t.AtLeast = row.N, money.Fen(row.Sum), row.Bare, row.Looked > tallyLimit
	return t, mysql.Classify(err)
}

// span bounds a time column; zero means no bound.
func (c *conditions) span(column string, from, to time.Time) {
	if !from.IsZero() {
		c.and(column+" >= ?", from.UTC())
	}
	if !to.IsZero() {
		c.and(column+" < ?", to.UTC())
	}
}

// PacketTotal counts the packets of Packets, ignoring place and limit, and adds up their totals, up
// to 10,000 of each status. Packets only in Redis are not counted. Errors: ErrUnavailable.
func (s *Source) PacketTotal(ctx context.Context, f packet.RecordFilter) (all staff.ListTotal, err error) {
	stored := f.Stored
	if f.App == "" && f.SenderID != "" && len(stored) == 0 {
		stored = storedStatuses // as in Packets
	}
	if len(stored) == 0 {
		stored = []packet.Status{""}
	}
	for _, status := range stored {
		one, err := s.total(ctx, packetCounting(f, status))
		if err != nil {
			return all, err
		}
		all.Sum, all.AtLeast = all.Plus(one.Sum), all.AtLeast || one.AtLeast
	}
	return all, nil
}

// packetCounting counts the packets of a filter in one status; "": any.
func packetCounting(f packet.RecordFilter, status packet.Status) counting {
	c := counting{from: "packets" + packetsIndex(f, status), columns: "total_amount AS x", sum: "IF(f.fits, f.x, 0)", without: none}
	if status != "" {
		c.within.and("status = ?", string(status))
	}
	rest := &c.within
	if !f.ExpiresBefore.IsZero() {
		if c.within.and("expires_at < ?", f.ExpiresBefore.UTC()); status != "" {
			rest = &c.fits // the index covers no more
		}
	} else if f.From.IsZero() {
		f.From = mysql.EverBefore
	}
	if f.App != "" {
		rest.and("app_id = ?", f.App)
	}
	if f.SenderID != "" {
		rest.and("sender_id = ?", f.SenderID)
	}
	rest.span("created_at", f.From, f.To)
	return c
}

// ApprovalTotal counts the decisions of Approvals, ignoring place and limit, and adds up the amounts
// of their payments. A payment with two decisions counts twice. Errors: ErrUnavailable.
func (s *Source) ApprovalTotal(ctx context.Context, f staff.ApprovalFilter) (staff.ListTotal, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return staff.ListTotal{}, err
	}
	c := counting{from: "decisions FORCE INDEX (decisions_waiting)", columns: "payment_id AS x",
		join: " LEFT JOIN payments p ON p.id = f.x AND f.fits", sum: "p.amount", without: none}
	if f.Status != "" {
		c.fits.and("approval_id IS NOT NULL") // most decisions need no approval
	}
	switch f.Status {
	case "":
		c.from = "decisions FORCE INDEX (decisions_approval)"
		c.within.and("approval_id IS NOT NULL")
	case payout.DecisionWaiting:
		c.within.and(mysql.StillWaitsWithin, now.Add(-mysql.ApprovalLife))
		c.fits.and(mysql.InTime, now, now.Add(mysql.LongestWait))
	case payout.DecisionExpired:
		c.within.and("status IN ('expired', 'waiting')")
		c.fits.and("(status = 'expired' OR NOT "+mysql.InTime+")", now, now.Add(mysql.LongestWait))
	default:
		c.within.and("status = ?", string(f.Status))
	}
	if f.PaymentID != "" {
		c.from = "decisions FORCE INDEX (decisions_payment)"
		c.within.and("payment_id = ?", f.PaymentID)
	}
	if f.NotBy != "" {
		names, err := mysql.NamesOf(s.read(ctx), f.NotBy)
		if err != nil {
			return staff.ListTotal{}, err
		}
		c.fits.and("decided_by NOT IN ?", names)
	}
	return s.total(ctx, c)
}

// BreakTotal counts the breaks of Breaks, ignoring place and limit, and adds up their amounts: what
// moved or was booked when reconciliation recorded it, else the payment's amount. A payment with
// several breaks counts in each. WithoutAmount counts those about no payment and no amount. Errors:
// ErrUnavailable.
func (s *Source) BreakTotal(ctx context.Context, f staff.BreakFilter) (staff.ListTotal, error) {
	c := counting{columns: "NULLIF(amount, 0) AS x, payment_id AS y", join: " LEFT JOIN payments p ON p.id = f.y AND f.fits AND f.x IS NULL",
		sum: "IF(f.fits, COALESCE(f.x, p.amount), 0)", without: "f.fits AND f.x IS NULL AND p.id IS NULL"}
	kind, resolved, created := &c.fits, &c.fits, &c.fits
	switch {
	case f.PacketID != "":
		c.from, kind = "breaks FORCE INDEX (breaks_packet)", &c.within
		c.within.and("packet_id = ?", f.PacketID)
	case f.ReconciliationID != "":
		c.from, kind = "breaks FORCE INDEX (breaks_reconciliation)", &c.within
		c.within.and("reconciliation_id = ?", f.ReconciliationID)
	case f.Resolved != nil:
		c.from, resolved = "breaks FORCE INDEX (breaks_open)", &c.within
		if !*f.Resolved {
			created = &c.within
		}
	default:
		c.from, created = "breaks FORCE INDEX (breaks_created)", &c.within
		c.within.and("created_at >= ?", mysql.EverBefore)
	}
	if f.PacketID != "" && f.ReconciliationID != "" {
		c.fits.and("reconciliation_id = ?", f.ReconciliationID)
	}
	if f.Kind != "" {
		kind.and("kind = ?", string(f.Kind))
	}
	if f.Resolved != nil && *f.Resolved {
		resolved.and("resolved_at IS NOT NULL")
	} else if f.Resolved != nil {
		resolved.and("resolved_at IS NULL")
	}
	if !f.CreatedTo.IsZero() {
		created.and("created_at <= ?", f.CreatedTo.UTC())
	}
	return s.total(ctx, c)
}

// AuditTotal counts the entries of Audit, ignoring place and limit. Errors: ErrUnavailable.
func (s *Source) AuditTotal(ctx context.Context, f staff.AuditFilter) (staff.ListTotal, error) {
	index := auditIndex(f)
	c := counting{from: "audit FORCE INDEX (" + index + ")", columns: none, sum: none, without: none}
	for _, eq := range []struct{ index, column, value string }{{"audit_subject", "subject", f.Subject}, {"audit_actor", "actor", f.Actor},
		{"audit_action", "action", f.Action}} {
		switch {
		case eq.value == "":
		case eq.index == index:
			c.within.and(eq.column+" = ?", eq.value)
		default:
			c.fits.and(eq.column+" = ?", eq.value)
		}
	}
	if f.From.IsZero() {
		f.From = mysql.EverBefore
	}
	c.within.span("at", f.From, f.To)
	return s.total(ctx, c)
}
