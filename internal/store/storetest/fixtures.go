// Package storetest makes packets, claims, payments and decisions for the tests of store and report, and imports neither.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// Keys is the part of the store that makes keys.
type Keys interface {
	EnsureKey(ctx context.Context, k access.Key) error
}

// Balances is the part of the store that moves the balances of apps.
type Balances interface {
	Keys
	EnsureApp(ctx context.Context, a access.App) error
	MoveBalance(ctx context.Context, w staff.Write, m staff.BalanceMovement, evidence string, render staff.DecisionAnswer) (staff.Answer,
		error)
	AnswerApproval(ctx context.Context, w staff.Write, approvalID string, agree bool, render staff.DecisionAnswer) (staff.Answer, error)
}

// Store is what the fixtures use of store.Store and report.Source.
type Store interface {
	RecordPacket(ctx context.Context, p packet.Packet, sealedSeed []byte, eligible []string) (packet.Status, error)
	Fund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error)
	RejectPacket(ctx context.Context, id string, f packet.Failure) error
	BeginClosing(ctx context.Context, id string, reason packet.CloseReason) (packet.Status, error)
	CloseBooks(ctx context.Context, id string, reason packet.CloseReason) (money.Fen, error)
	FinishPacket(ctx context.Context, id string, first *packet.FirstAnswer) (bool, error)
	RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error)
	BeginSend(ctx context.Context, id string, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (payout.SendStart, error)
	Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error)
	PaymentState(ctx context.Context, id string) (payout.State, error)
	DueOutbox(ctx context.Context, limit int) ([]payout.DueRun, error)
	Balances
	Decide(ctx context.Context, w staff.Write, id string, c payout.DecisionRequest, render staff.DecisionAnswer) (staff.Answer, error)
	RequestDailyReconciliation(ctx context.Context, provider string, day payout.Day, by string) (staff.Reconciliation, error)
	BeginReconciliation(ctx context.Context, id string, dayEnd time.Time) (staff.Reconciliation, error)
	Reconciliation(ctx context.Context, id string) (staff.Reconciliation, error)
	SaveStatement(ctx context.Context, runID string, by payout.Adapter, day payout.Day, lines []payout.StatementLine) error
	SealStatement(ctx context.Context, runID string, by payout.Adapter, day payout.Day, readAt time.Time) error
	CompareLines(ctx context.Context, r staff.Reconciliation, after int64, unsettled bool, limit int) (int64, error)
	ComparePostings(ctx context.Context, r staff.Reconciliation, zone *time.Location, after staff.TransferCursor, limit int) (
		staff.TransferPage, error)
	ReviewBreaks(ctx context.Context, r staff.Reconciliation, after int64, limit int) (int64, error)
	FinishReconciliation(ctx context.Context, id string, missing map[payout.Op]staff.Sum) error
	VerifyLedger(ctx context.Context, found func(staff.Violation) error) (staff.VerifyReport, error)
	MySQL() *mysql.DB
}

// Provider is the provider of all tests.
const Provider = "sandbox"

// Adapter is the adapter of all tests that name no other.
var Adapter = payout.Adapter{Provider: Provider, Account: "1900007291"}

// Limits are those of its adapter.
var Limits = payout.Limits{Adapter: Adapter, LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour}

// ClockAhead is how far a test sets MySQL's clock ahead.
const ClockAhead = 30 * 24 * time.Hour

// WhileAhead runs do while the clock is ahead.
func (c *Clock) WhileAhead(do func()) {
	c.Pass(ClockAhead)
	do()
	c.Pass(-ClockAhead)
}

// Clock is the time that a store sees. Each read advances it by a millisecond, so that rows written in sequence have an order.
type Clock struct {
	mu sync.Mutex
	At time.Time
}

// NewClock returns a clock that stands at now.
func NewClock() *Clock { return &Clock{At: time.Now().UTC().Truncate(time.Millisecond)} }

// Now reads the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.At = c.At.Add(time.Millisecond)
	return c.At
}

// Pass advances the clock.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.At = c.At.Add(d)
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantErr ends the test on another error.
func WantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// NewID returns a new packet id.
func NewID() string { return packet.NewID([]byte(rand.Text()), "key") }

// SamplePacket returns a packet that is not stored yet.
func SamplePacket(total money.Fen, shares int) packet.Packet {
	now := time.Now().UTC().Truncate(time.Millisecond)
	group := "group"
	return packet.Packet{ID: NewID(), ChargeProvider: Provider, PayoutProvider: Provider,
		App: "app", SenderID: "sender", Currency: packet.CurrencyCNY, TotalAmount: total, ShareCount: shares,
		Split: "equal", MinShare: 1, MaxShare: 9, Greeting: "恭喜发财 🧧", GroupID: &group, Metadata: map[string]string{"k": "v"},
		BodyHash: strings.Repeat("a", 64), Commitment: strings.Repeat("b", 64), CreatedAt: now, OpensAt: now, ExpiresAt: now.Add(24 * time.Hour)}
}

