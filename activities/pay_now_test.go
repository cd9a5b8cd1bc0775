package activities

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// rows is a store with the payment of one claim, as in MySQL: whether it is recorded, and whether
// its send is noted. It records its calls.
type rows struct {
	anyPacket
	did       []string
	booked    bool
	noted     bool
	held      *payout.Hold
	beginErr  error
	settleErr error
	begun     func() // after the note is committed
	settled   []payout.Observation
}

func (r *rows) state(id string) payout.State {
	st := payout.State{PaymentID: id, Status: payout.StatusPending, Step: payout.Step{Do: payout.ActionSend}, Clock: time.Now().UTC()}
	switch {
	case len(r.settled) > 0:
		st.Status, st.Step = payout.StatusPaid, payout.Step{Do: payout.ActionEnd}
	case r.noted:
		st.Status, st.Step = payout.StatusSending, payout.Step{Do: payout.ActionQuery, OrderNo: payout.OrderNo(id, 1)}
	}
	return st
}

func (r *rows) BeginClaim(_ context.Context, c packet.Claim, _ payout.Limits, _ func(payout.Instruction) ([]byte, error)) (
	payout.SendStart, error) {
	r.did = append(r.did, "begin")
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	if r.beginErr != nil || r.held != nil {
		return payout.SendStart{Hold: r.held}, r.beginErr
	}
	if r.booked {
		return payout.SendStart{State: r.state(id)}, nil
	}
	r.booked, r.noted = true, true
	if r.begun != nil {
		r.begun()
	}
	return payout.SendStart{State: r.state(id), Order: &payout.Order{Op: payout.OpTransfer, OrderNo: payout.OrderNo(id, 1),
		Request: []byte("stored"), Send: 1}}, nil
}

func (r *rows) RecordClaim(_ context.Context, c packet.Claim) (payout.State, error) {
	r.did = append(r.did, "book")
	r.booked = true
	return r.state(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)), nil
}

func (r *rows) Settle(_ context.Context, o payout.Observation, asked string) (payout.State, error) {
	r.did = append(r.did, "settle")
	if r.settleErr != nil {
		return payout.State{}, r.settleErr
	}
	r.settled = append(r.settled, o)
	parts, err := payout.Parse(asked)
	return r.state(parts.PaymentID), err
}

// wire is a provider that records its calls among those of the rows.
type wire struct {
	bank
	rows *rows
	took func() // while the call is under way
}

func (w *wire) Send(ctx context.Context, o payout.Order) payout.Observation {
	w.rows.did = append(w.rows.did, "send "+string(o.Request))
	if _, bounded := ctx.Deadline(); !bounded {
		w.rows.did = append(w.rows.did, "without a bound")
	}
	if w.took != nil {
		w.took()
	}
	return w.bank.Send(ctx, o)
}

// short is one claim for PayNow, with its own clock.
type short struct {
	*Payments
	rows *rows
	wire *wire
	at   time.Time
}

func newShort(throttle Throttle) *short {
	s := &short{rows: &rows{}, at: time.Now()}
	s.wire = &wire{bank: bank{answer: payout.Observation{Source: payout.SourceSend, Kind: payout.ObsSucceeded}}, rows: s.rows}
	admission := NewAdmission("sandbox", throttle, slog.New(slog.DiscardHandler))
	s.Payments = &Payments{Store: s.rows, Providers: payout.OnlyProvider(s.wire), Admissions: map[string]*Admission{"sandbox": admission}, Now: func() time.Time { return s.at }}
	admission.Now = s.Payments.Now
	return s
}

