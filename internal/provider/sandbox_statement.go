package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

const (
	// statementLines is the number of lines of a page.
	statementLines = 1000
	// statementBytes bounds a page: a thousand lines of at most a kilobyte.
	statementBytes = 1 << 20
)

// statementAnswer is one page of a day's statement.
type statementAnswer struct {
	Date      string           `json:"date"`
	Items     *[]statementItem `json:"items"`
	NextAfter *uint64          `json:"next_after"`
}

// statementItem is one line. Unknown members are allowed: providers add some.
type statementItem struct {
	Seq     uint64    `json:"seq"`
	Op      payout.Op `json:"op"`
	OrderNo string    `json:"order_no"`
	Account string    `json:"account"`
	Amount  money.Fen `json:"amount"`
	At      time.Time `json:"at"`
}

// Zone is the time zone of the days of the statement.
func (s *Sandbox) Zone() *time.Location { return time.UTC }

// Statement reads one page of a day's statement: every movement of our money at the provider, also
// under order numbers that we do not know. after is "" or the Next of the previous page. A line
// with a missing member, out of order or of another day makes the whole page an error: an
// incomplete statement must not be compared. Errors wrap ErrAnswer; the call may be repeated.
func (s *Sandbox) Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error) {
	fail := func(err error) (payout.StatementPage, error) {
		return payout.StatementPage{}, fmt.Errorf("statement of %s: %w: %w", day, ErrAnswer, err)
	}
	query := url.Values{"date": {string(day)}, "limit": {strconv.Itoa(statementLines)}}
	var from uint64
	if after != "" {
		var err error
		if from, err = strconv.ParseUint(after, 10, 64); err != nil {
			return fail(err)
		}
		query.Set("after", after)
	}
	a := s.callUpTo(ctx, http.MethodGet, "/v1/statement?"+query.Encode(), nil, statementBytes)
	switch {
	case a.err != nil:
		return fail(a.err)
	case a.status != http.StatusOK:
		return fail(fmt.Errorf("status %d", a.status))
	}
	var v statementAnswer
	if err := json.Unmarshal(a.body, &v); err != nil {
		return fail(err)
	}
	page, err := v.page(day, from, s.Zone())
	if err != nil {
		return fail(err)
	}
	return page, nil
}

var errStatement = errors.New("statement is not well formed")

// page checks an answer and returns its lines.
func (v statementAnswer) page(day payout.Day, after uint64, zone *time.Location) (payout.StatementPage, error) {
	var out payout.StatementPage
	if v.Date != string(day) || v.Items == nil {
		return out, fmt.Errorf("%w: date %q", errStatement, v.Date)
	}
	from, to := day.Span(zone)
	last := from
	for _, item := range *v.Items {
		switch {
		case item.Seq <= after:
			return out, fmt.Errorf("%w: line %d after line %d", errStatement, item.Seq, after)
		case item.Amount < 1 || item.Amount.Check() != nil || !slices.Contains(payout.StatementOps, item.Op),
			!item.Op.WithoutOrder() && (item.OrderNo == "" || item.Account == ""):
			return out, fmt.Errorf("%w: line %d", errStatement, item.Seq)
		case item.At.Before(last) || !item.At.Before(to):
			return out, fmt.Errorf("%w: line %d is dated %s", errStatement, item.Seq, item.At.Format(time.RFC3339Nano))
		}
		after, last = item.Seq, item.At
		out.Lines = append(out.Lines, payout.StatementLine{Ref: strconv.FormatUint(item.Seq, 10), Op: item.Op, OrderNo: item.OrderNo,
			Account: item.Account, Amount: item.Amount, At: item.At.UTC()})
	}
	out.Last = strconv.FormatUint(after, 10)
	if v.NextAfter != nil {
		if len(out.Lines) == 0 || *v.NextAfter != after {
			return out, fmt.Errorf("%w: it continues after line %d, but ends with line %d", errStatement, *v.NextAfter, after)
		}
		out.Next = out.Last
	}
	return out, nil
}
