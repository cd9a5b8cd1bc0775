package staff

import (
	"cmp"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// DifferenceKind says why a movement of a day is on one side only, or has different amounts.
type DifferenceKind string

// The kinds of differences.
const (
	// DifferBookedLater: in the statement of the day, and booked on a later one.
	DifferBookedLater DifferenceKind = "booked_later"
	// DifferBookedEarlier: in the statement of the day, and booked on an earlier one.
	DifferBookedEarlier DifferenceKind = "booked_earlier"
	// DifferMovedEarlier: booked on the day, and in the statement of an earlier one.
	DifferMovedEarlier DifferenceKind = "moved_earlier"
	// DifferMovedLater: booked on the day, and in the statement of a later one.
	DifferMovedLater DifferenceKind = "moved_later"
	// DifferTheirs: in the statement, and not in the ledger.
	DifferTheirs DifferenceKind = "theirs_only"
	// DifferOurs: in the ledger, and in no statement.
	DifferOurs DifferenceKind = "ours_only"
	// DifferAmount: on both sides, with different amounts.
	DifferAmount DifferenceKind = "amount_differs"
	// DifferOther: on both sides with one amount, and a break names another difference.
	DifferOther DifferenceKind = "other"
)

// DifferenceKinds lists all of them.
var DifferenceKinds = []DifferenceKind{DifferBookedLater, DifferBookedEarlier, DifferMovedEarlier, DifferMovedLater,
	DifferTheirs, DifferOurs,
	DifferAmount, DifferOther}

// Timing reports whether both sides have the movement on different days: that needs no break.
func (k DifferenceKind) Timing() bool {
	return k == DifferBookedLater || k == DifferBookedEarlier || k == DifferMovedEarlier || k == DifferMovedLater
}

// Difference is one movement in which the two sides of a day differ.
type Difference struct {
	Kind    DifferenceKind `json:"kind"`
	Op      payout.Op      `json:"op"`
	OrderNo string         `json:"order_no"`
	// Ours and Theirs are the amounts of each side on this day; 0: nothing.
	Ours   money.Fen `json:"ours"`
	Theirs money.Fen `json:"theirs"`
	// BookedAt and MovedAt are the times on each side, on any day; zero: not on that side.
	BookedAt time.Time `json:"booked_at,omitzero"`
	MovedAt  time.Time `json:"moved_at,omitzero"`
	// Breaks are those about the order number.
	Breaks []MatchBreak `json:"breaks,omitempty"`
}

// MatchBreak is a break that explains a difference.
type MatchBreak struct {
	ID   int64            `json:"id"`
	Kind payout.BreakKind `json:"kind"`
	Open bool             `json:"open"`
}

// MatchOp is one operation of a day on both sides: Theirs = Ours + Differ.
type MatchOp struct {
	Op     payout.Op `json:"op"`
	Ours   Sum       `json:"ours"`
	Theirs Sum       `json:"theirs"`
	// Differ sums the differences: theirs less ours.
	Differ Sum `json:"differ"`
}

// DifferenceSum adds up the differences of one kind and operation.
type DifferenceSum struct {
	Kind   DifferenceKind `json:"kind"`
	Op     payout.Op      `json:"op"`
	Ours   Sum            `json:"ours"`
	Theirs Sum            `json:"theirs"`
}

// MatchDifferences is how many differences are listed; all are summed.
const MatchDifferences = 1000

// DayMatch is a day of the ledger matched with the statements of its providers.
type DayMatch struct {
	MatchedAt time.Time `json:"matched_at"`
	// Entries are the transfers of the day, summed from their rows.
	Entries    map[payout.TransferKind]Sum `json:"entries"`
	Statements []*StatementMatch           `json:"statements"`
}

// Agrees reports whether both sides agree for every provider, apart from explained differences.
func (m *DayMatch) Agrees() bool {
	return !slices.ContainsFunc(m.Statements, func(s *StatementMatch) bool { return !s.Agrees() })
}

// Differences counts the differences.
func (m *DayMatch) Differences() (n int64) {
	for _, s := range m.Statements {
		n += s.Count
	}
	return n
}

// OpenBreaks counts the open breaks of the day.
func (m *DayMatch) OpenBreaks() (n int64) {
	for _, s := range m.Statements {
		n += s.OpenBreaks
	}
	return n
}

// IsOf reports whether the day was matched with what these reconciliations have read.
func (m *DayMatch) IsOf(read []Reconciliation) bool {
	return slices.EqualFunc(m.Statements, read, func(s *StatementMatch, r Reconciliation) bool { return s.ReconciliationID == r.ID })
}

// StatementMatch is a day of the ledger matched with one provider's statement of it.
type StatementMatch struct {
	Provider         string     `json:"provider"`
	Day              payout.Day `json:"day"`
	ReconciliationID string     `json:"reconciliation_id"` // the last completed one
	ReadAt           time.Time  `json:"read_at"`           // the statement is complete up to this time
	Ops              []MatchOp  `json:"ops"`

	Sums        []DifferenceSum `json:"sums"`
	Differences []Difference    `json:"differences"` // in the order of time, at most MatchDifferences
	Count       int64           `json:"count"`       // of all differences
	OpenBreaks  int64           `json:"open_breaks"` // of the day
	Unexplained int64           `json:"unexplained"` // differences that need a break and have none
}

// NewStatementMatch returns an empty match, with the operations of orders.
func NewStatementMatch(provider string, day payout.Day) *StatementMatch {
	t := &StatementMatch{Provider: provider, Day: day}
	for _, op := range []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund, payout.OpReturn} {
		t.Ops = append(t.Ops, MatchOp{Op: op})
	}
	return t
}

