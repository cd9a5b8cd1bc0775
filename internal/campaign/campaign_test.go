package campaign

import (
	"errors"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestOpening: the same local time, on days that are an hour longer or shorter, too.
func TestOpening(t *testing.T) {
	for _, c := range []struct {
		zone   string
		minute int
		day    payout.Day
		want   string
	}{
		{"Asia/Shanghai", 20 * 60, "2026-02-17", "2026-02-17T12:00:00Z"},
		{"Asia/Shanghai", 5, "2026-02-17", "2026-02-16T16:05:00Z"},
		{"UTC", 0, "2028-02-29", "2028-02-29T00:00:00Z"},
		{"America/New_York", 20 * 60, "2026-03-07", "2026-03-08T01:00:00Z"},
		{"America/New_York", 20 * 60, "2026-03-08", "2026-03-09T00:00:00Z"},   // clocks were put forward
		{"America/New_York", 2*60 + 30, "2026-03-08", "2026-03-08T07:30:00Z"}, // a time that is skipped
		{"America/New_York", 60 + 30, "2026-11-01", "2026-11-01T05:30:00Z"},   // the first of two
		{"Europe/Berlin", 2*60 + 30, "2026-03-29", "2026-03-29T01:30:00Z"},
		{"Europe/Berlin", 2*60 + 30, "2026-10-25", "2026-10-25T00:30:00Z"},
		{"Europe/Berlin", 60 + 59, "2026-03-29", "2026-03-29T00:59:00Z"},
		{"Europe/Berlin", 3 * 60, "2026-03-29", "2026-03-29T01:00:00Z"},
		{"Europe/London", 60 + 30, "2026-03-29", "2026-03-29T01:30:00Z"},
		{"Europe/London", 60 + 30, "2026-10-25", "2026-10-25T00:30:00Z"},
		{"Australia/Lord_Howe", 2*60 + 15, "2026-10-04", "2026-10-03T15:45:00Z"}, // by half an hour
		{"Pacific/Apia", 20 * 60, "2011-12-30", "2011-12-31T06:00:00Z"},          // a whole day was left out
		{"Asia/Kathmandu", 23*60 + 59, "2026-12-31", "2026-12-31T18:14:00Z"},
	} {
		got, err := Campaign{Zone: c.zone, Minute: c.minute}.OpensAt(c.day)
		if err != nil || !got.Equal(at(c.want)) {
			t.Errorf("%s %d on %s: %v, %v, want %s", c.zone, c.minute, c.day, got, err, c.want)
		}
	}
	if _, err := (Campaign{Zone: "Moon/Base"}).OpensAt("2026-01-01"); err == nil {
		t.Error("a zone that is none")
	}
	if _, err := (Campaign{Zone: "UTC"}).OpensAt("2026-02-30"); !errors.Is(err, payout.ErrBadDay) {
		t.Errorf("a day that is none: %v", err)
	}
}

func TestNext(t *testing.T) {
	c := Campaign{Zone: "Asia/Shanghai", Minute: 20 * 60, StartsOn: "2026-02-10", EndsOn: "2026-02-12"}
	for _, one := range []struct {
		after string
		want  payout.Day
	}{
		{"2026-01-01T00:00:00Z", "2026-02-10"},
		{"2026-02-10T11:59:59Z", "2026-02-10"},
		{"2026-02-10T12:00:00Z", "2026-02-11"}, // opens then, not after
		{"2026-02-11T16:00:00Z", "2026-02-12"}, // midnight there
		{"2026-02-12T12:00:00Z", ""},
		{"2027-01-01T00:00:00Z", ""},
	} {
		day, opens, err := c.Next(at(one.after))
		if err != nil || day != one.want || (day == "") != opens.IsZero() || day != "" && !opens.After(at(one.after)) {
			t.Errorf("after %s: %s at %v, %v, want %s", one.after, day, opens, err, one.want)
		}
	}
	if day, _, err := c.DayAfter("2026-02-12"); day != "" || err != nil {
		t.Errorf("after the last day: %s, %v", day, err)
	}
	if day, opens, err := c.DayAfter("2026-02-11"); day != "2026-02-12" || !opens.Equal(at("2026-02-12T12:00:00Z")) || err != nil {
		t.Errorf("after a day: %s, %v, %v", day, opens, err)
	}
	c.EndsOn = ""
	if day, _, _ := c.Next(at("2030-05-05T12:00:00Z")); day != "2030-05-06" {
		t.Errorf("without an end: %s", day)
	}
}

// TestR1_PacketOfADay: only campaign and day decide id and hash, so that concurrent creation makes
// the same packet.
func TestR1_PacketOfADay(t *testing.T) {
	salt := []byte("an app's salt")
	id := NewID(salt, "order-4711")
	if id == packet.NewID(salt, "order-4711") || id != NewID(salt, "order-4711") || id == NewID(salt, "order-4712") {
		t.Errorf("id %s", id)
	}
	c := Campaign{ID: id, App: "app", Salt: NewSalt(salt, id), BodyHash: "h",
		Template: Template{Packet: packet.Packet{SenderID: "u1", TotalAmount: 100, ShareCount: 2, EligibleCount: 3}}}
	one, again, other := c.PacketOf("2026-02-10", [32]byte{1}), c.PacketOf("2026-02-10", [32]byte{1}), c.PacketOf("2026-02-11", [32]byte{1})
	if one.ID != c.PacketID("2026-02-10") || one.ID != again.ID || one.BodyHash != again.BodyHash || one.Commitment != again.Commitment {
		t.Errorf("%+v and %+v", one, again)
	}
	if one.ID == other.ID || one.BodyHash == other.BodyHash || one.Commitment == other.Commitment || !packet.ValidID(one.ID) ||
		len(one.BodyHash) != 64 {
		t.Errorf("%+v and %+v", one, other)
	}
	if one.App != "app" || one.SenderID != "u1" || one.TotalAmount != 100 || one.EligibleCount != 3 {
		t.Errorf("%+v", one)
	}
	if one.ID[:10] != id[:10] || other.ID[:10] != id[:10] {
		t.Errorf("%s and %s of campaign %s are in other lanes than it", one.ID, other.ID, id)
	}
	if second := (Campaign{ID: id, Salt: NewSalt([]byte("another salt"), id)}); second.PacketID("2026-02-10") == one.ID {
		t.Error("another app's campaign makes packets with our ids")
	}
}
