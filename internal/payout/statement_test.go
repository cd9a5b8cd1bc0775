package payout

import (
	"testing"
	"time"
)

const newYear = Day("2026-02-17")

func TestDay(t *testing.T) {
	shanghai := time.FixedZone("CST", 8*3600)
	for text, fine := range map[string]bool{"2026-02-17": true, "2024-02-29": true, "2026-02-29": false, "2026-2-17": false, "": false,
		"17.02.2026": false,
		"1999-12-31": false, "2000-01-01": true, "9998-12-31": true, "9999-12-31": false, "2026-02-17T00:00:00Z": false, " 2026-02-17": false} {
		if d, err := ParseDay(text); (err == nil) != fine || fine && string(d) != text {
			t.Errorf("%q: %q, %v", text, d, err)
		}
	}
	from, to := newYear.Span(shanghai)
	if !from.Equal(time.Date(2026, 2, 16, 16, 0, 0, 0, time.UTC)) || to.Sub(from) != 24*time.Hour {
		t.Errorf("%v to %v", from, to)
	}
	for at, want := range map[time.Time]Day{from: newYear, from.Add(-1): "2026-02-16", to.Add(-1): newYear, to: "2026-02-18"} {
		if got := DayOf(at, shanghai); got != want {
			t.Errorf("%v is of %s, want %s", at, got, want)
		}
	}
	if got := Day("2026-02-28").Add(1); got != "2026-03-01" {
		t.Error(got)
	}
	if got := Day("2026-03-01").Add(-1); got != "2026-02-28" {
		t.Error(got)
	}
}

// TestLineID: the id of a movement without an order is that of its line, and no payment has it.
func TestLineID(t *testing.T) {
	id := LineID("wechat", "1900009231201802015884652186")
	if id != LineID("wechat", "1900009231201802015884652186") || !IsLineID(id) {
		t.Errorf("%q", id)
	}
	for _, other := range []string{LineID("wechat", "1900009231201802015884652187"), LineID("sandbox", "1900009231201802015884652186")} {
		if other == id || len(other) != len(id) {
			t.Errorf("%q and %q", id, other)
		}
	}
	if _, err := Parse(id); err == nil {
		t.Error("a payment could have the id")
	}
	if IsLineID(OrderNo(ID(KindPayout, packetID, 5), 1)) || IsLineID(ID(KindPayout, packetID, 5)) {
		t.Error("an order number is not such an id")
	}
	for _, op := range StatementOps {
		if _, known := transferAccounts[TransferKind(op)]; op.WithoutOrder() && (!known || TransferKind(op).Op(KindPayout) != op) {
			t.Errorf("%s is posted as no kind", op)
		}
	}
}
