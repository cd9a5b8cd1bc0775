package rest

import (
	"reflect"
	"testing"
	"time"

	"hongbao/wire"
)

// otherCursor is the cursor of a list that has its own order.
type otherCursor struct {
	PacketID string `json:"p"`
	Share    int    `json:"s"`
}

// FuzzCursor: a cursor that we did not make is refused, never trusted.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add("e30")
	f.Add(*EncodeCursor(otherCursor{PacketID: "x", Share: 2}))
	f.Add(*EncodeCursor(pageCursor{List: "payouts", Filters: map[string]string{"status": "paid"}, Now: time.UnixMilli(1),
		Position: Position{time.UnixMilli(1), "p3q5k9v0c1m7e2u8h4r6t0003"}}))
	f.Fuzz(func(t *testing.T, text string) {
		var g otherCursor
		if DecodeCursor(text, &g) == nil {
			if again := *EncodeCursor(g); DecodeCursor(again, &otherCursor{}) != nil {
				t.Fatalf("%q", text)
			}
		}
		list := Listing[wire.PayoutFilter, wire.Payout]{Name: "payouts", ID: "payout"}
		bind := BinderOf(typeOf[wire.PayoutFilter]())
		of, again := Selection[wire.PayoutFilter]{Caller: &Caller{}}, Selection[wire.PayoutFilter]{Caller: &Caller{}}
		if kept, err := list.resume(&of, text, nil, bind); err == nil {
			next := *EncodeCursor(pageCursor{"payouts", "", kept, of.Now, of.After})
			if _, err := list.resume(&again, next, nil, bind); err != nil || !reflect.DeepEqual(of, again) || !inMySQLRange(of.After.At) {
				t.Fatalf("%q: %+v, %+v, %v", text, of, again, err)
			}
		}
	})
}

func TestParseTime(t *testing.T) {
	want := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"2026-02-17T12:00:00Z", "2026-02-17T12:00:00.000Z", "2026-02-17T20:00:00+08:00", "2026-02-17T12:00:00-00:00",
		"2026-02-18T11:59:00+23:59"} {
		if at, err := ParseTime(s); err != nil || !at.Equal(want) {
			t.Errorf("%q: %v %v", s, at, err)
		}
	}
	// What is not RFC 3339, although time.Parse takes it.
	for _, s := range []string{"2026-02-17T1:00:00Z", "2026-02-17T12:00:00,5Z", "2026-02-17T12:00:00+24:00", "2026-02-17T12:00:00+08:60"} {
		if at, err := ParseTime(s); err == nil {
			t.Errorf("%q: %v", s, at)
		}
	}
}
