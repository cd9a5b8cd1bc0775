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

func (r *rows) PaymentState(_ context.Context, id string) (payout.State, error) {
	r.did = append(r.did, "read")
	return r.state(id), nil
}

func (r *rows) BeginSend(_ context.Context, id string, _ payout.Limits, _ func(payout.Instruction) ([]byte,
	error)) (payout.SendStart, error) {
	r.did = append(r.did, "note")
	if r.beginErr != nil {
		return payout.SendStart{}, r.beginErr
	}
	if r.held != nil || r.noted {
		return payout.SendStart{State: r.state(id), Hold: r.held}, nil
	}
	r.noted = true
	if r.begun != nil {
		r.begun()
	}
	return payout.SendStart{State: r.state(id), Order: &payout.Order{Op: payout.OpTransfer, OrderNo: payout.OrderNo(id, 1),
		Request: []byte("stored"), Send: 1}}, nil
}

func (s *short) send(t *testing.T) (Outcome, error) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(s.Payments.Send)
	value, err := env.ExecuteActivity(s.Payments.Send, paymentID(0))
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	if err := value.Get(&out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// TestR3_SendNotesFirst: the send is noted before it leaves, with the stored bytes. Its call has
// a timeout, and its answer is settled under its own id.
func TestR3_SendNotesFirst(t *testing.T) {
	s := newShort(nil)
	got, err := s.send(t)
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, "note", "send stored", "settle")
	if got.State.Status != payout.StatusPaid || got.Unsettled || got.Observation.Kind != payout.ObsSucceeded {
		t.Errorf("%+v", got)
	}
	if o := s.rows.settled[0]; o.ID != payout.OrderNo(paymentID(0), 1)+"/1" {
		t.Errorf("observation %q is not named after its send", o.ID)
	}
}

// TestR3_SendAgainSendsNothing: a repeat of the step finds the first note, wherever that attempt
// ended: nothing is sent twice under one note.
func TestR3_SendAgainSendsNothing(t *testing.T) {
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
			_, _ = s.send(t)
			s.rows.begun, s.wire.took = nil, nil
			sends := s.wire.sends
			got, err := s.send(t)
			if err != nil {
				t.Fatal(err)
			}
			if s.wire.sends != sends || got.State.Step.Do != tc.want || got.Observation != nil {
				t.Errorf("sent %d times more, next is %q", s.wire.sends-sends, got.State.Step.Do)
			}
		})
	}
	t.Run("beside the first, which has not left yet", func(t *testing.T) {
		s := newShort(nil)
		s.rows.begun = func() { // the server gave up on the first, which goes on
			s.rows.begun = nil
			if got, err := s.send(t); err != nil || got.State.Step.Do != payout.ActionQuery || got.Observation != nil {
				t.Errorf("the repeat: %+v, %v", got, err)
			}
			s.at = s.at.Add(payout.LeaveWithin)
		}
		if _, err := s.send(t); err != nil {
			t.Fatal(err)
		}
		s.want(t, "note", "note")
	})
}

// TestR4_SendLeavesInTime: a send that waited too long after its note does not leave, by wall
// clock and by monotonic clock; the row says query. Time before the note does not count.
func TestR4_SendLeavesInTime(t *testing.T) {
	for name, later := range map[string]func(time.Time) time.Time{
		"stopped": func(at time.Time) time.Time { return at.Add(payout.LeaveWithin) },
		"suspended: only the hands went on": func(at time.Time) time.Time {
			return at.Round(0).Add(payout.LeaveWithin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(nil)
			s.rows.begun = func() { s.at = later(s.at) }
			got, err := s.send(t)
			if err != nil || got.State.Step.Do != payout.ActionQuery || got.Observation != nil {
				t.Errorf("%+v, %v", got, err)
			}
			s.want(t, "note")
		})
	}
	t.Run("in time", func(t *testing.T) {
		s := newShort(nil)
		s.Admissions["sandbox"] = NewAdmission("sandbox", late(func() { s.at = s.at.Add(time.Hour) }), slog.New(slog.DiscardHandler))
		s.rows.begun = func() { s.at = s.at.Add(payout.LeaveWithin - time.Millisecond) }
		if _, err := s.send(t); err != nil {
			t.Fatal(err)
		}
		s.want(t, "note", "send stored", "settle")
	})
}

// late is a throttle that admits at once, after a callback.
type late func()

func (l late) Acquire(context.Context, string) (time.Duration, error) { l(); return 0, nil }

// TestR4_LateAnswerIsNotBookedBesideTheRun: an answer that arrives after its send no longer
// counts as open is returned to the run and not settled by the step. A later send may be open by
// then.
func TestR4_LateAnswerIsNotBookedBesideTheRun(t *testing.T) {
	// the bank has no window
	for late, want := range map[time.Duration]bool{payout.LeaveWithin - time.Millisecond: false, payout.LeaveWithin: true} {
		s := newShort(nil)
		s.wire.took = func() { s.at = s.at.Add(late) }
		got, err := s.send(t)
		if err != nil || got.Unsettled != want || got.Observation == nil || len(s.rows.settled) > 0 == want {
			t.Errorf("after %v: %+v, %v", late, got, err)
		}
	}
}

// TestSendOutcomes: every answer of the provider, or its silence, is an outcome and no error. An
// unsettled answer is returned with its id and order number.
func TestSendOutcomes(t *testing.T) {
	for _, kind := range []payout.ObservationKind{payout.ObsDeclined, payout.ObsNoAnswer, payout.ObsRetryAfter,
		payout.ObsNotSent, payout.ObsPending, payout.ObsNeedsRecipient} {
		s := newShort(nil)
		s.wire.answer.Kind = kind
		if got, err := s.send(t); err != nil || got.Observation.Kind != kind || got.Unsettled {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	s := newShort(nil)
	s.rows.settleErr = errors.New("connection refused")
	got, err := s.send(t)
	if err != nil || !got.Unsettled || got.Observation.Kind != payout.ObsSucceeded || got.Observation.ID == "" ||
		got.OrderNo != payout.OrderNo(paymentID(0), 1) {
		t.Errorf("not booked: %+v, %v", got, err)
	}
	s = newShort(nil)
	s.rows.beginErr = packet.ErrUnavailable
	if _, err := s.send(t); err == nil {
		t.Error("nothing was noted, and there was no error")
	}
	s.want(t, "note")
}

// TestSendDefers: a deferral applies here too. Nothing is noted without admission, and the send
// is due at the retry.
func TestSendDefers(t *testing.T) {
	for name, tc := range map[string]struct {
		throttle Throttle
		set      func(s *short)
		want     payout.Deferral
		did      []string
	}{
		"held": {nil, func(s *short) { s.rows.held = &payout.Hold{By: "ops"} }, payout.DeferredHeld, []string{"note"}},
		"low balance": {nil, func(s *short) {
			for n := 1; n < 4; n++ {
				s.Admissions["sandbox"].report(t.Context(), payout.OpTransfer, paymentID(n), low)
			}
		}, payout.DeferredLowBalance, []string{"read"}},
		"pace": {busy(time.Minute), func(*short) {}, payout.DeferredThrottled, []string{"read"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(tc.throttle)
			tc.set(s)
			got, err := s.send(t)
			if err != nil {
				t.Fatal(err)
			}
			if step := got.State.Step; !slices.Equal(s.rows.did, tc.did) || step.Do != payout.ActionSend || step.Deferred != tc.want ||
				step.At.IsZero() {
				t.Errorf("did %q, next: %+v", s.rows.did, step)
			}
		})
	}
}