// Agrees reports whether both sides agree, or every difference is listed and explained.
func (t *StatementMatch) Agrees() bool {
	for _, o := range t.Ops {
		if o.Ours.Plus(o.Differ) != o.Theirs {
			return false
		}
	}
	return t.Unexplained == 0
}

func (t *StatementMatch) op(op payout.Op) *MatchOp {
	for i := range t.Ops {
		if t.Ops[i].Op == op {
			return &t.Ops[i]
		}
	}
	t.Ops = append(t.Ops, MatchOp{Op: op}) // of a statement with other operations
	return &t.Ops[len(t.Ops)-1]
}

// AddLine counts a line of the day's statement.
func (t *StatementMatch) AddLine(l DatedLine) {
	o := t.op(l.Op)
	o.Theirs = o.Theirs.Plus(Sum{1, l.Amount})
}

// AddTransfer counts a transfer of the day, if it moved money at the provider.
func (t *StatementMatch) AddTransfer(p DatedTransfer) {
	if p.Op != "" {
		o := t.op(p.Op)
		o.Ours = o.Ours.Plus(Sum{1, p.Amount})
	}
}

// AddDifference records a difference, with the breaks that explain it.
func (t *StatementMatch) AddDifference(d Difference) {
	o := t.op(d.Op)
	o.Differ = o.Differ.Plus(d.theirs()).Minus(d.ours())
	i := slices.IndexFunc(t.Sums, func(s DifferenceSum) bool { return s.Kind == d.Kind && s.Op == d.Op })
	if i < 0 {
		i = len(t.Sums)
		t.Sums = append(t.Sums, DifferenceSum{Kind: d.Kind, Op: d.Op})
	}
	t.Sums[i].Ours, t.Sums[i].Theirs = t.Sums[i].Ours.Plus(d.ours()), t.Sums[i].Theirs.Plus(d.theirs())
	t.Count++
	if !d.Kind.Timing() && len(d.Breaks) == 0 {
		t.Unexplained++
	}
	if len(t.Differences) < MatchDifferences {
		t.Differences = append(t.Differences, d)
	}
}

