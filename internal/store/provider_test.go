package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

func holding(t testing.TB, s *testStore, who, key, reason string, hold bool) staff.Write {
	action := "release"
	if hold {
		action = "hold"
	}
	return by(t, s, staff.Write{Owner: who, Role: "ops", Route: "POST /v1/staff/providers/sandbox/" + action, Key: key, BodyHash: reason,
		Reason: reason})
}

func renderProvider(p staff.ProviderState) (int, []byte) {
	if p.Hold == nil {
		return 200, fmt.Appendf(nil, "%s goes", p.Name)
	}
	return 200, fmt.Appendf(nil, "%s held by %s: %s", p.Name, p.Hold.By, p.Hold.Reason)
}

func setHold(t testing.TB, s *testStore, who, key, reason string, hold bool) staff.Answer {
	t.Helper()
	a, err := s.HoldProvider(t.Context(), holding(t, s, who, key, reason, hold), provider, hold, renderProvider)
	must(t, err)
	return a
}

func TestHoldProvider(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	state, err := s.ProviderState(ctx, provider)
	if err != nil || state.Hold != nil || state.Name != provider {
		t.Fatalf("at first: %+v %v", state, err)
	}
	first := setHold(t, s, "ann", "k1", "对账不平", true)
	if string(first.Body) != "sandbox held by ann: 对账不平" || first.Status != 200 {
		t.Errorf("%d %s", first.Status, first.Body)
	}
	state, err = s.ProviderState(ctx, provider)
	if err != nil || state.Hold == nil || state.Hold.By != "ann" || state.Hold.Role != "ops" || state.Hold.Since.IsZero() ||
		!state.ReleasedAt.IsZero() {
		t.Fatalf("held: %+v %v", state, err)
	}
	since := state.Hold.Since
	c.Pass(time.Hour)
	t.Run("replay", func(t *testing.T) {
		if a := setHold(t, s, "ann", "k1", "对账不平", true); !a.Replayed || !bytes.Equal(a.Body, first.Body) {
			t.Errorf("%+v", a)
		}
	})
	t.Run("other body", func(t *testing.T) {
		_, err := s.HoldProvider(ctx, holding(t, s, "ann", "k1", "other", true), provider, true, renderProvider)
		wantErr(t, err, staff.ErrKeyReused)
	})
	t.Run("held already", func(t *testing.T) {
		if a := setHold(t, s, "bob", "k2", "me too", true); string(a.Body) != "sandbox held by ann: 对账不平" {
			t.Errorf("%s", a.Body)
		}
		if now, err := s.ProviderState(ctx, provider); err != nil || !now.Hold.Since.Equal(since) {
			t.Errorf("%+v %v", now, err)
		}
	})
	t.Run("release", func(t *testing.T) {
		if a := setHold(t, s, "bob", "k3", "solved", false); string(a.Body) != "sandbox goes" {
			t.Errorf("%s", a.Body)
		}
		now, err := s.ProviderState(ctx, provider)
		if err != nil || now.Hold != nil || now.ReleasedAt.IsZero() {
			t.Errorf("%+v %v", now, err)
		}
		c.Pass(time.Hour)
		setHold(t, s, "ann", "k4", "again", false)
		if again, err := s.ProviderState(ctx, provider); err != nil || !again.ReleasedAt.Equal(now.ReleasedAt) {
			t.Errorf("a release of what is not held moved %+v to %+v, %v", now, again, err)
		}
	})
	t.Run("audit", func(t *testing.T) {
		verifyAudit(t, s, 4)
		got := storetest.Query[string](t, s,
			"SELECT GROUP_CONCAT(CONCAT(actor, ' ', action, ' ', reason) ORDER BY seq SEPARATOR '; ') FROM audit WHERE "+
				"subject = 'provider/sandbox'")
		if want := "ann hold 对账不平; bob hold me too; bob release solved; ann release again"; got != want {
			t.Errorf("audit says %q, want %q", got, want)
		}
	})
}

// TestHoldProviderAtOnce: many persons place the first hold of a provider concurrently: one of them
// holds it, and all are audited.
func TestHoldProviderAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	const people = 12
	answers := make([]string, people)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			a, err := s.HoldProvider(t.Context(), holding(t, s, fmt.Sprint("p", i), "k", "r", true), provider, true, renderProvider)
			if err != nil {
				t.Error(err)
			}
			answers[i] = string(a.Body)
		})
	}
	all.Wait()
	for _, a := range answers {
		if a != answers[0] || a == "" {
			t.Fatalf("answers differ: %q", answers)
		}
	}
	verifyAudit(t, s, people)
}

// TestHoldStopsSends: under a hold no order number is used, no send is recorded, and answers to
// queries are booked.
func TestHoldStopsSends(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 300, 3)
	encoded := 0
	begin := func(id string) payout.SendStart {
		t.Helper()
		b, err := s.BeginSend(ctx, id, limits, func(payout.Instruction) ([]byte, error) { encoded++; return []byte("{}"), nil })
		must(t, err)
		return b
	}
	for i := range 2 {
		claim(t, s, p, i, fmt.Sprint("u", i))
	}
	noted := begin(payoutID(p, 0))
	if noted.Order == nil || noted.Hold != nil {
		t.Fatalf("before the hold: %+v", noted)
	}
	setHold(t, s, "ops", "k1", "stop", true)
	encoded = 0
	for range 3 {
		b := begin(payoutID(p, 1))
		if b.Order != nil || b.Hold == nil || b.Hold.By != "ops" || b.State.Status != payout.StatusPending ||
			b.State.Step.Do != payout.ActionSend {
			t.Fatalf("while held: %+v", b)
		}
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM attempts WHERE payment_id = '"+payoutID(p, 1)+"'"); n != 0 || encoded != 0 {
		t.Errorf("%d attempts, %d requests encoded", n, encoded)
	}
	// Its order number is queried, and not sent again under the hold.
	settle(t, s, payout.SourceQuery, noted.Order.OrderNo, payout.ObsNeverReceived)
	if b := begin(payoutID(p, 0)); b.Order != nil || b.Hold == nil || b.State.Step.Do != payout.ActionSend {
		t.Errorf("resend while held: %+v", b)
	}
	waiting, err := s.WaitingToSend(ctx, provider, 10)
	if err != nil || len(waiting) != 2 {
		t.Errorf("waiting: %+v %v", waiting, err)
	}
	setHold(t, s, "ops", "k2", "go", false)
	if b := begin(payoutID(p, 1)); b.Order == nil || b.Order.Send != 1 {
		t.Errorf("released: %+v", b)
	}
	b := begin(payoutID(p, 0))
	if b.Order == nil || b.Order.Send != 2 || b.Order.OrderNo != noted.Order.OrderNo {
		t.Errorf("released: %+v", b)
	}
	if waiting, err := s.WaitingToSend(ctx, provider, 10); err != nil || len(waiting) != 0 {
		t.Errorf("waiting: %+v %v", waiting, err)
	}
}

// TestHoldIsOfOneProvider: other providers' payments continue.
func TestHoldIsOfOneProvider(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	w := holding(t, s, "ops", "k", "stop", true)
	w.Route = "POST /v1/staff/providers/other/hold"
	_, err := s.HoldProvider(t.Context(), w, "other", true, renderProvider)
	must(t, err)
	p := funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	b, err := s.BeginSend(t.Context(), payoutID(p, 0), limits, func(payout.Instruction) ([]byte, error) { return []byte("{}"), nil })
	if err != nil || b.Order == nil {
		t.Errorf("%+v %v", b, err)
	}
	if errors.Is(err, ErrUnavailable) {
		t.Error("the store is away")
	}
}
