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

// rows is a cashbook that keeps the payment of one claim as MySQL does: whether it
// is booked, and whether its send is noted. It writes down what is done to it.
type rows struct {
	PaymentStore
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

func (r *rows) BeginClaim(_ context.Context, c packet.Claim, _ string, _ payout.Limits, _ func(payout.Instruction) ([]byte, error)) (
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

func (r *rows) RecordClaim(_ context.Context, c packet.Claim, _ string) (payout.State, error) {
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

// wire is a provider that writes its calls among what is done to the rows.
type wire struct {
	bank
	rows *rows
	took func() // while the call is under way
}

func (*wire) Name() string { return "sandbox" }

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

// short is one claim on the short way, with a clock of its own.
type short struct {
	*Payments
	rows *rows
	wire *wire
	at   time.Time
}

func newShort(pacer Throttle) *short {
	s := &short{rows: &rows{}, at: time.Now()}
	s.wire = &wire{bank: bank{answer: payout.Observation{Source: payout.SourceSend, Kind: payout.ObsSucceeded}}, rows: s.rows}
	gate := NewAdmission("sandbox", pacer, slog.New(slog.DiscardHandler))
	s.Payments = &Payments{Store: s.rows, Provider: s.wire, Admission: gate, Now: func() time.Time { return s.at }}
	gate.Now = s.Payments.Now
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

// TestR3_PayNowNotesFirst: the send is noted before it leaves, with the stored
// bytes, and its answer is booked under a name of its own.
func TestR3_PayNowNotesFirst(t *testing.T) {
	s := newShort(nil)
	got, err := s.pay(t)
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, "begin", "send stored", "settle")
	if got.State.Status != payout.StatusPaid || got.Unbooked || got.Observation.Kind != payout.ObsSucceeded {
		t.Errorf("%+v", got)
	}
	if o := s.rows.settled[0]; o.ID != payout.OrderNo(paymentID(0), 1)+"/1" {
		t.Errorf("observation %q has no name of its own", o.ID)
	}
}

// TestR3_PayNowAgainSendsNothing: a workflow task that is carried out again, by
// this worker or another, finds how far the row has come. Nothing is sent twice.
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

// TestR4_PayNowLeavesInTime: what has waited too long since its note does not
// leave: the row says ask, by the counter of the clock and by its hands.
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

// TestPayNowOutcomes: whatever the provider says, or does not, is an outcome and
// no error; an answer that could not be booked is handed on with its name.
func TestPayNowOutcomes(t *testing.T) {
	for _, kind := range []payout.ObservationKind{payout.ObsDeclined, payout.ObsNoAnswer, payout.ObsUnknown, payout.ObsRetryAfter,
		payout.ObsNotSent, payout.ObsPending, payout.ObsNeedsRecipient} {
		s := newShort(nil)
		s.wire.answer.Kind = kind
		if got, err := s.pay(t); err != nil || got.Observation.Kind != kind || got.Unbooked {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	s := newShort(nil)
	s.rows.settleErr = errors.New("connection refused")
	got, err := s.pay(t)
	if err != nil || !got.Unbooked || got.Observation.Kind != payout.ObsSucceeded || got.Observation.ID == "" {
		t.Errorf("not booked: %+v, %v", got, err)
	}
	if no := payout.OrderNo(paymentID(0), 1); got.State.Step.OrderNo != no || got.OrderNo != no {
		t.Errorf("nobody knows which order was sent: %+v", got)
	}
	s = newShort(nil)
	s.rows.beginErr = packet.ErrUnavailable
	if _, err := s.pay(t); err == nil {
		t.Error("the claim was not booked, and nobody was told")
	}
	s.want(t, "begin")
}

// TestPayNowDefers: what keeps a send back keeps it back here too. The claim is
// booked, no number is taken, and the send is due when it may look again.
func TestPayNowDefers(t *testing.T) {
	for name, tc := range map[string]struct {
		pacer Throttle
		set   func(s *short)
		want  payout.Deferral
		did   []string
	}{
		"held": {nil, func(s *short) { s.rows.held = &payout.Hold{By: "ops"} }, payout.DeferredHeld, []string{"begin", "book"}},
		"low balance": {nil, func(s *short) {
			for n := 1; n < 4; n++ {
				s.Admission.report(t.Context(), payout.OpTransfer, paymentID(n), low)
			}
		}, payout.DeferredLowBalance, []string{"book"}},
		"pace": {busy(time.Minute), func(*short) {}, payout.DeferredThrottled, []string{"book"}},
		"slow": {nil, func(s *short) {
			for range slowCalls + 1 {
				s.calls.note(payout.OpTransfer, slowCall+1, s.at)
			}
		}, payout.NotDeferred, []string{"book"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(tc.pacer)
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

// TestPayNowWithoutTime: a send that could not end in time is left to the steps.
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

// busy is a pacer whose turn never comes.
type busy time.Duration

func (b busy) Acquire(context.Context, string) (time.Duration, error) { return time.Duration(b), nil }

// TestPayNowSlowProvider: a provider that takes its time keeps no workflow task
// waiting; it is noticed by any send, and when it has become fast again.
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
		s.callProvider(t.Context(), order)
	}
	before := s.wire.sends
	if send(0); s.wire.sends != before+1 {
		t.Error("it has become fast, and is not called within the workflow task")
	}
	for range slowCalls + 1 {
		s.calls.note(payout.OpTransfer, slowCall+1, s.at)
	}
	s.at = s.at.Add(slowFor)
	before = s.wire.sends
	if send(0); s.wire.sends != before+1 {
		t.Error("nothing was slow for long, and it is not called within the workflow task")
	}
}
