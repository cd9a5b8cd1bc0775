package payout

import (
	"fmt"
	"testing"
	"time"
)

var (
	t0     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	limits = Limits{LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour}
)

const amount = 1234

// paymentStore is a payment with its attempts and its part of the ledger. Its methods do what the
// store's transactions do.
type paymentStore struct {
	p        Payment
	attempts []Attempt
	now      time.Time
	seq      int
	posted   []Transfer
	breaks   []Break
	last     Settlement
}

func newPaymentStore(kind Kind) *paymentStore {
	id := ID(kind, packetID, 3)
	return &paymentStore{now: t0, p: Payment{ID: id, Kind: kind, PacketID: packetID, App: "app", UserID: "u", ShareIndex: 3, Account: "acct",
		Amount: amount, Currency: "CNY", Status: StatusPending, CreatedAt: t0, UpdatedAt: t0}}
}

func (b *paymentStore) step() Step { return Next(b.p, b.attempts) }

func (b *paymentStore) attempt(no int) *Attempt { return &b.attempts[no-1] }

// send is the store's BeginSend: it returns the order number, or "" when nothing may be sent.
func (b *paymentStore) send() (string, error) {
	switch ChooseOrderNo(b.p, b.attempts, b.now) {
	case NoOrderNo:
		if len(b.attempts) > 0 && b.step().Do == ActionSend {
			found, err := RefuseSend(&b.p, &b.attempts[len(b.attempts)-1], b.now)
			if found != nil {
				b.breaks = append(b.breaks, *found)
			}
			return "", err
		}
		return "", nil
	case NewOrderNo:
		b.attempts = append(b.attempts, NewAttempt(b.p, len(b.attempts)+1, []byte("request")))
	}
	cur := &b.attempts[len(b.attempts)-1]
	return cur.OrderNo, RecordSend(&b.p, cur, limits, b.now)
}

// settle is the store's Settle for attempt no.
func (b *paymentStore) settle(no int, o Observation) error {
	if o.ID == "" {
		b.seq++
		o.ID = fmt.Sprintf("run/%d", b.seq)
	}
	s, err := Settle(b.p, *b.attempt(no), o, b.now)
	if err != nil {
		return err
	}
	b.last = s
	b.p, *b.attempt(no) = s.Payment, s.Attempt
	b.posted = append(b.posted, s.Transfers...)
	b.breaks = append(b.breaks, s.Breaks...)
	return nil
}

// decide is the store's Decide and, by two persons, its approval.
func (b *paymentStore) decide(kind DecisionKind, second bool) error {
	e, err := Decide(&b.p, b.attempts, kind, second, b.now)
	if err != nil {
		return err
	}
	b.posted = append(b.posted, e.Transfers...)
	return nil
}

// carryOut is the store's CarryOut; it returns the status of the decision.
func (b *paymentStore) carryOut() (DecisionStatus, error) {
	e, ok, err := CarryOut(&b.p, b.attempts, b.now)
	if !ok {
		return DecisionOpen, err
	}
	b.posted = append(b.posted, e.Transfers...)
	return e.Status, err
}

func (b *paymentStore) retry() error { return b.decide(DecisionRetry, false) }

// owed is the balance of owed for a payout whose claim is recorded.
func (b *paymentStore) owed() int {
	owed := amount
	for _, p := range b.posted {
		if p.Debit == AccountOwed {
			owed -= int(p.Amount)
		}
		if p.Credit == AccountOwed {
			owed += int(p.Amount)
		}
	}
	return owed
}

func (b *paymentStore) breakKinds() []BreakKind {
	var out []BreakKind
	for _, x := range b.breaks {
		out = append(out, x.Kind)
	}
	return out
}

// script drives paymentStore through a story and fails the test at the first deviation.
type script struct {
	*paymentStore
	t testing.TB
}

func story(t testing.TB, kind Kind) *script { return &script{newPaymentStore(kind), t} }

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// sends begins a send and settles its answer; "" leaves it unanswered.
func (s *script) sends(kind ObservationKind) *script {
	s.t.Helper()
	no, err := s.send()
	s.must(err)
	if no == "" {
		s.t.Fatalf("nothing may be sent: %s, next %+v", s.p.Status, s.step())
	}
	if kind != "" {
		s.answers(SourceSend, len(s.attempts), kind)
	}
	return s
}

func (s *script) queries(no int, kind ObservationKind) *script {
	s.t.Helper()
	return s.answers(SourceQuery, no, kind)
}

func (s *script) answers(source Source, no int, kind ObservationKind) *script {
	s.t.Helper()
	s.must(s.settle(no, said(source, s.attempt(no).OrderNo, kind)))
	return s
}

func (s *script) after(d time.Duration) *script {
	s.now = s.now.Add(d)
	return s
}

func (s *script) retries() *script {
	s.t.Helper()
	s.after(time.Second)
	s.must(s.retry())
	s.after(time.Second)
	return s
}

// cancels carries out a cancel, after a query of the first number.
func (s *script) cancels(answer ObservationKind) *script {
	s.t.Helper()
	s.after(time.Second)
	s.must(s.decide(DecisionCancel, true))
	s.after(time.Second).queries(1, answer)
	status, err := s.carryOut()
	s.must(err)
	if status != DecisionCarriedOut {
		s.t.Fatalf("the cancel is %s", status)
	}
	return s.is(StatusCancelled)
}

func (s *script) is(status Status) *script {
	s.t.Helper()
	if s.p.Status != status {
		s.t.Fatalf("%s, want %s", s.p.Status, status)
	}
	if failed := status == StatusFailed || status == StatusReturned; failed != (s.p.Failure != nil) {
		s.t.Fatalf("%s with failure %v", status, s.p.Failure)
	}
	return s
}

func (s *script) next(do Action, no int) *script {
	s.t.Helper()
	got := s.step()
	want := ""
	if no > 0 {
		want = s.attempt(no).OrderNo
	}
	if got.Do != do || got.OrderNo != want {
		s.t.Fatalf("next is %s %s, want %s %s", got.Do, got.OrderNo, do, want)
	}
	return s
}

func (s *script) broke(kinds ...BreakKind) *script {
	s.t.Helper()
	if got := s.breakKinds(); fmt.Sprint(got) != fmt.Sprint(kinds) {
		s.t.Fatalf("breaks %v, want %v", got, kinds)
	}
	return s
}

func (s *script) owes(want int) *script {
	s.t.Helper()
	if s.owed() != want {
		s.t.Fatalf("owed %d, want %d; posted %v", s.owed(), want, s.posted)
	}
	return s
}

func said(source Source, orderNo string, kind ObservationKind) Observation {
	o := Observation{Source: source, OrderNo: orderNo, Kind: kind}
	if kind == ObsDeclined {
		o.Code, o.Message = "payee_declined", "no transfers"
	}
	if kind == ObsNeedsRecipient && source == SourceSend {
		o.SealedAction = []byte("sealed")
	}
	return o
}

var allKinds = []ObservationKind{ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsReturned, ObsRetryAfter,
	ObsNeverReceived, ObsNoAnswer, ObsNotSent}

// recordClose is the store's part of a close call: its result.
func (b *paymentStore) recordClose(answered bool) {
	RecordClose(&b.p, &b.attempts[len(b.attempts)-1], answered, b.now)
}
