package workflows

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// The steps up to an open pool, and those from closing to the books.
var (
	opening = []string{"Advance", "RecordPacket", "ReadPayment c" + packetID + "0000", "Send", "Advance taken", "Fund", "OpenPool"}
	charge  = opening[:4]
)

func closing(reason packet.CloseReason, last ...string) []string {
	why := " " + string(reason)
	return append([]string{"Advance" + why, "BeginClosing" + why, "ClosePool" + why, "Drain", "CloseBooks"}, last...)
}

func steps(parts ...[]string) []string { return slices.Concat(parts...) }

func TestPacketTimerFiresAtExpiry(t *testing.T) {
	for _, tc := range []struct {
		name     string
		life     time.Duration
		jittered bool
	}{
		{"a life below an hour ends to the second", time.Minute, false},
		{"a life of a day ends with jitter", 24 * time.Hour, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newSteps(t)
			in := aPacket(tc.life)
			p.remainder = 700
			p.env.ExecuteWorkflow(Packet, in)
			if got := p.result(t); got != "expired: "+p.remainder.String()+" go back by refund/"+packetID+"/0" {
				t.Errorf("result %q", got)
			}
			p.want(t, steps(opening, closing(packet.CloseExpired))...)
			late := p.elapsed() - tc.life
			if late < 0 || late > 2*time.Second || tc.jittered != (late > 0) {
				t.Errorf("closed %v after expires_at", late)
			}
		})
	}
}

func TestPacketNothingRemained(t *testing.T) {
	p := newSteps(t)
	p.env.ExecuteWorkflow(Packet, aPacket(time.Minute))
	if got := p.result(t); got != "expired: nothing remained" {
		t.Errorf("result %q", got)
	}
	p.want(t, steps(opening, closing(packet.CloseExpired, "FinishPacket"))...)
}

// TestPacketLongStepsHaveTime: steps that read or write every share of a packet, up to a million,
// have a long timeout and send heartbeats.
func TestPacketLongStepsHaveTime(t *testing.T) {
	p := newSteps(t)
	p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
	p.result(t)
	for _, step := range []string{"Fund", "OpenPool", "CloseBooks"} {
		if got := p.options[step]; got.StartToCloseTimeout != bulkTimeout || got.HeartbeatTimeout != heartbeat {
			t.Errorf("%s has %v a try, and a beat in %v", step, got.StartToCloseTimeout, got.HeartbeatTimeout)
		}
	}
}

func TestPacketClosesBySignal(t *testing.T) {
	for _, reason := range []packet.CloseReason{packet.CloseSoldOut, packet.CloseRecalled} {
		t.Run(string(reason), func(t *testing.T) {
			p := newSteps(t)
			p.env.RegisterDelayedCallback(func() { p.env.SignalWorkflow(SignalClose, reason) }, 5*time.Minute)
			p.env.ExecuteWorkflow(Packet, aPacket(24*time.Hour))
			p.result(t)
			p.want(t, steps(opening, closing(reason, "FinishPacket"))...)
			if got := p.elapsed(); got < 5*time.Minute || got > 6*time.Minute {
				t.Errorf("closed after %v, signal came after 5 min", got)
			}
		})
	}

	t.Run("what is no reason is not heard", func(t *testing.T) {
		p := newSteps(t)
		for i, said := range []any{42, map[string]string{"reason": "recalled"}, nil, "", "please stop this packet", "stop"} {
			p.env.RegisterDelayedCallback(func() { p.env.SignalWorkflow(SignalClose, said) }, time.Duration(i+1)*time.Minute)
		}
		p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
		p.result(t)
		p.want(t, steps(opening, closing(packet.CloseExpired, "FinishPacket"))...)
		if got := p.elapsed(); got < time.Hour || got > 61*time.Minute {
			t.Errorf("closed after %v, it lives an hour", got)
		}
	})

	t.Run("the first reason wins", func(t *testing.T) {
		p := newSteps(t)
		p.env.RegisterDelayedCallback(func() {
			p.env.SignalWorkflow(SignalClose, packet.CloseRecalled)
			p.env.SignalWorkflow(SignalClose, packet.CloseSoldOut)
		}, time.Minute)
		p.env.ExecuteWorkflow(Packet, aPacket(24*time.Hour))
		p.result(t)
		p.want(t, steps(opening, closing(packet.CloseRecalled, "FinishPacket"))...)
	})

	t.Run("a signal before the pool is open is not lost", func(t *testing.T) {
		p := newSteps(t)
		p.env.RegisterDelayedCallback(func() { p.env.SignalWorkflow(SignalClose, packet.CloseSoldOut) }, 0)
		p.env.ExecuteWorkflow(Packet, aPacket(24*time.Hour))
		p.result(t)
		p.want(t, steps(opening, closing(packet.CloseSoldOut, "FinishPacket"))...)
	})
}

