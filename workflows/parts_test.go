package workflows

import (
	"cmp"
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
	// movedBack: once, CloseBooks or RejectPacket finds the row at an earlier step.
	movedBack bool
	failure   string // of the charge, as RejectPacket reads it
	settled   []payout.Observation
	sends     []string // the payments that were sent
	asked     []string // the order number that each was settled under
	payNow    func() (activities.Outcome, error)
	send      func(n int) (activities.Outcome, error) // Send
	record    func() payout.State                     // RecordClaim; nil: it is booked
	advance   func(packet.Facts) (activities.Advanced, error)
	refundNow func() (activities.Refunded, error)
}

func newParts(t *testing.T) *parts {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(hearing(t))
	p := &parts{env: suite.NewTestWorkflowEnvironment(), seen: map[string]int{}, options: map[string]activity.Info{},
		row: packet.StatusFunding, failure: "account_frozen"}
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
		if provider, _ := attrs.GetKeyword(AttrProvider); provider != "bank" {
			status += " without provider"
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
	p.advance = func(f packet.Facts) (activities.Advanced, error) {
		if f.Reason == "" {
			return activities.Advanced{Facts: packet.Facts{Status: packet.StatusOpen, Charge: packet.ChargeTaken, Pool: packet.PoolUsed}}, nil
		}
		f.Status, f.Pool, f.Remainder = packet.StatusClosing, packet.PoolEnded, &p.remainder
		if p.remainder == 0 {
			f.Status, f.Finished = packet.StatusClosed, true
		}
		return activities.Advanced{Facts: f}, nil
	}
	p.refundNow = func() (activities.Refunded, error) {
		return activities.Refunded{Outcome: sent(payout.ObsSucceeded, ended(payout.StatusPaid)), PacketClosed: true}, nil
	}
	p.openPool = func(int) error { return nil }
	p.closePool = func(int) packet.PoolCloseResult { return packet.PoolCloseResult{} }
	return p
}

var errBroke = errors.New("broke")

// newSteps is newParts without combined steps: each step is a single activity.
func newSteps(t *testing.T) *parts {
	p := newParts(t)
	p.payNow = func() (activities.Outcome, error) { return activities.Outcome{}, errBroke }
	p.advance = func(packet.Facts) (activities.Advanced, error) { return activities.Advanced{}, errBroke }
	p.refundNow = func() (activities.Refunded, error) { return activities.Refunded{}, errBroke }
	return p
}

// ready is a payment whose row names one more step.
func ready(s payout.Status, do payout.Action, at time.Time) payout.State {
	return payout.State{PaymentID: payoutID, Provider: "bank", Status: s, Step: payout.Step{Do: do, OrderNo: payoutNo, At: at}}
}

// ended is a payment that needs no more steps.
func ended(s payout.Status) payout.State {
	st := payout.State{PaymentID: payoutID, Provider: "bank", Status: s, Step: payout.Step{Do: payout.ActionEnd}}
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

func (p *parts) RecordPacket(_ context.Context, _ packet.Packet, _ packet.Facts) (packet.Facts, error) {
	p.did("RecordPacket", "")
	return packet.Facts{Status: p.row}, nil
}

func (p *parts) Fund(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	if n := p.did("Fund", ""); p.fund != nil {
		if err := p.fund(n); err != nil {
			return f, err
		}
	}
	f.Status = packet.StatusOpen
	return f, nil
}

func (p *parts) OpenPool(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	f.Pool = packet.PoolUsed
	return f, p.openPool(p.did("OpenPool", ""))
}

func (p *parts) RejectPacket(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	if p.did("RejectPacket", ""); p.rowMovedBack() {
		return packet.Facts{}, nil
	}
	f.Status, f.Failure, f.Finished = packet.StatusRejected, &packet.Failure{Code: p.failure}, true
	return f, nil
}

// rowMovedBack reports, once, that MySQL was restored.
func (p *parts) rowMovedBack() bool {
	was := p.movedBack
	p.movedBack = false
	return was
}

func (p *parts) BeginClosing(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	f.Reason, f.Status = f.CloseReason(), packet.StatusClosing
	p.did("BeginClosing", string(f.Reason))
	return f, nil
}

func (p *parts) ClosePool(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	if f.NotYet = p.closePool(p.did("ClosePool", string(f.CloseReason()))).NotYet; f.NotYet == 0 {
		f.Pool = packet.PoolEnded
	}
	return f, nil
}

func (p *parts) Drain(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	p.did("Drain", "")
	f.Drained = true
	return f, nil
}

func (p *parts) CloseBooks(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	if p.did("CloseBooks", ""); p.rowMovedBack() {
		p.row = packet.StatusOpen
		return packet.Facts{}, nil
	}
	f.Remainder = &p.remainder
	return f, nil
}

func (p *parts) FinishPacket(_ context.Context, _ packet.Packet, f packet.Facts) (packet.Facts, error) {
	p.did("FinishPacket", "")
	f.Status, f.Finished = packet.StatusClosed, true
	return f, nil
}

func (p *parts) PayNow(_ context.Context, c packet.Claim) (activities.Outcome, error) {
	p.did("PayNow", c.UserID)
	return p.outcome(p.payNow())
}

func (p *parts) Advance(_ context.Context, _ packet.Packet, f packet.Facts) (activities.Advanced, error) {
	p.did("Advance", cmp.Or(string(f.Reason), string(f.Charge)))
	done, err := p.advance(f)
	if done.Charge != nil {
		charge, _ := p.outcome(*done.Charge, nil)
		done.Charge = &charge
	}
	return done, err
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
