package api

import (
	"testing"
	"time"

	"hongbao/api/rest"
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
		loc, err := rest.Zone(tc.zone)
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
		if _, err := rest.Zone(bad); err == nil {
			t.Errorf("%q is a time zone", bad)
		}
	}
}