func (s *short) pay(t *testing.T) (Outcome, error) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	value, err := env.ExecuteLocalActivity(s.PayNow, packet.Claim{PacketID: "0123456789abcdefghij", UserID: "u", Amount: 5})
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	if err := value.Get(&out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func (s *short) want(t *testing.T, did ...string) {
	t.Helper()
	if !slices.Equal(s.rows.did, did) {
		t.Errorf("did %q, want %q", s.rows.did, did)
	}
}

// TestR3_PayNowNotesFirst: the send is noted before it leaves, with the stored bytes, and its
// answer is settled under its own id.
func TestR3_PayNowNotesFirst(t *testing.T) {
	s := newShort(nil)
	got, err := s.pay(t)
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, "begin", "send stored", "settle")
	if got.State.Status != payout.StatusPaid || got.Unsettled || got.Observation.Kind != payout.ObsSucceeded {
		t.Errorf("%+v", got)
	}
	if o := s.rows.settled[0]; o.ID != payout.OrderNo(paymentID(0), 1)+"/1" {
		t.Errorf("observation %q has no name of its own", o.ID)
	}
}

// TestR3_PayNowAgainSendsNothing: a repeated workflow task, on this worker or another, reads the
// row's progress. Nothing is sent twice.
func TestR3_PayNowAgainSendsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		crash func(s *short) // in the first life, which ends there
		want  payout.Action
	}{
		"before the send":       {func(s *short) { s.rows.begun = func() { panic("killed") } }, payout.ActionQuery},
		"while it is under way": {func(s *short) { s.wire.took = func() { panic("killed") } }, payout.ActionQuery},
		"after it was booked":   {func(*short) {}, payout.ActionEnd},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(nil)
			tc.crash(s)
			_, _ = s.pay(t)
			s.rows.begun, s.wire.took = nil, nil
			sends := s.wire.sends
			got, err := s.pay(t)
			if err != nil {
				t.Fatal(err)
			}
			if s.wire.sends != sends || got.State.Step.Do != tc.want || got.Observation != nil {
				t.Errorf("sent %d times more, next is %q", s.wire.sends-sends, got.State.Step.Do)
			}
		})
	}
}

// TestR4_PayNowLeavesInTime: a send that waited too long after its note does not leave, by wall
// clock and by monotonic clock; the row says query.
func TestR4_PayNowLeavesInTime(t *testing.T) {
	for name, later := range map[string]func(time.Time) time.Time{
		"stopped": func(at time.Time) time.Time { return at.Add(payout.LeaveWithin) },
		"suspended: only the hands went on": func(at time.Time) time.Time {
			return at.Round(0).Add(payout.LeaveWithin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(nil)
			s.rows.begun = func() { s.at = later(s.at) }
			got, err := s.pay(t)
			if err != nil || got.State.Step.Do != payout.ActionQuery || got.Observation != nil {
				t.Errorf("%+v, %v", got, err)
			}
			s.want(t, "begin")
		})
	}
	t.Run("in time", func(t *testing.T) {
		s := newShort(nil)
		s.rows.begun = func() { s.at = s.at.Add(payout.LeaveWithin - time.Millisecond) }
		if _, err := s.pay(t); err != nil {
			t.Fatal(err)
		}
		s.want(t, "begin", "send stored", "settle")
	})
}

