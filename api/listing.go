package api

import (
	"cmp"
	"context"
	"reflect"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// listing is a list of items I with the filter F. Its page and its file are made from it.
type listing[F, I any] struct {
	name string // in cursors and files
	id   string // the kind of thing in its cursors
	// read returns up to limit items, newest first, and the position of the last if there are more.
	read func(ctx context.Context, of selection[F]) ([]I, *position, error)
}

// selection is what a list is asked for.
type selection[F any] struct {
	filter F
	within string // the thing whose items are listed; "": those of the caller, or all
	caller *Caller
	now    time.Time // of the first page, so that all pages use the same time
	after  position
	limit  int
}

// olderThan returns the latest time of what is at least some seconds old; the zero time without them.
func olderThan(now time.Time, seconds *int64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(*seconds) * time.Second)
}

// position is that of an item in a list.
type position struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

func (p position) cursor() packet.Cursor { return packet.Cursor{At: p.At, ID: p.ID} }

// pageCursor is a position with what the pages of a list share.
type pageCursor struct {
	List    string            `json:"l"`
	Owner   string            `json:"o"`
	Filters map[string]string `json:"f,omitempty"`
	Now     time.Time         `json:"now"`
	position
}

// pageParams select a page.
type pageParams struct {
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"200" doc:"Items per page, 50 by default." example:"50"`
	Cursor string `json:"cursor,omitempty" check:"cursor" doc:"next_cursor of the previous page. It keeps filters and order."`
}

func checkCursor(s string) *fault {
	if s == "" {
		return &fault{faultFormat, "must be the next_cursor of a page"}
	}
	return nil
}

// filtered asks for what a filter selects, listed for a page of it.
type filtered[F any] struct {
	Asked
	Filter F `in:"query"`
}

type listed[F any] struct {
	Asked
	Filter F          `in:"query"`
	Page   pageParams `in:"query"`
}

// page returns the operation that answers with a page.
func (l listing[F, I]) page() operation[listed[F], wire.List[I]] {
	bind := binderOf(typeOf[F]())
	return func(ctx context.Context, in *listed[F]) (*wire.List[I], error) {
		return l.readPage(ctx, in, bind, "")
	}
}

// ofUser asks for a page of what a user has.
type ofUser[F any] struct {
	listed[F]
	User string `path:"user_id" of:"user"`
}

// userPage returns the operation that answers with a page of what a user has.
func (l listing[F, I]) userPage() operation[ofUser[F], wire.List[I]] {
	bind := binderOf(typeOf[F]())
	return func(ctx context.Context, in *ofUser[F]) (*wire.List[I], error) {
		return l.readPage(ctx, &in.listed, bind, in.User)
	}
}

func (l listing[F, I]) readPage(ctx context.Context, in *listed[F], bind binder, within string) (*wire.List[I], error) {
	if within != "" {
		l.name += " of " + within
	}
	a := selection[F]{filter: in.Filter, within: within, caller: in.caller, now: in.now(), limit: cmp.Or(in.Page.Limit, defaultLimit)}
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
	items, next, err := l.read(ctx, a)
	if err != nil {
		return nil, err
	}
	out := &wire.List[I]{Items: items}
	if next != nil {
		out.NextCursor = encodeCursor(pageCursor{l.name, a.caller.key.Owner, kept, a.now, *next})
	}
	return out, nil
}

// resume parses a cursor. It keeps the filters of its list; the client may repeat but not change them.
func (l listing[F, I]) resume(a *selection[F], text string, given map[string]string, bind binder) (map[string]string, error) {
	var c pageCursor
	if decodeCursor(text, &c) != nil || c.List != l.name || c.Owner != a.caller.key.Owner || !things[l.id].valid(c.ID) ||
		!inMySQLRange(c.At) || !inMySQLRange(c.Now) {
		return nil, badCursor()
	}
	for name, value := range given {
		if kept, ok := c.Filters[name]; !ok || kept != value {
			return nil, badCursor()
		}
	}
	var members []member
	for name, value := range c.Filters {
		members = append(members, member{name, []byte(value)})
	}
	o := queryObject(members)
	var filter F
	bind(o, reflect.ValueOf(&filter).Elem())
	if o.done() != nil {
		return nil, badCursor()
	}
	a.filter, a.now, a.after = filter, c.Now, c.position
	return c.Filters, nil
}

// cut renders the rows of a page; of one row more than the limit, next is the position of the last item.
func cut[R, I any](rows []R, err error, limit int, place func(R) position, render func(R) I) (items []I, next *position, _ error) {
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
	return func(text string) bool { return numberOf(prefix, text) > 0 }
}

// numberOf returns the number after a prefix; 0: it has another form.
func numberOf(prefix, text string) int64 {
	digits, ok := strings.CutPrefix(text, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 1 || strconv.FormatInt(n, 10) != digits {
		return 0
	}
	return n
}

// sumOf renders a total, without an amount when it did not reach the end.
func sumOf(found staff.ListTotal, err error) (*wire.ListSum, error) {
	out := &wire.ListSum{ListCount: wire.ListCount{Count: found.Count, More: found.AtLeast}}
	if !found.AtLeast {
		out.Amount = &found.Amount
	}
	return out, err
}
