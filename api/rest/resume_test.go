package rest

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// TestResume: a cursor continues its own list with its own filters.
func TestResume(t *testing.T) {
	at := Position{time.UnixMilli(1771200000123).UTC(), packet.NewID([]byte("s"), "k")}
	cursor := func(list, owner string, filters map[string]string, at Position) string {
		return *EncodeCursor(pageCursor{list, owner, filters, at.At, at})
	}
	both, open := map[string]string{"sender_id": "u", "status": "open"}, map[string]string{"status": "open"}
	good := cursor("packets", "", both, at)
	list := Listing[wire.PacketFilter, wire.Packet]{Name: "packets", ID: "packet"}
	bind := BinderOf(typeOf[wire.PacketFilter]())
	for name, tc := range map[string]struct {
		cursor string
		given  map[string]string
		ok     bool
	}{
		"filters repeated": {good, both, true},
		"one repeated":     {good, open, true},
		"none repeated":    {good, nil, true},
		"another value":    {good, map[string]string{"status": "closed"}, false},
		"one more":         {cursor("packets", "", nil, at), open, false},
		"no filters":       {cursor("packets", "", nil, at), nil, true},
		"a wrong filter":   {cursor("packets", "", map[string]string{"status": "x"}, at), nil, false},
		"another list's":   {cursor("sent packets of u", "", both, at), nil, false},
		"another app's":    {cursor("packets", "other", both, at), nil, false},
		"another form":     {*EncodeCursor(otherCursor{PacketID: at.ID}), nil, false},
		"no id":            {cursor("packets", "", nil, Position{At: at.At}), nil, false},
		"before time":      {cursor("packets", "", nil, Position{time.UnixMilli(-1), at.ID}), nil, false},
		"not made by us":   {"e30", nil, false},
	} {
		of := Selection[wire.PacketFilter]{Caller: &Caller{}}
		_, err := list.resume(&of, tc.cursor, tc.given, bind)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && of.After != at {
			t.Errorf("%s: %+v", name, of.After)
		}
		if err == nil && tc.cursor == good && of.Filter.SenderID != "u" {
			t.Errorf("%s: filter %+v", name, of.Filter)
		}
	}
}
