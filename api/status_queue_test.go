package api

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// TestStatusQueue: those who come while one look is under way share the next one.
func TestStatusQueue(t *testing.T) {
	const crowd = 100
	looks, begun, goOn := [][]payout.ClaimRef{}, make(chan struct{}, 2), make(chan struct{})
	q := &statusQueue{base: t.Context(), look: func(_ context.Context,
		of []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
		looks = append(looks, of) // one at a time: the race detector would see two
		begun <- struct{}{}
		<-goOn
		found := map[payout.ClaimRef]payout.PayoutProgress{}
		for _, c := range of {
			if c.UserID != "unrecorded" {
				found[c] = payout.PayoutProgress{Status: payout.Status("status of " + c.UserID)}
			}
		}
		return found, nil
	}}
	var all sync.WaitGroup
	ask := func(id string, want payout.Status) {
		if got, _ := q.progress(t.Context(), payout.ClaimRef{UserID: id}, time.Minute); got.Status != want {
			t.Errorf("%s: %s", id, got.Status)
		}
	}
	all.Go(func() { ask("first", "status of first") })
	<-begun
	for i := range crowd {
		id := strconv.Itoa(i)
		all.Go(func() { ask(id, payout.Status("status of "+id)) })
	}
	all.Go(func() { ask("unrecorded", payout.StatusPending) })
	wait.Until(t, "all wait for the next look", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.next != nil && len(q.next.of) > crowd
	})
	close(goOn)
	all.Wait()
	if len(looks) != 2 || len(looks[0]) != 1 || len(looks[1]) != crowd+1 {
		t.Errorf("%d looks", len(looks))
	}
	ask("later", "status of later")
}

// TestStatusQueueWithoutMySQL: claims are still returned.
func TestStatusQueueWithoutMySQL(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, look := range map[string]func(context.Context, []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error){
		"away": func(context.Context, []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
			return nil, errors.New("away")
		},
		"panics": func(context.Context, []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
			panic("bug")
		},
		"hangs": func(context.Context, []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
			<-hang
			return nil, nil
		},
	} {
		q := &statusQueue{base: t.Context(), look: look}
		for range 2 {
			if got, _ := q.progress(t.Context(), payout.ClaimRef{UserID: "p"}, 10*time.Millisecond); got.Status != payout.StatusPending {
				t.Errorf("%s: %s", name, got.Status)
			}
		}
	}
}

// TestProgressOfRepeatedClaims: while MySQL does not answer, a repeated grab shows the progress
// that was read last.
func TestProgressOfRepeatedClaims(t *testing.T) {
	now, away := time.Now(), false
	claim := &repeatedClaim{claim: packet.Claim{PacketID: "p", UserID: "u", ShareIndex: 3}}
	of := claimRefOf(claim.claim)
	paid := payout.PayoutProgress{ID: "h1", Status: payout.StatusPaid}
	found := map[payout.ClaimRef]payout.PayoutProgress{}
	s := &Server{cfg: Config{Now: func() time.Time { return now }}}
	s.replays = &statusQueue{base: t.Context(), look: func(context.Context,
		[]payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
		if away {
			return nil, errors.New("away")
		}
		return found, nil
	}}
	r := &request{Request: rest.Request{Ctx: t.Context()}, server: s}
	shows := func(when string, want payout.PayoutProgress) {
		t.Helper()
		if got := r.progressOf(claim); got != want {
			t.Errorf("%s: %+v", when, got)
		}
		now = now.Add(progressFresh)
	}
	away = true
	shows("nothing known yet", pendingPayout(of))
	away = false
	shows("not recorded", pendingPayout(of))
	found[of] = paid
	shows("paid", paid)
	away = true
	shows("away", paid)
	shows("still away", paid)
	away, found[of] = false, payout.PayoutProgress{ID: "h1", Status: payout.StatusReturned}
	shows("back", found[of])
}
