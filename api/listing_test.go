package api

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// TestYearOf: a year is that of the time zone, and its ends fit MySQL.
func TestYearOf(t *testing.T) {
	for _, tc := range []struct {
		year     int
		zone     string
		from, to string
	}{
		{2026, "Asia/Shanghai", "2025-12-31T16:00:00Z", "2026-12-31T16:00:00Z"},
		{2026, "UTC", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{2026, "America/New_York", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"},
		{2000, "Pacific/Kiritimati", "1999-12-31T10:00:00Z", "2000-12-31T10:00:00Z"},
		{9999, "Asia/Kathmandu", "9998-12-31T18:15:00Z", "9999-12-31T18:15:00Z"},
		{9999, "America/New_York", "9999-01-01T05:00:00Z", "9999-12-31T23:59:59.999Z"},
	} {
		loc, err := zone(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		in := yearOf(tc.year, loc)
		if from, to := in.From.UTC().Format(time.RFC3339Nano), in.To.UTC().Format(time.RFC3339Nano); from != tc.from || to != tc.to {
			t.Errorf("%d in %s: %s to %s", tc.year, tc.zone, from, to)
		}
	}
	for _, bad := range []string{"", "Local", "Mars/Olympus", "right/Asia/Shanghai", "posix/UTC", "localtime", "posixrules", "Factory",
		"../etc/passwd", "/etc/localtime", "+08:00"} {
		if _, err := zone(bad); err == nil {
			t.Errorf("%q is a time zone", bad)
		}
	}
}

// TestResume: a cursor continues its own list with its own filters.
func TestResume(t *testing.T) {
	at := position{time.UnixMilli(1771200000123).UTC(), packet.NewID([]byte("s"), "k")}
	cursor := func(list, owner string, filters map[string]string, at position) string {
		return *encodeCursor(pageCursor{list, owner, filters, at.At, at})
	}
	both, open := map[string]string{"sender_id": "u", "status": "open"}, map[string]string{"status": "open"}
	good := cursor("packets", "", both, at)
	bind := binderOf(typeOf[wire.PacketFilter]())
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
		"another form":     {*encodeCursor(grabCursor{PacketID: at.ID}), nil, false},
		"no id":            {cursor("packets", "", nil, position{At: at.At}), nil, false},
		"before time":      {cursor("packets", "", nil, position{time.UnixMilli(-1), at.ID}), nil, false},
		"not made by us":   {"e30", nil, false},
	} {
		of := selection[wire.PacketFilter]{caller: anonymous}
		_, err := (&Server{}).packets().resume(&of, tc.cursor, tc.given, bind)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && of.after != at {
			t.Errorf("%s: %+v", name, of.after)
		}
		if err == nil && tc.cursor == good && of.filter.SenderID != "u" {
			t.Errorf("%s: filter %+v", name, of.filter)
		}
	}
}
