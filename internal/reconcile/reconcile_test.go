package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"hongbao/internal/packet"
)

// recorded is a MySQL that has the claims of some users.
type recorded struct {
	users   map[string]bool
	largest int // comparison
}

func (r *recorded) UnrecordedClaims(_ context.Context, _ string, claims []packet.Claim) (left []packet.Claim, _ error) {
	r.largest = max(r.largest, len(claims))
	return slices.DeleteFunc(slices.Clone(claims), func(c packet.Claim) bool { return r.users[c.UserID] }), nil
}

// pages reads claims in pages of a size.
func pages(size int, claims []packet.Claim) Reader {
	return func(_ context.Context, _ string, visit func([]packet.Claim) error) error {
		for page := range slices.Chunk(claims, size) {
			if err := visit(page); err != nil {
				return err
			}
		}
		return nil
	}
}

func claimsOf(n int) (claims []packet.Claim) {
	for i := range n {
		claims = append(claims, packet.Claim{UserID: fmt.Sprintf("u%d", i)})
	}
	return claims
}

// TestR11_Unrecorded: every claim that MySQL lacks is visited once, in batches that one query can
// compare, and an error ends it.
func TestR11_Unrecorded(t *testing.T) {
	claims := claimsOf(2*batch + 7)
	store := &recorded{users: map[string]bool{}}
	for _, c := range claims {
		store.users[c.UserID] = c.UserID != "u3" && c.UserID != fmt.Sprintf("u%d", batch+1)
	}
	var missing []string
	visit := func(some []packet.Claim) error {
		for _, c := range some {
			missing = append(missing, c.UserID)
		}
		return nil
	}
	err := Unrecorded(t.Context(), pages(batch+50, claims), store, "p", visit)
	if want := []string{"u3", fmt.Sprintf("u%d", batch+1)}; err != nil || !slices.Equal(missing, want) || store.largest > batch {
		t.Errorf("missing %q of %q, at most %d at once, %v", missing, want, store.largest, err)
	}
	broke, calls := errors.New("broke"), 0
	err = Unrecorded(t.Context(), pages(10, claims), &recorded{}, "p", func([]packet.Claim) error { calls++; return broke })
	if !errors.Is(err, broke) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestR9_Lacking: a pool lacks the users of MySQL that none of its pages has.
func TestR9_Lacking(t *testing.T) {
	claims := claimsOf(30)
	for users, want := range map[string]int{"u3": 0, "u29": 0, "u30": 1} {
		if n, err := Lacking(t.Context(), pages(7, claims), "p", []string{"u1", users}); n != want || err != nil {
			t.Errorf("of u1 and %s %d are lacking, %v", users, n, err)
		}
	}
}