// TestR6_RedisClockDecidesExpiry: the run waits on "not yet" by Redis TIME and does not overrule
// it.
func TestR6_RedisClockDecidesExpiry(t *testing.T) {
	p := newSteps(t)
	p.closePool = func(n int) packet.PoolCloseResult {
		return []packet.PoolCloseResult{{NotYet: 1500 * time.Millisecond}, {NotYet: 300 * time.Millisecond}, {ClaimedCount: 4}}[n-1]
	}
	p.env.ExecuteWorkflow(Packet, aPacket(time.Minute))
	p.result(t)
	end := closing(packet.CloseExpired, "FinishPacket")
	p.want(t, steps(opening, end[:3], []string{"ClosePool expired", "ClosePool expired"}, end[3:])...)
	if got := p.timers[len(p.timers)-2:]; !slices.Equal(got, []time.Duration{1500 * time.Millisecond, 300 * time.Millisecond}) {
		t.Errorf("waited %v", got)
	}
}

// TestR6_RecallEndsTheWait: a run whose timer fired before Redis' expiry waits for that; a recall
// ends the wait.
func TestR6_RecallEndsTheWait(t *testing.T) {
	p := newSteps(t)
	p.closePool = func(n int) packet.PoolCloseResult {
		return []packet.PoolCloseResult{{NotYet: 23 * time.Hour}, {ClaimedCount: 4}}[n-1]
	}
	p.env.RegisterDelayedCallback(func() { p.env.SignalWorkflow(SignalClose, packet.CloseExpired) }, time.Minute)
	p.env.RegisterDelayedCallback(func() { p.env.SignalWorkflow(SignalClose, packet.CloseRecalled) }, 2*time.Minute)
	p.env.ExecuteWorkflow(Packet, aPacket(24*time.Hour))
	p.result(t)
	end := closing(packet.CloseExpired, "FinishPacket")
	p.want(t, steps(opening, end[:3], []string{"ClosePool recalled"}, end[3:])...)
	if got := p.elapsed(); got > 10*time.Minute {
		t.Errorf("closed after %v", got)
	}
}

func TestPacketRejected(t *testing.T) {
	p := newSteps(t)
	p.settle = func(payout.Observation) payout.State { return ended(payout.StatusFailed) }
	p.failure = "insufficient_sender_balance"
	p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
	if got := p.result(t); got != "rejected: insufficient_sender_balance" {
		t.Errorf("result %q", got)
	}
	p.want(t, steps(charge, []string{"Advance declined", "RejectPacket"})...)
	if !slices.Equal(p.upsert, []string{"failed/insufficient_sender_balance without provider"}) {
		t.Errorf("search attributes %q", p.upsert)
	}
}

