package api

import (
	"maps"
	"time"

	"hongbao/internal/packet"
)

// placeCursor is the last item of a page of a list ordered by time, with the list's name and
// filters: a cursor continues only its own list.
type placeCursor struct {
	List    string            `json:"l"`
	Filters map[string]string `json:"f"`
	At      int64             `json:"t"` // ms
	ID      string            `json:"id"`
}

// place is the position at which the next page of a list begins.
type place struct{ packet.Cursor }

func (p place) cursor(list string, filters map[string]string) *string {
	return encodeCursor(placeCursor{List: list, Filters: filters, At: p.At.UnixMilli(), ID: p.ID})
}

// resume parses a cursor; "" begins the list. A cursor keeps the filters of its list; the
// client may repeat but not change them.
func resume(cursor, list string, given map[string]string) (after packet.Cursor, filters map[string]string, err error) {
	if cursor == "" {
		return packet.Cursor{}, given, nil
	}
	var c placeCursor
	if decodeCursor(cursor, &c) != nil || c.List != list || !packet.ValidID(c.ID) || c.At < 0 || c.At > maxMs {
		return packet.Cursor{}, nil, badCursor()
	}
	both := maps.Clone(c.Filters)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, given)
	if !maps.Equal(both, c.Filters) {
		return packet.Cursor{}, nil, badCursor()
	}
	return packet.Cursor{At: time.UnixMilli(c.At).UTC(), ID: c.ID}, c.Filters, nil
}
