package storetest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// By returns a write with an active key of its owner; the key is created when missing.
func By(t testing.TB, s Keys, w staff.Write) staff.Write {
	t.Helper()
	hash := sha256.Sum256([]byte(w.Role + "/" + w.Owner))
	w.KeyID = strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:12])
	Must(t, s.EnsureKey(t.Context(), access.Key{ID: w.KeyID, Role: access.Role(w.Role), Owner: w.Owner, SecretHash: hash[:]}))
	return w
}

// StaffWrite returns a new write of a person with a key.
func StaffWrite(t testing.TB, s Keys, owner string) staff.Write {
	t.Helper()
	return By(t, s, staff.Write{Owner: owner, Role: "finance", Route: "r", Key: rand.Text(), BodyHash: "h", Reason: "why"})
}

// Second returns a write of another person.
func Second(t testing.TB, s Store, key string) staff.Write {
	w := FinanceWrite(t, s, key, "h")
	w.Owner, w.Route = "finance2", "POST /v1/staff/approvals/x/approve"
	return By(t, s, w)
}

// Proposed makes a waiting decision and returns its approval id.
func Proposed(t testing.TB, s Store, id string, c payout.DecisionRequest) string {
	t.Helper()
	a, err := s.Decide(t.Context(), FinanceWrite(t, s, "propose "+string(c.Kind)+id+c.Evidence, "h"), id, c, Render)
	Must(t, err)
	words := strings.Fields(string(a.Body))
	if a.Status != 202 || len(words) != 4 || words[1] != "waiting" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return words[2]
}

// Agreed makes a decision and approves it by a second person.
func Agreed(t testing.TB, s Store, id string, c payout.DecisionRequest) {
	t.Helper()
	approval := Proposed(t, s, id, c)
	if a, err := s.AnswerApproval(t.Context(), Second(t, s, "agree "+approval), approval, true, Render); err != nil || a.Status != 202 {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
}

// DeclineQueries answers every order number that the cancel queries.
func DeclineQueries(t testing.TB, s Store, id string) {
	t.Helper()
	for range 10 {
		st, err := s.PaymentState(t.Context(), id)
		Must(t, err)
		if st.Step.Do != payout.ActionQuery {
			return
		}
		Settle(t, s, payout.SourceQuery, st.Step.OrderNo, payout.ObsDeclined)
	}
	t.Fatal("queries never end")
}

// ApproveFrom is the amount from which a retry needs a second person.
const ApproveFrom = money.Fen(100_000)

// RetryCommand retries a payment.
var RetryCommand = payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: ApproveFrom}

// FinanceWrite returns a write of finance with an Idempotency-Key.
func FinanceWrite(t testing.TB, s Store, key, body string) staff.Write {
	return By(t, s, staff.Write{Owner: "finance", Role: "finance", Route: "POST /v1/staff/payouts/x/retry", Key: key, BodyHash: body,
		Reason: "确认过"})
}

// Render is the answer of the tests: status by outcome, body with the decision.
func Render(d *staff.Decision, p staff.PaymentRow, err error) (int, []byte) {
	switch {
	case errors.Is(err, payout.ErrDecisionChanged):
		return 409, []byte("decision_changed")
	case errors.Is(err, payout.ErrDecisionPending):
		return 409, []byte("decision_pending")
	case errors.Is(err, payout.ErrNotRetryable):
		return 409, []byte("not_retryable " + string(p.Status))
	case errors.Is(err, payout.ErrInsufficientBalance):
		return 409, []byte("insufficient_balance")
	case errors.Is(err, payout.ErrReferenceUsed):
		return 409, []byte("reference_used")
	case errors.Is(err, payout.ErrHeld):
		return 409, []byte("held")
	case err != nil:
		return 500, nil
	}
	return 202, fmt.Appendf(nil, "%s %s %s %s", d.ID, d.Status, d.ApprovalID, p.Status)
}

// RetryPayment decides to retry a payment.
func RetryPayment(t testing.TB, s Store, w staff.Write, id string) staff.Answer {
	t.Helper()
	a, err := s.Decide(t.Context(), w, id, RetryCommand, Render)
	Must(t, err)
	return a
}

// Decide retries a failed or returned payment.
func Decide(t testing.TB, s Store, id string) {
	t.Helper()
	if a := RetryPayment(t, s, FinanceWrite(t, s, "key of "+id, "h"), id); a.Status != 202 || a.Replayed {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
}

// ErrOnly returns the error of a call.
func ErrOnly[T any](_ T, err error) error { return err }

// RenderHold is the answer about a hold.
func RenderHold(payout.Hold, staff.Releases) (int, []byte) { return 200, []byte("{}") }

// AskMovement asks for a movement of an app's balance; the app is created when missing.
func AskMovement(t testing.TB, s Balances, m staff.BalanceMovement) staff.Answer {
	t.Helper()
	Must(t, s.EnsureApp(t.Context(), access.App{ID: m.App, Name: m.App, Salt: []byte("salt")}))
	a, err := s.MoveBalance(t.Context(), StaffWrite(t, s, "finance"), m, "evidence of "+m.Reference, Render)
	Must(t, err)
	return a
}

// MoveBalance credits or debits an app's balance by two persons.
func MoveBalance(t testing.TB, s Balances, app string, kind payout.TransferKind, amount money.Fen) {
	t.Helper()
	a := AskMovement(t, s, staff.BalanceMovement{App: app, Kind: kind, Amount: amount, Reference: rand.Text()})
	words := strings.Fields(string(a.Body))
	if a.Status != 202 || len(words) < 3 || words[1] != "waiting" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a, err := s.AnswerApproval(t.Context(), StaffWrite(t, s, "finance2"), words[2], true, Render); err != nil || a.Status != 202 {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
}

// OfMerchant is a packet that its app funds from its balance.
func OfMerchant(total money.Fen, shares int) packet.Packet {
	p := SamplePacket(total, shares)
	p.ChargeProvider = payout.BalanceProvider
	return p
}