// TestR2_FundingEndsSomewhere: whatever happens to the charge or the pool, the packet ends, and a
// charge is refunded.
func TestR2_FundingEndsSomewhere(t *testing.T) {
	t.Run("charge unknown past expires_at: asked on, closed without opening once it is paid", func(t *testing.T) {
		p := newSteps(t)
		p.remainder = 1000
		const paidAt = 3 * time.Hour
		next := 10 * time.Minute
		p.settle = func(payout.Observation) payout.State {
			if p.elapsed() >= paidAt {
				return ended(payout.StatusPaid)
			}
			next += 10 * time.Minute
			return ready(payout.StatusUnknown, payout.ActionQuery, at(next))
		}
		p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
		if got := p.result(t); !strings.HasPrefix(got, "unopened: ") {
			t.Errorf("result %q", got)
		}
		if p.count("Fund") != 0 || p.count("OpenPool") != 0 || p.count("Send") != 1 || p.count("Ask") < 10 {
			t.Errorf("steps %q", p.calls)
		}
		if got := p.calls[len(p.calls)-5:]; !slices.Equal(got, append([]string{"Advance taken"}, closing(packet.CloseUnopened)[1:]...)) {
			t.Errorf("end %q", got)
		}
		if got := p.elapsed(); got < paidAt {
			t.Errorf("ended after %v, before the charge was known", got)
		}
	})

	t.Run("charge declined past expires_at: rejected", func(t *testing.T) {
		p := newSteps(t)
		p.settle = func(payout.Observation) payout.State {
			if p.elapsed() >= 2*time.Hour {
				return ended(payout.StatusFailed)
			}
			return ready(payout.StatusUnknown, payout.ActionQuery, at(2*time.Hour))
		}
		p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
		if got := p.result(t); got != "rejected: account_frozen" || p.count("BeginClosing") != 0 {
			t.Errorf("result %q, steps %q", got, p.calls)
		}
	})

	t.Run("pool cannot be opened by expires_at: closed unopened", func(t *testing.T) {
		for name, cause := range map[string]error{
			"its pool is gone":              temporal.NewApplicationError("gone", "pool_gone"),
			"each try takes far too long":   temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil),
			"what is stored is another one": temporal.NewNonRetryableApplicationError("conflict", "conflict", nil),
		} {
			t.Run(name, func(t *testing.T) {
				p := newSteps(t)
				p.remainder = 1000
				p.openPool = func(int) error { return cause }
				p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
				if got := p.result(t); !strings.HasPrefix(got, "unopened: ") {
					t.Errorf("result %q", got)
				}
				if got := p.calls[len(p.calls)-5:]; !slices.Equal(got, append([]string{"Advance taken"}, closing(packet.CloseUnopened)[1:]...)) {
					t.Errorf("end %q", got)
				}
				if late := p.elapsed() - time.Hour; late > 0 {
					t.Errorf("gave up %v after expires_at", late)
				}
			})
		}
	})

	t.Run("shares cannot be written by expires_at: closed unopened", func(t *testing.T) {
		for name, cause := range map[string]error{
			"the tablespace is full":        temporal.NewApplicationError("full", "unavailable"),
			"each try takes far too long":   temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil),
			"what is stored is another one": temporal.NewNonRetryableApplicationError("conflict", "conflict", nil),
		} {
			t.Run(name, func(t *testing.T) {
				p := newSteps(t)
				p.remainder = 1000
				p.fund = func(int) error { return cause }
				p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
				if got := p.result(t); !strings.HasPrefix(got, "unopened: ") {
					t.Errorf("result %q", got)
				}
				if got := p.calls[len(p.calls)-5:]; !slices.Equal(got, append([]string{"Advance taken"}, closing(packet.CloseUnopened)[1:]...)) || p.count("OpenPool") != 0 {
					t.Errorf("steps %q", p.calls)
				}
				if late := p.elapsed() - time.Hour; late > 0 {
					t.Errorf("gave up %v after expires_at", late)
				}
			})
		}
	})

	t.Run("shares that are written late: open", func(t *testing.T) {
		p := newSteps(t)
		p.fund = func(n int) error {
			if n < 5 {
				return temporal.NewApplicationError("full", "unavailable")
			}
			return nil
		}
		p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
		if got := p.result(t); got != "expired: nothing remained" {
			t.Errorf("result %q", got)
		}
	})

	t.Run("both are tried until expires_at, and no longer", func(t *testing.T) {
		p := newSteps(t)
		p.advance = func(f packet.Facts) (activities.Advanced, error) { // the charge takes 20 minutes to be known
			if f.Status != "" {
				return activities.Advanced{}, errBroke
			}
			return activities.Advanced{Facts: packet.Facts{Status: packet.StatusFunding},
				Charge: outcome(activities.Outcome{State: ready(payout.StatusUnknown, payout.ActionQuery, at(20*time.Minute))})}, nil
		}
		p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
		p.result(t)
		for _, step := range []string{"Fund", "OpenPool"} {
			if got := p.options[step]; got.ScheduleToCloseTimeout != 40*time.Minute || got.StartToCloseTimeout != bulkTimeout ||
				got.HeartbeatTimeout != heartbeat {
				t.Errorf("%s has %v in all, %v a try, a beat in %v", step, got.ScheduleToCloseTimeout, got.StartToCloseTimeout, got.HeartbeatTimeout)
			}
		}
	})

	t.Run("a pool that opens late is open", func(t *testing.T) {
		p := newSteps(t)
		p.openPool = func(n int) error {
			if n < 5 {
				return temporal.NewApplicationError("gone", "pool_gone")
			}
			return nil
		}
		p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
		if got := p.result(t); got != "expired: nothing remained" {
			t.Errorf("result %q", got)
		}
	})
}

