package rest

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// Sizes of a page.
const (
	DefaultLimit = 50
	maxLimit     = 200
)

// readQuery returns the parameters of a request. Unknown parameters are faults: a filter that is not applied would
// mislead.
func readQuery(r *Request) *Object { return queryObject(r.parameters()) }

// CheckQuery refuses a query that cannot be decoded, and any query of a route without parameters:
// what is not applied would mislead, such as a dry_run that belongs into the body.
func (r *Request) CheckQuery() error {
	if _, err := url.QueryUnescape(string(r.C.Context().URI().QueryString())); err != nil {
		return InvalidField("query", FaultFormat, "is not percent-encoded")
	}
	if r.Route.hasQuery() {
		return nil
	}
	return readQuery(r).Done()
}

// CursorFault is the message about a cursor that is not of its list.
const CursorFault = "must be the next_cursor of a page of this list"

// BadCursor refuses a cursor that is not of its list.
func BadCursor() error { return InvalidField("cursor", FaultFormat, CursorFault) }

// MaxMs is the last millisecond that a time may have.
const MaxMs = packet.MaxMillis

// inMySQLRange reports whether MySQL can compare with a time: a forged cursor may contain any
// number.
func inMySQLRange(at time.Time) bool {
	ms := at.UnixMilli()
	return ms >= 0 && ms <= MaxMs
}

// EncodeCursor returns the opaque text of a position in a list.
func EncodeCursor(position any) *string {
	b, err := json.Marshal(position)
	if err != nil {
		return nil // positions are plain structs
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	return &text
}

// DecodeCursor parses a cursor strictly: cursors that this API did not issue are refused.
func DecodeCursor(text string, position any) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	if err := json.Unmarshal(b, position, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	return nil
}

// Listing is a list of items I with the filter F. Its page and its file are made from it.
type Listing[F, I any] struct {
	Name string // in cursors and files
	ID   string // the kind of thing in its cursors
	// read returns up to limit items, newest first, and the position of the last if there are more.
	Read func(ctx context.Context, of Selection[F]) ([]I, *Position, error)
}

// Selection is what a list is asked for.
type Selection[F any] struct {
	Filter F
	Within string // the thing whose items are listed; "": those of the caller, or all
	Caller *Caller
	Now    time.Time // of the first page, so that all pages use the same time
	After  Position
	Limit  int
}

// OlderThan returns the latest time of what is at least some seconds old; the zero time without them.
func OlderThan(now time.Time, seconds *int64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(*seconds) * time.Second)
}

// Position is that of an item in a list.
type Position struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// Cursor returns the position as stores have it.
func (p Position) Cursor() packet.Cursor { return packet.Cursor{At: p.At, ID: p.ID} }

// pageCursor is a position with what the pages of a list share.
type pageCursor struct {
	List    string            `json:"l"`
	Owner   string            `json:"o"`
	Filters map[string]string `json:"f,omitempty"`
	Now     time.Time         `json:"now"`
	Position
}