// Sort orders the differences by time, so that equal matches encode to equal bytes.
func (t *StatementMatch) Sort() {
	slices.SortStableFunc(t.Ops, func(a, b MatchOp) int {
		return cmp.Compare(slices.Index(payout.StatementOps, a.Op), slices.Index(payout.StatementOps, b.Op))
	})
	slices.SortFunc(t.Differences, func(a, b Difference) int {
		return cmp.Or(a.at().Compare(b.at()), cmp.Compare(a.OrderNo, b.OrderNo), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(t.Sums, func(a, b DifferenceSum) int {
		return cmp.Or(cmp.Compare(slices.Index(DifferenceKinds, a.Kind), slices.Index(DifferenceKinds, b.Kind)), cmp.Compare(a.Op, b.Op))
	})
}

func (d Difference) at() time.Time {
	if d.MovedAt.IsZero() {
		return d.BookedAt
	}
	return d.MovedAt
}

func (d Difference) ours() Sum   { return one(d.Ours) }
func (d Difference) theirs() Sum { return one(d.Theirs) }

func one(amount money.Fen) Sum {
	if amount == 0 {
		return Sum{}
	}
	return Sum{1, amount}
}

// DatedLine is a line of a statement with the day of that statement.
type DatedLine struct {
	ID  int64
	Day payout.Day
	payout.StatementLine
	Broken bool // a break is about it
}

// DatedTransfer is a ledger transfer with the operation of a statement.
type DatedTransfer struct {
	ID      int64
	Kind    payout.TransferKind
	Op      payout.Op // "": no movement at a provider
	OrderNo string
	Amount  money.Fen
	At      time.Time
}

// Movement is one movement of money, on one side or both.
type Movement struct {
	Line *DatedLine
	Post *DatedTransfer
}

// Pair pairs the lines and the transfers of order numbers: the first line of a number and operation
// with its first transfer, and so on. Both lists have to be complete for each order number.
func Pair(lines []DatedLine, posts []DatedTransfer) []Movement {
	type key struct {
		orderNo string
		op      payout.Op
	}
	slices.SortFunc(lines, func(a, b DatedLine) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(posts, func(a, b DatedTransfer) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	var out []Movement
	waiting := map[key][]int{}
	for i, l := range lines {
		k := key{l.OrderNo, l.Op}
		waiting[k] = append(waiting[k], len(out))
		out = append(out, Movement{Line: &lines[i]})
	}
	for i, p := range posts {
		if p.Op == "" {
			continue
		}
		k := key{p.OrderNo, p.Op}
		if first := waiting[k]; len(first) > 0 {
			out[first[0]].Post, waiting[k] = &posts[i], first[1:]
			continue
		}
		out = append(out, Movement{Post: &posts[i]})
	}
	return out
}

// Differ compares the two sides of a movement as far as they belong to a day. It returns false when
// they are equal, or neither belongs to the day.
func (m Movement) Differ(day payout.Day, zone *time.Location) (Difference, bool) {
	var d Difference
	var theirs, ours bool
	if m.Line != nil {
		d.Op, d.OrderNo, d.MovedAt, theirs = m.Line.Op, m.Line.OrderNo, m.Line.At, m.Line.Day == day
	}
	if m.Post != nil {
		d.Op, d.OrderNo, d.BookedAt, ours = m.Post.Op, m.Post.OrderNo, m.Post.At, payout.DayOf(m.Post.At, zone) == day
	}
	if theirs {
		d.Theirs = m.Line.Amount
	}
	if ours {
		d.Ours = m.Post.Amount
	}
	switch {
	case !theirs && !ours:
		return d, false
	case m.Post == nil:
		d.Kind = DifferTheirs
	case m.Line == nil:
		d.Kind = DifferOurs
	case theirs && ours && d.Theirs != d.Ours:
		d.Kind = DifferAmount
	case theirs && ours:
		d.Kind = DifferOther
		return d, m.Line.Broken
	case theirs && payout.DayOf(m.Post.At, zone) > day:
		d.Kind = DifferBookedLater
	case theirs:
		d.Kind = DifferBookedEarlier
	case m.Line.Day < day:
		d.Kind = DifferMovedEarlier
	default:
		d.Kind = DifferMovedLater
	}
	return d, true
}
