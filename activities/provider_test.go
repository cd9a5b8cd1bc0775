package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// twoProviders is a store whose packets use other providers for charges than for payouts.
type twoProviders struct {
	*rows
	charge, payouts string
	reads           int
	err             error
}

func (s *twoProviders) PacketProviders(context.Context, string) (charge, payouts string, err error) {
	s.reads++
	return s.charge, s.payouts, s.err
}

// renamed is a provider under another name.
type renamed struct {
	*wire
	name string
}

func (r renamed) Name() string { return r.name }

// TestProviderOfPayment: each kind of payment is sent to the provider of its packet, whatever the
// defaults are; the packet is read once.
func TestProviderOfPayment(t *testing.T) {
	id := strings.Repeat("0", packet.IDLen)
	a, b := renamed{&wire{}, "a"}, renamed{&wire{}, "b"}
	providers, err := payout.NewRegistry("b", "b", a, b)
	if err != nil {
		t.Fatal(err)
	}
	db := &twoProviders{charge: "a", payouts: "b"}
	steps := &Payments{Store: db, Providers: providers}
	for kind, want := range map[payout.Kind]string{payout.KindCharge: "a", payout.KindRefund: "a", payout.KindPayout: "b",
		payout.KindHonour: "b"} {
		to, err := steps.providerOf(t.Context(), payout.ID(kind, id, 0))
		if err != nil || to.Name() != want {
			t.Errorf("%c: %v, %v, want %s", kind, to, err, want)
		}
	}
	if db.reads != 1 {
		t.Errorf("the packet was read %d times", db.reads)
	}
	away := &Payments{Store: &twoProviders{err: packet.ErrUnavailable}, Providers: providers}
	for range 2 {
		if to, err := away.providerOf(t.Context(), payout.ID(payout.KindCharge, id, 0)); !errors.Is(err, packet.ErrUnavailable) || to != nil {
			t.Errorf("MySQL is away: %v, %v", to, err)
		}
	}
}

// TestProviderMissing: a payment whose provider is not configured is recorded, deferred and never
// sent; a query of it is retried.
func TestProviderMissing(t *testing.T) {
	s := newShort(nil)
	s.Store = &twoProviders{rows: s.rows, charge: "gone", payouts: "gone"}
	step := func(name string, out Outcome, err error) {
		t.Helper()
		if st := out.State.Step; err != nil || out.Observation != nil || st.Do != payout.ActionSend ||
			st.Deferred != payout.DeferredProviderMissing || st.At.Before(out.State.Clock.Add(missingPause)) {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	out, err := s.send(t)
	step("Send", out, err)
	out, err = s.pay(t)
	step("PayNow", out, err)
	if s.wire.sends != 0 || !slices.Contains(s.rows.did, "book") || slices.ContainsFunc(s.rows.did, func(did string) bool {
		return did == "note" || did == "begin"
	}) {
		t.Errorf("%d sends, did %q", s.wire.sends, s.rows.did)
	}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(s.Payments.Ask)
	_, err = env.ExecuteActivity(s.Payments.Ask, payout.OrderNo(paymentID(0), 1))
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Type() != TypeOtherProvider || app.NonRetryable() ||
		s.wire.asks != 0 {
		t.Errorf("Ask: %v after %d queries", err, s.wire.asks)
	}
}
