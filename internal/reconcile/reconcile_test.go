package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hongbao/internal/packet"
)

func claim(user string, share int) packet.Claim {
	return packet.Claim{PacketID: "p", UserID: user, ShareIndex: share}
}

func recorded(user string, share int) packet.RecordedClaim {
	return packet.RecordedClaim{UserID: user, ShareIndex: share}
}

func conflict(user string, share int) packet.RecordedClaim {
	return packet.RecordedClaim{UserID: user, ShareIndex: share, Conflict: true}
}

// TestR11_Diff: which repair each claim gets, by what MySQL has of its user, and that only the store which
// was read later is found to lack anything.
func TestR11_Diff(t *testing.T) {
	all := []packet.RecordedClaim{recorded("ann", 0), conflict("bob", 1), recorded("eve", 2), conflict("eve", 3)}
	for _, tc := range []struct {
		name  string
		first First
		mode  Mode
		claim packet.Claim
		taken []int
		want  Kind
	}{
		{"recorded", ClaimsFirst, Normal, claim("ann", 0), nil, ""},
		{"any share of a user", ClaimsFirst, Normal, claim("ann", AnyShare), nil, ""},
		{"another share than the recorded", ClaimsFirst, Normal, claim("ann", 5), nil, Conflict},
		{"another share, recovering", ClaimsFirst, Recovering, claim("ann", 5), nil, Conflict},
		{"recorded as a conflict", ClaimsFirst, Normal, claim("bob", 1), nil, ""},
		{"any share of a conflict's user", ClaimsFirst, Normal, claim("bob", AnyShare), nil, ""},
		{"a free share beside a conflict", ClaimsFirst, Normal, claim("bob", 5), []int{0, 2}, Start},
		{"a taken share beside a conflict", ClaimsFirst, Normal, claim("bob", 2), []int{0, 2}, ""},
		{"a share and a conflict: the share", ClaimsFirst, Normal, claim("eve", 2), nil, ""},
		{"a share and a conflict: the conflict", ClaimsFirst, Normal, claim("eve", 3), nil, ""},
		{"a share and a conflict: a third", ClaimsFirst, Normal, claim("eve", 5), nil, ""},
		{"unrecorded", ClaimsFirst, Normal, claim("joe", 5), nil, Start},
		{"unrecorded, on another's share", ClaimsFirst, Normal, claim("joe", 0), []int{0}, Start},
		{"unrecorded, any share", ClaimsFirst, Normal, claim("joe", AnyShare), nil, Start},
		{"unrecorded, recovering", ClaimsFirst, Recovering, claim("joe", 5), nil, Record},
		{"unrecorded, order unknown", 0, Normal, claim("joe", 5), nil, ""},
		{"order unknown", 0, Recovering, claim("ann", 5), nil, ""},
	} {
		got := Diff(Facts{PacketID: "p", First: tc.first, Mode: tc.mode, Claims: []packet.Claim{tc.claim},
			Recorded: packet.Recorded{Claims: all, Taken: tc.taken}})
		var want []Repair
		if tc.want != "" {
			want = []Repair{{tc.want, tc.mode, tc.claim}}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, want)
		}
	}
}

// TestR9_Diff: a pool that was read after MySQL lacks the users that it does not have, and proves nothing
// about claims that MySQL lacks.
func TestR9_Diff(t *testing.T) {
	all := packet.Recorded{Claims: []packet.RecordedClaim{recorded("ann", 0), conflict("ann", 1), conflict("bob", 1), recorded("eve", 2)}}
	claims := []packet.Claim{claim("eve", 7), claim("joe", 5)}
	got := Diff(Facts{PacketID: "p", First: RecordedFirst, Mode: Normal, Claims: claims, Recorded: all})
	want := []Repair{{PoolLacks, Normal, packet.Claim{PacketID: "p", UserID: "ann"}},
		{PoolLacks, Normal, packet.Claim{PacketID: "p", UserID: "bob"}}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestR9_Counts: what counts prove.
func TestR9_Counts(t *testing.T) {
	for _, tc := range []struct {
		Counts
		want Verdict
	}{
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 3}, Agree},
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 4}, Agree}, // recorded since
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 2}, Lacks},
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 2, Conflicts: 1}, Unproven},
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 1, Conflicts: 1}, Lacks},
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 3, Conflicts: 1}, Unproven},
		{Counts{First: ClaimsFirst, Pool: 3, Shares: 3, Kept: 1}, Unproven},
		{Counts{First: RecordedFirst, Pool: 3, Shares: 3}, Agree},
		{Counts{First: RecordedFirst, Pool: 4, Shares: 3}, Agree}, // claimed since
		{Counts{First: RecordedFirst, Pool: 2, Shares: 3}, Lacks},
		{Counts{First: RecordedFirst, Pool: 2, Shares: 3, Conflicts: 1}, Lacks},
		{Counts{First: RecordedFirst, Pool: 3, Shares: 3, Conflicts: 1}, Unproven},
		{Counts{Pool: 3, Shares: 3}, Unproven},
		{Counts{Pool: 3}, Unproven},
	} {
		if got := tc.Compare(); got != tc.want {
			t.Errorf("%+v: %d, want %d", tc.Counts, got, tc.want)
		}
	}
}

