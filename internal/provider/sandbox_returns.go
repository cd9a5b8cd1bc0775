package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/payout"
)

// returnsAnswer is one page of returned payments.
type returnsAnswer struct {
	At        time.Time        `json:"at"`
	Items     *[]statementItem `json:"items"`
	NextAfter *string          `json:"next_after"`
}

// Returns reads one page of the returned payments of one kind of a packet, in the order of their
// numbers. after is "" or the Next of the previous page. Errors wrap ErrAnswer; the call moves
// nothing and may be repeated.
func (s *Sandbox) Returns(ctx context.Context, kind payout.Kind, packetID, after string) (payout.ReturnPage, error) {
	prefix := string(kind) + packetID
	fail := func(err error) (payout.ReturnPage, error) {
		return payout.ReturnPage{}, fmt.Errorf("returns of %s: %w: %w", prefix, ErrAnswer, err)
	}
	query := url.Values{"prefix": {prefix}, "limit": {strconv.Itoa(statementLines)}}
	if after != "" {
		query.Set("after", after)
	}
	a := s.callUpTo(ctx, http.MethodGet, "/v1/returns?"+query.Encode(), nil, statementBytes)
	switch {
	case a.err != nil:
		return fail(a.err)
	case a.status != http.StatusOK:
		return fail(fmt.Errorf("status %d", a.status))
	}
	var v returnsAnswer
	if err := json.Unmarshal(a.body, &v); err != nil {
		return fail(err)
	}
	page, err := v.page(prefix, after)
	if err != nil {
		return fail(err)
	}
	return page, nil
}

// page checks an answer and returns its lines.
func (v returnsAnswer) page(prefix, after string) (payout.ReturnPage, error) {
	if v.Items == nil || v.At.IsZero() {
		return payout.ReturnPage{}, fmt.Errorf("%w: a member is missing", errStatement)
	}
	out := payout.ReturnPage{At: v.At.UTC()}
	for _, item := range *v.Items {
		if item.OrderNo <= after || !strings.HasPrefix(item.OrderNo, prefix) || item.Op != payout.OpReturn || item.Amount < 1 ||
			item.Amount.Check() != nil || item.At.IsZero() {
			return payout.ReturnPage{}, fmt.Errorf("%w: line %d", errStatement, item.Seq)
		}
		after = item.OrderNo
		out.Lines = append(out.Lines, payout.StatementLine{Ref: strconv.FormatUint(item.Seq, 10), Op: item.Op, OrderNo: item.OrderNo,
			Account: item.Account, Amount: item.Amount, At: item.At.UTC()})
	}
	if v.NextAfter != nil {
		if len(out.Lines) == 0 || *v.NextAfter != after {
			return payout.ReturnPage{}, fmt.Errorf("%w: it continues after %q, but ends with %q", errStatement, *v.NextAfter, after)
		}
		out.Next = after
	}
	return out, nil
}
