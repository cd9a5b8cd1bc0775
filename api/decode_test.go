package api

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"hongbao/wire"
)

// FuzzCreate: whatever comes, it is refused with a known code or read the same
// way by its own canonical form.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{
		`{"sender_id":"u1","total_amount":10,"share_count":2}`,
		`{"sender_id":"u1","total_amount":10,"share_count":2,"metadata":{"a":"b"},"eligible_user_ids":["x"],"opens_at":"2026-01-01T00:00:00Z","max_share":9,"group_id":"g"}`,
		`{"sender_id":"\ud800"}`, `[]`, `{"a":1,"a":2}`, `{"total_amount":1e400}`, `{"metadata":{"":1}}`, "\xff", `{"share_count":-0}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := readCreate(body)
		if err != nil {
			r := asRefusal(err)
			if r.code != wire.CodeMalformedJSON && r.code != wire.CodeInvalidRequest || r.code == wire.CodeInvalidRequest && len(r.fields) == 0 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q: accepted", body)
		}
		hash, err := bodyHash(q)
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := json.Marshal(map[string]any{"sender_id": q.SenderID, "total_amount": q.Total, "share_count": q.Count, "split": q.Split,
			"min_share": q.MinShare, "max_share": orNil(q.MaxShare), "currency": q.Currency, "greeting": q.Greeting, "opens_at": q.OpensAt,
			"expires_in_seconds": q.Life, "eligible_user_ids": q.Eligible, "group_id": q.GroupID, "metadata": q.Metadata})
		if err != nil {
			t.Fatal(err)
		}
		again, err := readCreate(canonical)
		if err != nil {
			t.Fatalf("%q became %q: %v", body, canonical, err)
		}
		if second, err := bodyHash(again); err != nil || second != hash {
			t.Fatalf("%q and %q differ", body, canonical)
		}
	})
}

func orNil[T ~int64](n T) any {
	if n == 0 {
		return nil
	}
	return n
}

// FuzzCursor: a cursor that we did not make is refused, never trusted.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add("e30")
	f.Add(*encodeCursor(grabCursor{PacketID: "x", Share: 2, Before: 2}))
	f.Add(*encodeCursor(pageCursor{List: "payouts", Filters: map[string]string{"status": "paid"}, Now: time.UnixMilli(1),
		position: position{time.UnixMilli(1), "p3q5k9v0c1m7e2u8h4r6t0003"}}))
	f.Fuzz(func(t *testing.T, text string) {
		var g grabCursor
		if decodeCursor(text, &g) == nil {
			if again := *encodeCursor(g); decodeCursor(again, &grabCursor{}) != nil {
				t.Fatalf("%q", text)
			}
		}
		bind := binderOf(typeOf[wire.PayoutFilter]())
		of, again := selection[wire.PayoutFilter]{caller: anonymous}, selection[wire.PayoutFilter]{caller: anonymous}
		if kept, err := (&Server{}).payouts().list().resume(&of, text, nil, bind); err == nil {
			next := *encodeCursor(pageCursor{"payouts", "", kept, of.now, of.after})
			if _, err := (&Server{}).payouts().list().resume(&again, next, nil, bind); err != nil || !reflect.DeepEqual(of, again) || !inMySQLRange(of.after.At) {
				t.Fatalf("%q: %+v, %+v, %v", text, of, again, err)
			}
		}
	})
}

// TestCache: bounded, and what is asked for stays.
func TestCache(t *testing.T) {
	c := newCache[int](100)
	key := func(i int) string { return string(rune('a'+i%26)) + string(rune('0'+i/26)) }
	for i := range 1000 {
		c.put(key(i), i)
		c.put("kept", -1)
		if len(c.young)+len(c.old) > 100 {
			t.Fatalf("%d values", len(c.young)+len(c.old))
		}
	}
	if v, ok := c.get("kept"); !ok || v != -1 {
		t.Error("what was asked for all the time is gone")
	}
	if _, ok := c.get(key(0)); ok {
		t.Error("the first one is still there")
	}
}

func TestParseTime(t *testing.T) {
	want := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"2026-02-17T12:00:00Z", "2026-02-17T12:00:00.000Z", "2026-02-17T20:00:00+08:00", "2026-02-17T12:00:00-00:00",
		"2026-02-18T11:59:00+23:59"} {
		if at, err := parseTime(s); err != nil || !at.Equal(want) {
			t.Errorf("%q: %v %v", s, at, err)
		}
	}
	// What is not RFC 3339, although time.Parse takes it.
	for _, s := range []string{"2026-02-17T1:00:00Z", "2026-02-17T12:00:00,5Z", "2026-02-17T12:00:00+24:00", "2026-02-17T12:00:00+08:60"} {
		if at, err := parseTime(s); err == nil {
			t.Errorf("%q: %v", s, at)
		}
	}
}
