package staff_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
	"time"

	"hongbao/internal/staff"
)

func auditEntry(seq int64) staff.AuditEntry {
	return staff.AuditEntry{Seq: seq, At: time.Date(2026, 2, 17, 12, 0, 0, 120_000_000, time.UTC), Actor: "李娜", Role: "finance",
		KeyID: "k3q5v2c7m4e2", Action: "retry", Subject: "p3q5k9v0c1m7e2u8h4r6t0003",
		Reason: "解冻 <ok> & \"done\"", Before: `{"status":"failed"}`, After: `{"status":"pending"}`}
}

// TestAuditVector: docs/audit.md shows this entry, so that auditors can check their implementation.
func TestAuditVector(t *testing.T) {
	sum, err := auditEntry(1).Sum(staff.AuditHash{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "1f6255fddc7919b0ad2097e716e1f34ce0a80e65ce84cf2478ed19f4707cd6a7"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

// TestAuditSumCovers: every member but the hash itself changes the hash, and so does a part of one
// that moves to its neighbour.
func TestAuditSumCovers(t *testing.T) {
	base, err := auditEntry(7).Sum(staff.AuditHash{1})
	if err != nil {
		t.Fatal(err)
	}
	kind := reflect.TypeFor[staff.AuditEntry]()
	for i := range kind.NumField() {
		e := auditEntry(7)
		name, member := kind.Field(i).Name, reflect.ValueOf(&e).Elem().Field(i)
		switch v := member.Addr().Interface().(type) {
		case *int64:
			*v++
		case *time.Time:
			*v = v.Add(time.Millisecond)
		case *string:
			*v += " "
		case *staff.AuditHash:
			v[0]++
		default:
			t.Fatalf("%s: a member of a kind that this test does not know", name)
		}
		sum, err := e.Sum(staff.AuditHash{1})
		if err != nil || (sum == base) != (name == "Hash") {
			t.Errorf("%s: the hash is the same: %v, %v", name, sum == base, err)
		}
	}
	moved := auditEntry(7)
	moved.Actor, moved.Role = moved.Actor+`","`, "finance"
	if sum, err := moved.Sum(staff.AuditHash{1}); err != nil || sum == base {
		t.Errorf("a moved boundary: %v", err)
	}
	if sum, err := auditEntry(7).Sum(staff.AuditHash{2}); err != nil || sum == base {
		t.Errorf("another entry before: %v", err)
	}
	elsewhere := auditEntry(7)
	elsewhere.At = elsewhere.At.In(time.FixedZone("", 8*3600))
	if sum, err := elsewhere.Sum(staff.AuditHash{1}); err != nil || sum != base {
		t.Errorf("the same moment in another zone: %v", err)
	}
	bad := auditEntry(7)
	bad.Subject = "\xff"
	if _, err := bad.Sum(staff.AuditHash{}); !errors.Is(err, staff.ErrAuditNotUTF8) {
		t.Errorf("bytes that JSON writes like others: %v", err)
	}
}

// chainOf returns a chain of n entries.
func chainOf(t *testing.T, n int64) ([]staff.AuditEntry, staff.AuditHead) {
	t.Helper()
	var entries []staff.AuditEntry
	head := staff.AuditHead{}
	for seq := int64(1); seq <= n; seq++ {
		e := auditEntry(seq)
		sum, err := e.Sum(head.Hash)
		if err != nil {
			t.Fatal(err)
		}
		e.Hash = sum
		entries, head = append(entries, e), staff.AuditHead{Seq: seq, Hash: sum}
	}
	return entries, head
}

func TestAuditChain(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e []staff.AuditEntry, head *staff.AuditHead) []staff.AuditEntry
		bad    int64 // 0: none
	}{
		"whole":         {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { return e }, 0},
		"changed":       {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { e[2].Reason = "other"; return e }, 3},
		"hash changed":  {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { e[4].Hash[0]++; return e }, 5},
		"first deleted": {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { return e[1:] }, 1},
		"deleted":       {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { return append(e[:2:2], e[3:]...) }, 3},
		"cut off":       {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { return e[:3] }, 4},
		"all cut off":   {func([]staff.AuditEntry, *staff.AuditHead) []staff.AuditEntry { return nil }, 1},
		"inserted before": {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry {
			return append([]staff.AuditEntry{auditEntry(-3)}, e...)
		}, -3},
		"twice": {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry { return append(e[:3:3], e[2:]...) }, 3},
		"reordered": {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry {
			e[1], e[3] = e[3], e[1]
			e[1].Seq, e[3].Seq = 2, 4
			return e
		}, 2},
		"added beside the head": {func(e []staff.AuditEntry, head *staff.AuditHead) []staff.AuditEntry {
			more := auditEntry(6)
			more.Hash, _ = more.Sum(head.Hash)
			return append(e, more)
		}, 6},
		"last one rewritten": {func(e []staff.AuditEntry, _ *staff.AuditHead) []staff.AuditEntry {
			e[4].Reason = "other"
			e[4].Hash, _ = e[4].Sum(e[3].Hash)
			return e
		}, 5},
		"head removed": {func(e []staff.AuditEntry, head *staff.AuditHead) []staff.AuditEntry {
			*head = staff.AuditHead{}
			return e
		}, 1},
		"head moved": {func(e []staff.AuditEntry, head *staff.AuditHead) []staff.AuditEntry { head.Seq--; return e }, 5},
	} {
		entries, head := chainOf(t, 5)
		entries = tc.change(entries, &head)
		var chain staff.AuditChain
		for _, e := range entries {
			chain.Add(e)
		}
		switch bad := chain.End(head); {
		case bad == nil && tc.bad != 0:
			t.Errorf("%s: not found", name)
		case bad != nil && *bad != tc.bad:
			t.Errorf("%s: first bad entry %d, want %d", name, *bad, tc.bad)
		}
	}
	var none staff.AuditChain
	if bad := none.End(staff.AuditHead{}); bad != nil {
		t.Errorf("an audit without entries: %d", *bad)
	}
}
