package api

import (
	"testing"
	"time"

	"hongbao/internal/packet"
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
	at := place{packet.Cursor{At: time.UnixMilli(1771200000123).UTC(), ID: packet.NewID([]byte("s"), "k")}}
	both := map[string]string{"sender_id": "u", "status": "open"}
	cursor := *at.cursor("packets", both)
	for name, tc := range map[string]struct {
		list   string
		cursor string
		given  map[string]string
		ok     bool
	}{
		"filters repeated": {"packets", cursor, both, true},
		"one repeated":     {"packets", cursor, map[string]string{"status": "open"}, true},
		"none repeated":    {"packets", cursor, nil, true},
		"another value":    {"packets", cursor, map[string]string{"status": "closed"}, false},
		"one more":         {"packets", *at.cursor("packets", nil), map[string]string{"status": "open"}, false},
		"no filters":       {"packets", *at.cursor("packets", nil), nil, true},
		"another list":     {"sent", cursor, nil, false},
		"another list's":   {"packets", *encodeCursor(grabCursor{PacketID: at.ID}), nil, false},
		"no id":            {"packets", *place{packet.Cursor{At: at.At}}.cursor("packets", nil), nil, false},
		"before time":      {"packets", *place{packet.Cursor{At: time.UnixMilli(-1), ID: at.ID}}.cursor("packets", nil), nil, false},
		"after time": {"packets", *place{packet.Cursor{At: time.UnixMilli(maxMs + 1), ID: at.ID}}.cursor("packets", nil), nil,
			false},
		"not made by us":     {"packets", "e30", nil, false},
		"a beginning's none": {"packets", "", both, true},
	} {
		got, filters, err := resume(tc.cursor, tc.list, tc.given)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && tc.cursor != "" && got != at.Cursor {
			t.Errorf("%s: %+v", name, got)
		}
		if err == nil && tc.cursor == cursor && filters["sender_id"] != "u" {
			t.Errorf("%s: filters %v", name, filters)
		}
	}
}