// PageParams select a page.
type PageParams struct {
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"200" doc:"Items per page, 50 by default." example:"50"`
	Cursor string `json:"cursor,omitempty" check:"cursor" doc:"next_cursor of the previous page. It keeps filters and order."`
}

func checkCursor(s string) *Fault {
	if s == "" {
		return &Fault{FaultFormat, "must be the next_cursor of a page"}
	}
	return nil
}

// Filtered asks for what a filter selects, listed for a page of it.
type Filtered[F any] struct {
	Asked
	Filter F `in:"query"`
}

// Listed asks for a page of what a filter selects.
type Listed[F any] struct {
	Asked
	Filter F          `in:"query"`
	Page   PageParams `in:"query"`
}

// Page returns the operation that answers with a page.
func (l Listing[F, I]) Page() Operation[Listed[F], wire.List[I]] {
	bind := BinderOf(typeOf[F]())
	return func(ctx context.Context, in *Listed[F]) (*wire.List[I], error) {
		return l.readPage(ctx, in, bind, "")
	}
}

// ofUser asks for a page of what a user has.
type ofUser[F any] struct {
	Listed[F]
	User string `path:"user_id" of:"user"`
}

// UserPage returns the operation that answers with a page of what a user has.
func (l Listing[F, I]) UserPage() Operation[ofUser[F], wire.List[I]] {
	bind := BinderOf(typeOf[F]())
	return func(ctx context.Context, in *ofUser[F]) (*wire.List[I], error) {
		return l.readPage(ctx, &in.Listed, bind, in.User)
	}
}

// PageWithin returns a page of the items of one thing.
func (l Listing[F, I]) PageWithin(ctx context.Context, in *Listed[F], thing string) (*wire.List[I], error) {
	return l.readPage(ctx, in, BinderOf(typeOf[F]()), thing)
}

func (l Listing[F, I]) readPage(ctx context.Context, in *Listed[F], bind binder, within string) (*wire.List[I], error) {
	if within != "" {
		l.Name += " of " + within
	}
	a := Selection[F]{Filter: in.Filter, Within: within, Caller: in.Caller, Now: in.Now(), Limit: cmp.Or(in.Page.Limit, DefaultLimit)}
	kept := map[string]string{}
	for _, m := range in.parameters() {
		if m.name != "limit" && m.name != "cursor" {
			kept[m.name] = string(m.value)
		}
	}
	if in.Page.Cursor != "" {
		var err error
		if kept, err = l.resume(&a, in.Page.Cursor, kept, bind); err != nil {
			return nil, err
		}
	}
	items, next, err := l.Read(ctx, a)
	if err != nil {
		return nil, err
	}
	out := &wire.List[I]{Items: items}
	if next != nil {
		out.NextCursor = EncodeCursor(pageCursor{l.Name, a.Caller.Key.Owner, kept, a.Now, *next})
	}
	return out, nil
}

// resume parses a cursor. It keeps the filters of its list; the client may repeat but not change them.
func (l Listing[F, I]) resume(a *Selection[F], text string, given map[string]string, bind binder) (map[string]string, error) {
	var c pageCursor
	if DecodeCursor(text, &c) != nil || c.List != l.Name || c.Owner != a.Caller.Key.Owner || !things[l.ID].valid(c.ID) ||
		!inMySQLRange(c.At) || !inMySQLRange(c.Now) {
		return nil, BadCursor()
	}
	for name, value := range given {
		if kept, ok := c.Filters[name]; !ok || kept != value {
			return nil, BadCursor()
		}
	}
	var members []member
	for name, value := range c.Filters {
		members = append(members, member{name, []byte(value)})
	}
	o := queryObject(members)
	var filter F
	bind(o, reflect.ValueOf(&filter).Elem())
	if o.Done() != nil {
		return nil, BadCursor()
	}
	a.Filter, a.Now, a.After = filter, c.Now, c.Position
	return c.Filters, nil
}

// Cut renders the rows of a page; of one row more than the limit, next is the position of the last item.
func Cut[R, I any](rows []R, err error, limit int, place func(R) Position, render func(R) I) (items []I, next *Position, _ error) {
	if err == nil && len(rows) > limit {
		rows = rows[:limit]
		at := place(rows[limit-1])
		next = &at
	}
	items = make([]I, len(rows))
	for i, row := range rows {
		items[i] = render(row)
	}
	return items, next, err
}

// isNumbered checks for a prefix with a positive number.
func isNumbered(prefix string) func(string) bool {
	return func(text string) bool { return NumberOf(prefix, text) > 0 }
}

// NumberOf returns the number after a prefix; 0: it has another form.
func NumberOf(prefix, text string) int64 {
	digits, ok := strings.CutPrefix(text, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 1 || strconv.FormatInt(n, 10) != digits {
		return 0
	}
	return n
}

// SumOf renders a total, without an amount when it did not reach the end.
func SumOf(found staff.ListTotal, err error) (*wire.ListSum, error) {
	out := &wire.ListSum{ListCount: wire.ListCount{Count: found.Count, More: found.AtLeast}}
	if !found.AtLeast {
		out.Amount = &found.Amount
	}
	return out, err
}