// TestPayNowOutcomes: every answer of the provider, or its silence, is an outcome and no error;
// an unsettled answer is returned with its id.
func TestPayNowOutcomes(t *testing.T) {
	for _, kind := range []payout.ObservationKind{payout.ObsDeclined, payout.ObsNoAnswer, payout.ObsRetryAfter,
		payout.ObsNotSent, payout.ObsPending, payout.ObsNeedsRecipient} {
		s := newShort(nil)
		s.wire.answer.Kind = kind
		if got, err := s.pay(t); err != nil || got.Observation.Kind != kind || got.Unsettled {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	s := newShort(nil)
	s.rows.settleErr = errors.New("connection refused")
	got, err := s.pay(t)
	if err != nil || !got.Unsettled || got.Observation.Kind != payout.ObsSucceeded || got.Observation.ID == "" {
		t.Errorf("not booked: %+v, %v", got, err)
	}
	if no := payout.OrderNo(paymentID(0), 1); got.State.Step.OrderNo != no || got.OrderNo != no {
		t.Errorf("the order number that was sent is missing: %+v", got)
	}
	s = newShort(nil)
	s.rows.beginErr = packet.ErrUnavailable
	if _, err := s.pay(t); err == nil {
		t.Error("the claim was not recorded, and there was no error")
	}
	s.want(t, "begin")
}

// TestPayNowDefers: a deferral applies here too. The claim is recorded, no order number is used,
// and the send is due at the retry.
func TestPayNowDefers(t *testing.T) {
	for name, tc := range map[string]struct {
		throttle Throttle
		set      func(s *short)
		want     payout.Deferral
		did      []string
	}{
		"held": {nil, func(s *short) { s.rows.held = &payout.Hold{By: "ops"} }, payout.DeferredHeld, []string{"begin", "book"}},
		"low balance": {nil, func(s *short) {
			for n := 1; n < 4; n++ {
				s.Admissions["sandbox"].report(t.Context(), payout.OpTransfer, paymentID(n), low)
			}
		}, payout.DeferredLowBalance, []string{"book"}},
		"pace": {busy(time.Minute), func(*short) {}, payout.DeferredThrottled, []string{"book"}},
		"slow": {nil, func(s *short) {
			for range slowCalls + 1 {
				s.calls.note(call{"sandbox", payout.OpTransfer}, slowCall+1, s.at)
			}
		}, payout.NotDeferred, []string{"book"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(tc.throttle)
			tc.set(s)
			got, err := s.pay(t)
			if err != nil {
				t.Fatal(err)
			}
			s.want(t, tc.did...)
			if step := got.State.Step; step.Do != payout.ActionSend || step.Deferred != tc.want ||
				step.At.IsZero() != (tc.want == payout.NotDeferred) {
				t.Errorf("next: %+v", step)
			}
		})
	}
}

// TestPayNowWithoutTime: a send that could not end in time is left to single activities.
func TestPayNowWithoutTime(t *testing.T) {
	s := newShort(nil)
	ctx, cancel := context.WithTimeout(t.Context(), PayNowCallTimeout+PayNowSettleTimeout-time.Millisecond)
	defer cancel()
	got, err := s.PayNow(ctx, packet.Claim{PacketID: "0123456789abcdefghij", UserID: "u", Amount: 5})
	if err != nil || got.State.Step.Do != payout.ActionSend || got.State.Step.Deferred != payout.NotDeferred {
		t.Errorf("%+v, %v", got, err)
	}
	s.want(t, "book")
}

// busy is a throttle that never admits.
type busy time.Duration

func (b busy) Acquire(context.Context, string) (time.Duration, error) { return time.Duration(b), nil }

// TestPayNowSlowProvider: a slow provider does not hold workflow tasks; every send measures it,
// also when it is fast again.
func TestPayNowSlowProvider(t *testing.T) {
	s := newShort(nil)
	sent := 0
	send := func(took time.Duration) {
		t.Helper()
		s.wire.took = func() { s.at = s.at.Add(took) }
		s.rows.booked, s.rows.noted, s.rows.settled, s.rows.did = false, false, nil, nil
		if _, err := s.pay(t); err != nil {
			t.Fatal(err)
		}
		sent = s.wire.sends
	}
	for i := range slowCalls + 1 {
		send(slowCall + time.Millisecond)
		if sent != i+1 {
			t.Fatalf("after %d slow calls of %d allowed none is made", i, slowCalls)
		}
	}
	send(0)
	if sent != slowCalls+1 {
		t.Fatal("a slow provider was called within the workflow task")
	}
	order := payout.Order{Op: payout.OpTransfer, OrderNo: payout.OrderNo(paymentID(9), 1), Send: 1}
	for range lastCalls - 1 { // by the regular step, until fewer than 1 in 100 were slow
		s.wire.took = nil
		s.callProvider(t.Context(), s.wire, order)
	}
	before := s.wire.sends
	if send(0); s.wire.sends != before+1 {
		t.Error("it has become fast, and is not called within the workflow task")
	}
	for range slowCalls + 1 {
		s.calls.note(call{"sandbox", payout.OpTransfer}, slowCall+1, s.at)
	}
	s.at = s.at.Add(slowFor)
	before = s.wire.sends
	if send(0); s.wire.sends != before+1 {
		t.Error("nothing was slow for long, and it is not called within the workflow task")
	}
}