// books is a MySQL that has the claims of some users.
type books struct {
	users   map[string]bool
	largest int // comparison
}

func (b *books) RecordedClaims(_ context.Context, _ string, claims []packet.Claim) (out packet.Recorded, _ error) {
	b.largest = max(b.largest, len(claims))
	for _, c := range claims {
		if b.users[c.UserID] {
			out.Claims = append(out.Claims, recorded(c.UserID, c.ShareIndex))
		}
	}
	return out, nil
}

// pool has claims, which it returns in pages of a size.
type pool struct {
	size   int
	claims []packet.Claim
}

func (p pool) EachClaim(_ context.Context, _ string, visit func([]packet.Claim) error) error {
	for page := range slices.Chunk(p.claims, p.size) {
		if err := visit(page); err != nil {
			return err
		}
	}
	return nil
}

func (p pool) EachClaimUnfenced(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	return p.EachClaim(ctx, id, visit)
}

func claimsOf(n int) (claims []packet.Claim) {
	for i := range n {
		claims = append(claims, claim(fmt.Sprintf("u%d", i), i))
	}
	return claims
}

// TestR11_Unrecorded: every claim that MySQL lacks is visited once, in batches that one query can
// compare, and an error ends it.
func TestR11_Unrecorded(t *testing.T) {
	claims := claimsOf(2*batch + 7)
	store := &books{users: map[string]bool{}}
	for _, c := range claims {
		store.users[c.UserID] = c.UserID != "u3" && c.UserID != fmt.Sprintf("u%d", batch+1)
	}
	for _, from := range []Claims{Fenced{pool{batch + 50, claims}}, Unfenced{pool{batch + 50, claims}}} {
		var missing []string
		err := Unrecorded(t.Context(), from, store, Normal, "p", func(some []Repair) error {
			for _, r := range some {
				missing = append(missing, r.Claim.UserID)
			}
			return nil
		})
		if want := []string{"u3", fmt.Sprintf("u%d", batch+1)}; err != nil || !slices.Equal(missing, want) || store.largest > batch {
			t.Errorf("missing %q of %q, at most %d at once, %v", missing, want, store.largest, err)
		}
	}
	broke, calls := errors.New("broke"), 0
	err := Unrecorded(t.Context(), Fenced{pool{10, claims}}, &books{}, Normal, "p", func([]Repair) error { calls++; return broke })
	if !errors.Is(err, broke) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestR9_Lacking: a pool lacks the users of MySQL that none of its pages has.
func TestR9_Lacking(t *testing.T) {
	claims := claimsOf(30)
	for users, want := range map[string]int{"u3": 0, "u29": 0, "u30": 1} {
		if lacks, err := Lacking(t.Context(), Fenced{pool{7, claims}}, Normal, "p", []string{"u1", users}); len(lacks) != want || err != nil {
			t.Errorf("of u1 and %s %+v are lacking, %v", users, lacks, err)
		}
	}
}

// TestPages: every item of a list is read, also where a page is full of one millisecond, and pages end
// with one that is not full.
func TestPages(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var live []packet.LivePacket
	for i := range 10 { // of one millisecond, then of later ones
		live = append(live, packet.LivePacket{ID: fmt.Sprint("p", i), CreatedAt: noon.Add(time.Duration(max(0, i-3)) * time.Millisecond)})
	}
	reads := 0
	list := LivePackets(func(_ context.Context, _ int, from time.Time, limit int) (page []packet.LivePacket, _ error) {
		reads++
		for _, p := range live {
			if !p.CreatedAt.Before(from) && len(page) < limit {
				page = append(page, p)
			}
		}
		return page, nil
	}, 0, 4)
	seen := map[string]bool{}
	err := list.Each(t.Context(), func(page []packet.LivePacket) error {
		for _, p := range page {
			seen[p.ID] = true
		}
		return nil
	})
	if err != nil || len(seen) != len(live) || reads > 5 {
		t.Errorf("%d of %d packets, %d reads, %v", len(seen), len(live), reads, err)
	}
	_, next, err := list.Page(t.Context(), packet.Cursor{At: noon.Add(5 * time.Millisecond)})
	if next != (packet.Cursor{}) || err != nil {
		t.Errorf("after the last page comes %+v, %v", next, err)
	}
	broke := errors.New("broke")
	if err := list.Each(t.Context(), func([]packet.LivePacket) error { return broke }); !errors.Is(err, broke) {
		t.Error(err)
	}
}