// Recorded is a packet row in funding with its pending charge.
func Recorded(t testing.TB, s Store, p packet.Packet) packet.Packet {
	t.Helper()
	status, err := s.RecordPacket(t.Context(), p, []byte("sealed"), nil)
	Must(t, err)
	if status != packet.StatusFunding {
		t.Fatalf("recorded as %s", status)
	}
	return p
}

// ChargeID is the payment id of a packet's charge.
func ChargeID(p packet.Packet) string { return payout.ID(payout.KindCharge, p.ID, 0) }

// RefundID is that of the refund of its remainder.
func RefundID(p packet.Packet) string { return payout.ID(payout.KindRefund, p.ID, 0) }

// PayoutID is that of the payout of a share.
func PayoutID(p packet.Packet, share int) string {
	return payout.ID(payout.KindPayout, p.ID, share)
}

// Funded is an open packet of equal shares.
func Funded(t testing.TB, s Store, total money.Fen, shares int) packet.Packet {
	t.Helper()
	p := SamplePacket(total, shares)
	Open(t, s, p)
	return p
}

// Open opens a packet with equal shares.
func Open(t testing.TB, s Store, p packet.Packet) {
	t.Helper()
	Recorded(t, s, p)
	Pay(t, s, ChargeID(p))
	status, err := s.Fund(t.Context(), p.ID, Even(p))
	Must(t, err)
	if status != packet.StatusOpen {
		t.Fatalf("funded, and %s", status)
	}
}

// Even returns the amounts of equal shares.
func Even(p packet.Packet) []money.Fen {
	out := make([]money.Fen, p.ShareCount)
	rest := p.TotalAmount
	for i := range out {
		out[i] = rest / money.Fen(len(out)-i)
		rest -= out[i]
	}
	return out
}

// ClaimOf returns a claim of a share.
func ClaimOf(p packet.Packet, share int, user string) packet.Claim {
	return packet.Claim{PacketID: p.ID, UserID: user, ShareIndex: share, Amount: Even(p)[share],
		ClaimedAt: time.Now().UTC().Truncate(time.Millisecond)}
}

// Claim records a claim.
func Claim(t testing.TB, s Store, p packet.Packet, share int, user string) payout.State {
	t.Helper()
	st, err := s.RecordClaim(t.Context(), ClaimOf(p, share, user))
	Must(t, err)
	return st
}

// Encode returns the request of an instruction.
func Encode(in payout.Instruction) ([]byte, error) {
	return fmt.Appendf(nil, "%s %s %s %d %s %s", in.Op, in.OrderNo, in.Account, in.Amount, in.Currency, in.ChargeOrderNo), nil
}

// Begin records a send and returns its order, which must exist.
func Begin(t testing.TB, s Store, id string) payout.Order {
	t.Helper()
	b, err := s.BeginSend(t.Context(), id, Limits, Encode)
	Must(t, err)
	if b.Order == nil {
		t.Fatalf("nothing may be sent: %+v", b.State)
	}
	return *b.Order
}

// Observation returns an observation of an order.
func Observation(source payout.Source, orderNo string, kind payout.ObservationKind) payout.Observation {
	return payout.Observation{ID: rand.Text(), Adapter: Adapter, Source: source, Kind: kind, OrderNo: orderNo}
}

// Settle settles an observation.
func Settle(t testing.TB, s Store, source payout.Source, orderNo string, kind payout.ObservationKind) payout.State {
	t.Helper()
	st, err := s.Settle(t.Context(), Observation(source, orderNo, kind), orderNo)
	Must(t, err)
	return st
}

// Pay carries out a pending payment.
func Pay(t testing.TB, s Store, id string) payout.Order {
	t.Helper()
	o := Begin(t, s, id)
	if st := Settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded); st.Status != payout.StatusPaid {
		t.Fatalf("%s, want paid", st.Status)
	}
	return o
}

// Fail refuses a pending payment, confirmed by a query.
func Fail(t testing.TB, s Store, id string) payout.Order {
	t.Helper()
	return FailAs(t, s, id, "")
}

// FailAs refuses it with a code of the provider's.
func FailAs(t testing.TB, s Store, id, why string) payout.Order {
	t.Helper()
	o := Begin(t, s, id)
	seen := Observation(payout.SourceSend, o.OrderNo, payout.ObsDeclined)
	seen.Code = why
	_, err := s.Settle(t.Context(), seen, o.OrderNo)
	Must(t, err)
	seen.ID, seen.Source = rand.Text(), payout.SourceQuery
	st, err := s.Settle(t.Context(), seen, o.OrderNo)
	if Must(t, err); st.Status != payout.StatusFailed || st.Failure == nil {
		t.Fatalf("%+v, want failed", st)
	}
	return o
}

