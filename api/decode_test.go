package api

import (
	"encoding/json"
	"testing"

	"hongbao/api/rest"
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
			r := rest.AsRefusal(err)
			if r.Code != wire.CodeMalformedJSON && r.Code != wire.CodeInvalidRequest || r.Code == wire.CodeInvalidRequest && len(r.Fields) == 0 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q: accepted", body)
		}
		hash, err := rest.BodyHash(q)
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
		if second, err := rest.BodyHash(again); err != nil || second != hash {
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
