package workflows

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

const (
	packetID = "0123456789abcdefghij"
	chargeNo = "c" + packetID + "000001"
	payoutNo = "p" + packetID + "000301"
	payoutID = "p" + packetID + "0003"
	refundID = "r" + packetID + "0000"
)

var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// parts replaces the activities: the workflows are tested alone, on a clock that skips waiting.
// Each step returns the test's answer and is recorded in calls.
type parts struct {
	env *testsuite.TestWorkflowEnvironment

	mu     sync.Mutex
	calls  []string
	seen   map[string]int // calls of each step so far
	timers []time.Duration
	// options are those of each step as it was started last.
	options map[string]activity.Info
	upsert  []string // search attributes upserted, in order

	row       packet.Status                      // RecordPacket
	read      func(n int) payout.State           // ReadPayment and RecordClaim; n counts from 1
	ask       func(n int) payout.ObservationKind // Ask
	settle    func(o payout.Observation) payout.State
	fund      func(n int) error // Fund; nil: the shares are written
	openPool  func(n int) error
	closePool func(n int) packet.PoolCloseResult
	remainder money.Fen // CloseBooks
	// notClosing: CloseBooks finds that the packet is open.
	notClosing bool
	reject     func(n int) error // RejectPacket
	settled    []payout.Observation
	sends      []string // the payments that were sent
	asked      []string // the order number that each was settled under
	payNow     func() (activities.Outcome, error)
	send       func(n int) (activities.Outcome, error) // Send
	record     func() payout.State                     // RecordClaim; nil: it is booked
	openNow    func() (activities.Opened, error)
	closeNow   func() (activities.Closed, error)
	refundNow  func() (activities.Refunded, error)
}

func newParts(t *testing.T) *parts {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(hearing(t))
	p := &parts{env: suite.NewTestWorkflowEnvironment(), seen: map[string]int{}, options: map[string]activity.Info{},
		row: packet.StatusFunding}
	p.env.SetStartTime(born)
	p.env.SetTestTimeout(30 * time.Second)
	p.env.RegisterActivity(p)
	for name, fn := range map[string]any{PacketWorkflow: Packet, PayoutWorkflow: Payout, RefundWorkflow: Refund, ChargeWorkflow: Charge} {
		p.env.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name})
	}
	p.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { p.timers = append(p.timers, d) })
	p.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		p.options[info.ActivityType.Name] = *info
	})
	p.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		attrs := args.Get(0).(temporal.SearchAttributes)
		status, _ := attrs.GetKeyword(AttrPayoutStatus)
		if code, ok := attrs.GetKeyword(AttrFailureCode); ok {
			status += "/" + code
		}
		p.upsert = append(p.upsert, status)
	}).Return(nil)
	// The normal course; tests replace parts of it.
	p.read = func(int) payout.State { return ready(payout.StatusPending, payout.ActionSend, time.Time{}) }
	p.ask = func(int) payout.ObservationKind { return payout.ObsSucceeded }
	p.settle = func(payout.Observation) payout.State { return ended(payout.StatusPaid) }
	p.payNow = func() (activities.Outcome, error) { return activities.Outcome{State: ended(payout.StatusPaid)}, nil }
	p.send = func(int) (activities.Outcome, error) {
		return sent(payout.ObsSucceeded, p.settle(payout.Observation{})), nil
	}
	p.openNow = func() (activities.Opened, error) {
		return activities.Opened{Status: packet.StatusOpen, Charge: &activities.Outcome{State: ended(payout.StatusPaid)}, PoolOpen: true}, nil
	}
	p.closeNow = func() (activities.Closed, error) {
		return activities.Closed{Closing: true, PoolClosed: true, LedgerClosed: true, Remainder: p.remainder, PacketClosed: p.remainder == 0}, nil
	}
	p.refundNow = func() (activities.Refunded, error) {
		return activities.Refunded{Outcome: sent(payout.ObsSucceeded, ended(payout.StatusPaid)), PacketClosed: true}, nil
	}
	p.openPool = func(int) error { return nil }
	p.reject = func(int) error { return nil }
	p.closePool = func(int) packet.PoolCloseResult { return packet.PoolCloseResult{} }
	return p
}

var errBroke = errors.New("broke")

// newSteps is newParts without combined steps: each step is a single activity.
func newSteps(t *testing.T) *parts {
	p := newParts(t)
	p.payNow = func() (activities.Outcome, error) { return activities.Outcome{}, errBroke }
	p.openNow = func() (activities.Opened, error) { return activities.Opened{}, errBroke }
	p.closeNow = func() (activities.Closed, error) { return activities.Closed{}, errBroke }
	p.refundNow = func() (activities.Refunded, error) { return activities.Refunded{}, errBroke }
	return p
}

// ready is a payment whose row names one more step.
func ready(s payout.Status, do payout.Action, at time.Time) payout.State {
	return payout.State{PaymentID: payoutID, Status: s, Step: payout.Step{Do: do, OrderNo: payoutNo, At: at}}
}

// ended is a payment that needs no more steps.
func ended(s payout.Status) payout.State {
	st := payout.State{PaymentID: payoutID, Status: s, Step: payout.Step{Do: payout.ActionEnd}}
	if s == payout.StatusFailed {
		st.Failure = payout.NewFailure("account_frozen", "")
	}
	if s == payout.StatusReturned {
		st.Failure = payout.NewFailure("returned", "")
	}
	return st
}

// did notes a call and returns how many there were of its kind.
func (p *parts) did(step, detail string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[step]++
	line := step
	if detail != "" {
		line += " " + detail
	}
	p.calls = append(p.calls, line)
	return p.seen[step]
}

// state is a state as the store reads it: now.
func (p *parts) state(st payout.State) payout.State {
	st.Clock = p.env.Now()
	return st
}

