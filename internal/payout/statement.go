package payout

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/money"
)

// OpReturn is how a statement lists money that moved and was returned (退票): under the order number
// it had moved under.
const OpReturn Op = "return"

// How a statement lists money that moves at a provider without an order of ours. The ledger has
// these movements from there, under LineID.
const (
	OpFee         Op = "fee"          // deducted by the provider
	OpFeeReturned Op = "fee_returned" // returned by the provider
	OpTopUp       Op = "top_up"       // from our bank account to the provider
	OpWithdrawal  Op = "withdrawal"   // from the provider to our bank account
)

// StatementOps lists the operations of a statement.
var StatementOps = []Op{OpCharge, OpTransfer, OpRefund, OpReturn, OpFee, OpFeeReturned, OpTopUp, OpWithdrawal}

// WithoutOrder reports whether a movement of the operation belongs to no order.
func (o Op) WithoutOrder() bool {
	return o.Fee() || o == OpTopUp || o == OpWithdrawal
}

// Fee reports whether the provider deducts or returns a fee by the operation.
func (o Op) Fee() bool { return o == OpFee || o == OpFeeReturned }

// kindLine begins the ids of movements without an order.
const kindLine = "f"

// LineID derives the id of a movement without an order from the provider's reference of its line: a
// letter and 120 bits of a SHA-256 as base32 digits, as wide as a payment id. A line that is read
// again has the same id.
func LineID(provider, ref string) string {
	sum := sha256.Sum256([]byte(provider + " " + ref))
	id := []byte(kindLine)
	for _, b := range sum[:IDLen-len(kindLine)] {
		id = append(id, digits[b&31])
	}
	return string(id)
}

// IsLineID reports whether an order number is the id of a movement without an order.
func IsLineID(no string) bool { return len(no) == IDLen && strings.HasPrefix(no, kindLine) }

// ErrBadDay is wrapped by errors about texts that are not a calendar day.
var ErrBadDay = errors.New("not a day, YYYY-MM-DD")

// Day is a day of a provider's statement, YYYY-MM-DD, in the provider's time zone.
type Day string

// The years whose days can be stored with their ends: databases have no year 10000.
const (
	FirstYear = 2000
	LastYear  = 9998
)

// ParseDay reads a day of FirstYear to LastYear. Errors wrap ErrBadDay.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < FirstYear || t.Year() > LastYear {
		return "", fmt.Errorf("%w: %q", ErrBadDay, s)
	}
	return Day(s), nil
}

// DayOf returns the day of a moment in a time zone.
func DayOf(t time.Time, zone *time.Location) Day { return Day(t.In(zone).Format(time.DateOnly)) }

// Add returns the day n days later; n may be negative.
func (d Day) Add(n int) Day {
	t, err := time.Parse(time.DateOnly, string(d))
	if err != nil {
		return d
	}
	return Day(t.AddDate(0, 0, n).Format(time.DateOnly))
}

// Span returns the first moment of the day and that of the next one.
func (d Day) Span(zone *time.Location) (from, to time.Time) {
	t, err := time.ParseInLocation(time.DateOnly, string(d), zone)
	if err != nil {
		return time.Time{}, time.Time{}
	}
	return t.UTC(), t.AddDate(0, 0, 1).UTC()
}

// StatementLine is one movement of money in a provider's statement.
type StatementLine struct {
	Ref string // the provider's id of the line, the same at every read
	Op  Op     // one of StatementOps
	// OrderNo from an adapter is the order of the movement; of a fee the order that it was deducted for, "" if the provider
	// does not say. A movement without an order is stored under LineID.
	OrderNo string
	Account string // "": the statement does not say
	Amount  money.Fen
	At      time.Time
}

// StatementPage is a part of a day's statement, in the order in which money moved.
type StatementPage struct {
	Lines []StatementLine
	// Next continues the statement; "" on its last page.
	Next string
	// Last is the position behind the page's last line: a later read from there returns what has
	// moved since. "": the provider lists no day before its end.
	Last string
}

// ReturnNotificationDelay is how long the notification of a return may take: one delivery that
// times out, and the next.
const ReturnNotificationDelay = 15 * time.Second

// ReturnWatch is the position of the search for returned payments in a provider's statement.
type ReturnWatch struct {
	Provider string
	// Day is the statement that is read, and After the position in it (StatementPage.Last);
	// "": none yet.
	Day   Day
	After string
	// Until is the time up to which returns were searched, by the clock of the statement's
	// lines. Zero: none yet, or the provider lists no day before it has ended.
	Until time.Time
}

// ReturnQuery is the outcome of a request to query the provider about a return.
type ReturnQuery int

const (
	// ReturnQueryNotNeeded means that there is nothing to query, or a query is requested already.
	ReturnQueryNotNeeded ReturnQuery = iota
	// ReturnQueryRequested means that the query is requested.
	ReturnQueryRequested
	// ReturnQueryAnswered means that the provider answered recently, and that answer stands for
	// now.
	ReturnQueryAnswered
)

// ReturnPage is a part of the returned payments of one kind of a packet.
type ReturnPage struct {
	Lines []StatementLine
	At    time.Time // time of the read, by the clock of the lines
	Next  string    // continues behind this page; "" after the last
}

// KnownReturn is what MySQL has of an order number that the provider lists as returned.
type KnownReturn struct {
	Booked         bool // its return is in the ledger
	Waiting        bool // unbooked, of a payment that waits for the provider's answer
	QueryRequested bool // a query of the provider is requested
}