// TestR3_PacketRunHasNoAuthority: a second run of the packet's workflow continues from the row
// and never charges again.
func TestR3_PacketRunHasNoAuthority(t *testing.T) {
	for _, tc := range []struct {
		row   packet.Status
		steps []string
	}{
		{packet.StatusOpen, steps([]string{"Advance", "RecordPacket", "OpenPool"}, closing(packet.CloseExpired, "FinishPacket"))},
		{packet.StatusClosing, steps([]string{"Advance", "RecordPacket"}, closing(packet.CloseExpired, "FinishPacket")[2:])},
		{packet.StatusClosed, []string{"Advance", "RecordPacket", "FinishPacket"}},
		{packet.StatusRejected, []string{"Advance", "RecordPacket", "RejectPacket"}},
	} {
		t.Run(string(tc.row), func(t *testing.T) {
			p := newSteps(t)
			p.row = tc.row
			p.read = func(int) payout.State { return ended(payout.StatusFailed) }
			p.env.ExecuteWorkflow(Packet, aPacket(time.Minute))
			p.result(t)
			p.want(t, tc.steps...)
		})
	}

	t.Run("open, past expires_at", func(t *testing.T) {
		p := newSteps(t)
		p.row = packet.StatusOpen
		p.env.ExecuteWorkflow(Packet, aPacket(-time.Minute))
		p.result(t)
		p.want(t, steps([]string{"Advance", "RecordPacket"}, closing(packet.CloseExpired, "FinishPacket")[1:])...)
	})

	t.Run("funding, the charge already paid", func(t *testing.T) {
		p := newSteps(t)
		p.read = func(int) payout.State { return ended(payout.StatusPaid) }
		p.env.ExecuteWorkflow(Packet, aPacket(time.Minute))
		p.result(t)
		p.want(t, steps(charge[:3], opening[4:], closing(packet.CloseExpired, "FinishPacket"))...)
	})

	t.Run("funding, the charge already sent: asked, not sent", func(t *testing.T) {
		p := newSteps(t)
		p.read = func(int) payout.State { return ready(payout.StatusSending, payout.ActionQuery, time.Time{}) }
		p.env.ExecuteWorkflow(Packet, aPacket(time.Minute))
		p.result(t)
		if p.count("Send") != 0 || p.count("Ask") != 1 {
			t.Errorf("steps %q", p.calls)
		}
	})
}

func TestPacketContinuesAsNewWhileFunding(t *testing.T) {
	p := newSteps(t)
	p.env.SetContinueAsNewSuggested(true)
	p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
	goesOnAs(t, p, aPacket(time.Hour))
	p.want(t, charge[:3]...)
}

// goesOnAs returns the input with which a packet's run continues as new.
func goesOnAs(t *testing.T, p *parts, want PacketInput) {
	t.Helper()
	var next *workflow.ContinueAsNewError
	if err := p.env.GetWorkflowError(); !errors.As(err, &next) || next.WorkflowType.Name != PacketWorkflow {
		t.Fatalf("ended with %v", err)
	}
	var in PacketInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil || !reflect.DeepEqual(in, want) {
		t.Errorf("goes on with %+v, %v", in, err)
	}
}

// TestPacketReadsRestoredRows: MySQL is restored from before the run began to close, and the packet
// is open again. The run goes on from the row.
func TestPacketReadsRestoredRows(t *testing.T) {
	p := newSteps(t)
	p.movedBack = true
	p.env.ExecuteWorkflow(Packet, aPacket(time.Minute))
	p.result(t)
	p.want(t, steps(opening, closing(packet.CloseExpired), []string{"RecordPacket"}, closing(packet.CloseExpired, "FinishPacket")[1:])...)
}

// TestR13_DeclinedChargeAfterRestore: a run has seen the charge fail, and after a restore of
// MySQL its row has not. It does not reject the packet: it continues from the row, queries the
// charge, and opens the packet if that is paid.
func TestR13_DeclinedChargeAfterRestore(t *testing.T) {
	p, in := newSteps(t), aPacket(time.Minute)
	first := true
	p.settle = func(payout.Observation) payout.State {
		if first {
			first = false
			return ended(payout.StatusFailed)
		}
		return ended(payout.StatusPaid)
	}
	p.movedBack = true
	p.env.ExecuteWorkflow(Packet, in)
	p.result(t)
	p.want(t, steps(charge, []string{"Advance declined", "RejectPacket"}, opening[1:], closing(packet.CloseExpired, "FinishPacket"))...)
	if len(p.upsert) != 0 { // it would show the packet as failed
		t.Errorf("search attributes %q", p.upsert)
	}

	p = newSteps(t)
	p.read = func(int) payout.State { return ready(payout.StatusSending, payout.ActionQuery, time.Time{}) }
	p.env.ExecuteWorkflow(Packet, in)
	p.result(t)
	p.want(t, steps(charge[:3], []string{"Ask", "Settle succeeded"}, opening[4:], closing(packet.CloseExpired, "FinishPacket"))...)
}

// TestPacketShowsThatItsChargeIsPaid: an unknown charge that is paid later is not shown as
// unknown for the life of the packet.
func TestPacketShowsThatItsChargeIsPaid(t *testing.T) {
	p := newSteps(t)
	p.send = func(int) (activities.Outcome, error) {
		return sent(payout.ObsNoAnswer, ready(payout.StatusUnknown, payout.ActionQuery, at(time.Second))), nil
	}
	p.settle = func(payout.Observation) payout.State { return ended(payout.StatusPaid) }
	var while []string
	p.env.RegisterDelayedCallback(func() { while = slices.Clone(p.upsert) }, 2*time.Hour)
	p.env.ExecuteWorkflow(Packet, aPacket(24*time.Hour))
	p.result(t)
	if want := []string{"unknown", "paid"}; !slices.Equal(while, want) || !slices.Equal(p.upsert, want) {
		t.Errorf("while it is open %q, at the end %q, want %q", while, p.upsert, want)
	}
}