func (p *parts) outcome(o activities.Outcome, err error) (activities.Outcome, error) {
	o.State = p.state(o.State)
	return o, err
}

func (p *parts) RecordPacket(_ context.Context, _ packet.Packet) (packet.Status, error) {
	p.did("RecordPacket", "")
	return p.row, nil
}

func (p *parts) Fund(_ context.Context, _ string) (packet.Status, error) {
	if n := p.did("Fund", ""); p.fund != nil {
		if err := p.fund(n); err != nil {
			return "", err
		}
	}
	return packet.StatusOpen, nil
}

func (p *parts) OpenPool(_ context.Context, _ string) error { return p.openPool(p.did("OpenPool", "")) }

func (p *parts) RejectPacket(_ context.Context, _ string, f payout.Failure) error {
	return p.reject(p.did("RejectPacket", f.Code))
}

func (p *parts) BeginClosing(_ context.Context, _ string, reason packet.CloseReason) (packet.Status, error) {
	p.did("BeginClosing", string(reason))
	return packet.StatusClosing, nil
}

func (p *parts) ClosePool(_ context.Context, _ string, reason packet.CloseReason) (packet.PoolCloseResult, error) {
	return p.closePool(p.did("ClosePool", string(reason))), nil
}

func (p *parts) Drain(_ context.Context, _ packet.Packet) error { p.did("Drain", ""); return nil }

func (p *parts) CloseBooks(_ context.Context, _ string) (money.Fen, error) {
	p.did("CloseBooks", "")
	if p.notClosing {
		return 0, temporal.NewNonRetryableApplicationError("the packet is open", activities.TypeNotClosing, nil)
	}
	return p.remainder, nil
}

func (p *parts) FinishPacket(_ context.Context, _ string) (bool, error) {
	p.did("FinishPacket", "")
	return true, nil
}

func (p *parts) PayNow(_ context.Context, c packet.Claim) (activities.Outcome, error) {
	p.did("PayNow", c.UserID)
	return p.outcome(p.payNow())
}

func (p *parts) OpenNow(_ context.Context, _ packet.Packet) (activities.Opened, error) {
	p.did("OpenNow", "")
	done, err := p.openNow()
	if done.Charge != nil {
		charge, _ := p.outcome(*done.Charge, nil)
		done.Charge = &charge
	}
	return done, err
}

func (p *parts) CloseNow(_ context.Context, _ packet.Packet, reason packet.CloseReason) (activities.Closed, error) {
	p.did("CloseNow", string(reason))
	return p.closeNow()
}

func (p *parts) RefundNow(_ context.Context, id, _ string) (activities.Refunded, error) {
	p.did("RefundNow", id)
	done, err := p.refundNow()
	done.Outcome, _ = p.outcome(done.Outcome, nil)
	return done, err
}

func (p *parts) RecordClaim(_ context.Context, c packet.Claim) (payout.State, error) {
	p.did("RecordClaim", c.UserID)
	if p.record != nil {
		return p.state(p.record()), nil
	}
	return p.state(p.read(1)), nil
}

func (p *parts) ReadPayment(_ context.Context, id string) (payout.State, error) {
	return p.state(p.read(p.did("ReadPayment", id))), nil
}

func (p *parts) Send(_ context.Context, id string) (activities.Outcome, error) {
	p.sends = append(p.sends, id)
	return p.outcome(p.send(p.did("Send", ""))) // it books its answer itself
}

func (p *parts) Ask(_ context.Context, no string) (payout.Observation, error) {
	return payout.Observation{Source: payout.SourceQuery, Kind: p.ask(p.did("Ask", "")), OrderNo: no}, nil
}

// CarryOut finds that the cancel was withdrawn.
func (p *parts) CarryOut(_ context.Context, _ string) (payout.State, error) {
	p.did("CarryOut", "")
	return ended(payout.StatusFailed), nil
}

func (p *parts) Settle(_ context.Context, o payout.Observation, asked string) (payout.State, error) {
	p.did("Settle", string(o.Kind))
	p.mu.Lock()
	p.settled, p.asked = append(p.settled, o), append(p.asked, asked)
	p.mu.Unlock()
	return p.state(p.settle(o)), nil
}

// want compares the steps taken, in order.
func (p *parts) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(p.calls, want) {
		t.Errorf("steps:\n got %q\nwant %q", p.calls, want)
	}
}

// elapsed is the time on the skipping clock since the start.
func (p *parts) elapsed() time.Duration { return p.env.Now().Sub(born) }

func (p *parts) result(t *testing.T) string {
	t.Helper()
	if !p.env.IsWorkflowCompleted() {
		t.Fatal("workflow did not end")
	}
	if err := p.env.GetWorkflowError(); err != nil {
		t.Fatalf("workflow ended in error: %v", err)
	}
	var out string
	if err := p.env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// count is how often a step was taken so far.
func (p *parts) count(step string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[step]
}

func aPacket(life time.Duration) PacketInput {
	return PacketInput{Packet: packet.Packet{ID: packetID, App: "demo", SenderID: "s", Currency: packet.CurrencyCNY,
		TotalAmount: 1000, ShareCount: 4, Split: packet.SplitRandom, MinShare: 1, BodyHash: "h", Commitment: "c",
		CreatedAt: born, OpensAt: born, ExpiresAt: born.Add(life)}}
}

func aClaim() packet.Claim {
	return packet.Claim{PacketID: packetID, UserID: "u", ShareIndex: 3, Amount: 321, ClaimedAt: born}
}

// claimInput starts a payout as the relay does.
func claimInput() PayoutInput {
	c := aClaim()
	return PayoutInput{Claim: &c, PaymentID: payoutID}
}

func at(d time.Duration) time.Time { return born.Add(d) }