// Together runs fn n times concurrently and returns the errors.
func Together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { <-start; errs[i] = fn(i) })
	}
	close(start)
	wg.Wait()
	return errs
}

// Query reads one value.
func Query[T any](t testing.TB, s Store, text string, args ...any) T {
	t.Helper()
	var v T
	Must(t, s.MySQL().SQL.QueryRowContext(t.Context(), text, args...).Scan(&v))
	return v
}

// Owing is the payout id of an open packet's only share, claimed.
func Owing(t testing.TB, s Store) string {
	t.Helper()
	p := Funded(t, s, 100, 1)
	Claim(t, s, p, 0, "u")
	return PayoutID(p, 0)
}

// Due lists the payments of due outbox entries.
func Due(t testing.TB, s Store, limit int) []string {
	t.Helper()
	rows, err := s.DueOutbox(t.Context(), limit)
	Must(t, err)
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Payment.ID
	}
	return ids
}

// Claimed returns the reference of a claim.
func Claimed(c packet.Claim) payout.ClaimRef {
	return payout.ClaimRef{PacketID: c.PacketID, UserID: c.UserID, ShareIndex: c.ShareIndex}
}

// Closed closes the books of a packet and finishes it.
func Closed(t testing.TB, s Store, p packet.Packet) {
	t.Helper()
	_, err := s.BeginClosing(t.Context(), p.ID, packet.CloseRecalled)
	Must(t, err)
	rest, err := s.CloseBooks(t.Context(), p.ID, "")
	Must(t, err)
	if rest > 0 {
		Pay(t, s, RefundID(p))
	}
	_, err = s.FinishPacket(t.Context(), p.ID, nil)
	Must(t, err)
}

// ManyLives leaves packets at every stage, with payouts of every outcome.
func ManyLives(t testing.TB, s Store) {
	t.Helper()
	ctx := t.Context()
	Recorded(t, s, SamplePacket(100, 1)) // funding
	rejected := Recorded(t, s, SamplePacket(100, 1))
	Fail(t, s, payout.ID(payout.KindCharge, rejected.ID, 0))
	Must(t, s.RejectPacket(ctx, rejected.ID, packet.Failure{Code: "declined", Message: "y"}))
	Funded(t, s, 100, 1) // open
	p := Funded(t, s, 1000, 5)
	for i := range 4 {
		Claim(t, s, p, i, fmt.Sprint("u", i))
	}
	one := Pay(t, s, PayoutID(p, 0))
	Settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsReturned)
	Fail(t, s, PayoutID(p, 1))
	Decide(t, s, PayoutID(p, 1))
	Settle(t, s, payout.SourceQuery, payout.OrderNo(PayoutID(p, 1), 1), payout.ObsDeclined)
	Pay(t, s, PayoutID(p, 1))
	Settle(t, s, payout.SourceQuery, payout.OrderNo(PayoutID(p, 1), 1), payout.ObsSucceeded) // paid twice
	Pay(t, s, PayoutID(p, 2))
	_, err := s.BeginClosing(ctx, p.ID, "expired")
	Must(t, err)
	_, err = s.CloseBooks(ctx, p.ID, "")
	Must(t, err)
	Pay(t, s, RefundID(p))
	_, err = s.FinishPacket(ctx, p.ID, nil)
	Must(t, err)
}

// Verified runs the verification and returns its findings.
func Verified(t testing.TB, s Store) (staff.VerifyReport, []staff.Violation) {
	t.Helper()
	var found []staff.Violation
	v, err := s.VerifyLedger(t.Context(), func(f staff.Violation) error {
		found = append(found, f)
		return nil
	})
	Must(t, err)
	if v.ViolationCount() != int64(len(found)) {
		t.Errorf("%d violations counted, %d reported", v.ViolationCount(), len(found))
	}
	return v, found
}

// Tamper changes rows with the tables' checks switched off.
func Tamper(t testing.TB, raw *sql.DB, statement string) {
	t.Helper()
	conn, err := raw.Conn(t.Context())
	Must(t, err)
	defer func() { Must(t, conn.Close()) }()
	_, err = conn.ExecContext(t.Context(), "SET SESSION check_constraint_checks = 0")
	Must(t, err)
	res, err := conn.ExecContext(t.Context(), statement)
	Must(t, err)
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s: %d rows, %v", statement, n, err)
	}
	_, err = conn.ExecContext(t.Context(), "SET SESSION check_constraint_checks = 1")
	Must(t, err)
}

// CheckLedger verifies every packet and payment of the database.
func CheckLedger(t testing.TB, s Store) {
	t.Helper()
	if _, broken := Verified(t, s); len(broken) != 0 {
		t.Errorf("the ledger breaks %+v", broken)
	}
}

// NewSnapshot returns an empty health snapshot.
func NewSnapshot() *observe.HealthSnapshot {
	return &observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
}
