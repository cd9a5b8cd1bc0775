package store

import (
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// balanceIs compares the balance of the app of these tests, and verifies the ledger.
func balanceIs(t *testing.T, s *testStore, available, reserved money.Fen) {
	t.Helper()
	found, err := s.AppBalances(t.Context(), "app")
	must(t, err)
	if len(found) != 1 || found[0].Available != available || found[0].Reserved != reserved {
		t.Errorf("balance %+v, want %d available, %d reserved", found, available, reserved)
	}
	checkLedger(t, s)
}

// recordMerchant records a packet that the app funds and returns the status of its charge.
func recordMerchant(t *testing.T, s *testStore, p packet.Packet) payout.Payment {
	t.Helper()
	recorded(t, s, p)
	charge, err := s.PaymentRow(t.Context(), chargeID(p))
	must(t, err)
	return charge
}

// TestR12_MerchantFunding: the movements of an app's balance through the life of its packets.
func TestR12_MerchantFunding(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	moveBalance(t, s, "app", payout.PostCredit, 1000)
	balanceIs(t, s, 1000, 0)

	p := ofMerchant(300, 3)
	for range 2 { // a repeat changes nothing
		if charge := recordMerchant(t, s, p); charge.Status != payout.StatusPaid || charge.Attempt != 0 {
			t.Fatalf("%+v", charge)
		}
		balanceIs(t, s, 700, 300)
	}
	st, err := s.PaymentState(ctx, chargeID(p))
	must(t, err)
	if st.Step.Do != payout.ActionEnd {
		t.Errorf("a paid charge goes on with %+v", st.Step)
	}
	if status, err := s.Fund(ctx, p.ID, even(p)); err != nil || status != packet.StatusOpen {
		t.Fatalf("%s, %v", status, err)
	}
	claim(t, s, p, 0, "paid")
	pay(t, s, payoutID(p, 0))
	claim(t, s, p, 1, "cancelled")
	fail(t, s, payoutID(p, 1))
	agreed(t, s, payoutID(p, 1), payout.DecisionRequest{Kind: payout.DecisionCancel})
	declineQueries(t, s, payoutID(p, 1))
	for range 2 {
		_, err = s.CarryOut(ctx, payoutID(p, 1))
		must(t, err)
		balanceIs(t, s, 800, 200) // books open: released and no longer reserved
	}
	refund, err := s.PaymentRow(ctx, payout.ID(payout.KindRefund, p.ID, 2))
	must(t, err)
	if refund.Status != payout.StatusPaid || refund.Provider != payout.BalanceProvider {
		t.Errorf("%+v", refund)
	}
	if _, err = s.BeginClosing(ctx, p.ID, packet.CloseRecalled); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rest, err := s.CloseBooks(ctx, p.ID, "")
		must(t, err)
		if rest != 100 {
			t.Errorf("remainder %d", rest)
		}
		balanceIs(t, s, 900, 0)
	}
	if done, err := s.FinishPacket(ctx, p.ID, nil); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}

	history, err := s.BalanceEntries(ctx, staff.BalanceFilter{App: "app", Limit: 10})
	must(t, err)
	var got []string
	for _, e := range history {
		got = append(got, string(e.Kind)+" "+e.Amount.String()+" "+e.Available.String())
	}
	want := "release 1.00 9.00, release 1.00 8.00, reserve 3.00 7.00, credit 10.00 10.00"
	if strings.Join(got, ", ") != want || history[3].Reference == "" || history[0].PacketID != p.ID {
		t.Errorf("history %v, want %s", got, want)
	}
	moveBalance(t, s, "app", payout.PostDebit, 900)
	balanceIs(t, s, 0, 0)
	totals, err := s.LedgerBalances(ctx, time.Time{})
	must(t, err)
	if bank := totals.Totals.OfApp("app").Balance(payout.AccountBank).Amount; bank != -100 || !totals.Totals.Sound() {
		t.Errorf("bank %d", bank)
	}
}

// TestMerchantSoldOut: a cancel after the books are closed, and no remainder.
func TestMerchantSoldOut(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	moveBalance(t, s, "app", payout.PostCredit, 100)
	p := ofMerchant(100, 1)
	recordMerchant(t, s, p)
	_, err := s.Fund(t.Context(), p.ID, even(p))
	must(t, err)
	claim(t, s, p, 0, "u")
	fail(t, s, payoutID(p, 0))
	_, err = s.BeginClosing(t.Context(), p.ID, packet.CloseSoldOut)
	must(t, err)
	_, err = s.CloseBooks(t.Context(), p.ID, "")
	must(t, err)
	balanceIs(t, s, 0, 0)
	agreed(t, s, payoutID(p, 0), payout.DecisionRequest{Kind: payout.DecisionCancel})
	declineQueries(t, s, payoutID(p, 0))
	_, err = s.CarryOut(t.Context(), payoutID(p, 0))
	must(t, err)
	balanceIs(t, s, 100, 0)
}

// TestInsufficientBalance: a packet above the balance is declined, also without any credit.
func TestInsufficientBalance(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, credit := range []money.Fen{0, 99} {
		if credit > 0 {
			moveBalance(t, s, "app", payout.PostCredit, credit)
		}
		p := ofMerchant(100, 2)
		charge := recordMerchant(t, s, p)
		if charge.Status != payout.StatusFailed || charge.Failure.Code != payout.FailureInsufficientBalance {
			t.Fatalf("%+v", charge)
		}
		failure := packet.Failure{Code: payout.FailureInsufficientBalance}
		must(t, s.RejectPacket(t.Context(), p.ID, failure))
	}
	balanceIs(t, s, 99, 0)
}

// TestMerchantHeld: under a hold the charge is recorded and waits; nothing is reserved.
func TestMerchantHeld(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	moveBalance(t, s, "app", payout.PostCredit, 100)
	ops := by(t, s, staff.Write{Owner: "ops", Role: "ops", Route: "r", Key: "k", BodyHash: "h", Reason: "why"})
	_, err := s.HoldProvider(t.Context(), ops, payout.BalanceProvider, true, renderProvider)
	must(t, err)
	p := ofMerchant(60, 2)
	if charge := recordMerchant(t, s, p); charge.Status != payout.StatusPending {
		t.Fatalf("%+v", charge)
	}
	begun, err := s.BeginSend(t.Context(), chargeID(p), payout.Limits{}, nil)
	must(t, err)
	if begun.Hold == nil || begun.State.Status != payout.StatusPending {
		t.Errorf("%+v", begun)
	}
	balanceIs(t, s, 100, 0)
	ops.Key = "k2"
	_, err = s.HoldProvider(t.Context(), ops, payout.BalanceProvider, false, renderProvider)
	must(t, err)
	other := ofMerchant(50, 1)
	if charge := recordMerchant(t, s, other); charge.Status != payout.StatusPaid {
		t.Errorf("%+v", charge)
	}
	for range 2 {
		begun, err = s.BeginSend(t.Context(), chargeID(p), payout.Limits{}, nil)
		must(t, err)
		if begun.Hold != nil || begun.State.Status != payout.StatusFailed || begun.State.Step.Do != payout.ActionEnd {
			t.Errorf("%+v", begun)
		}
	}
	balanceIs(t, s, 50, 50)
}

// TestNoOverdraft: many packets and debits at once never take more than there is.
func TestNoOverdraft(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	moveBalance(t, s, "app", payout.PostCredit, 1000)
	packets := make([]packet.Packet, 24)
	for i := range packets {
		packets[i] = ofMerchant(100, 1)
	}
	debit := askMovement(t, s, staff.BalanceMovement{App: "app", Kind: payout.PostDebit, Amount: 300, Reference: "slip"})
	approval := strings.Fields(string(debit.Body))[2]
	person := storetest.StaffWrite(t, s, "finance2")
	var answer staff.Answer
	for _, err := range together(2*len(packets)+1, func(i int) (err error) {
		if i == 2*len(packets) {
			answer, err = s.AnswerApproval(t.Context(), person, approval, true, render)
			return err
		}
		_, err = s.RecordPacket(t.Context(), packets[i/2], []byte("sealed"), nil) // each twice
		return err
	}) {
		must(t, err)
	}
	paid := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE status = 'paid'")
	failed := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE status = 'failed'")
	want := 10
	if answer.Status == 202 {
		want = 7
	} else if string(answer.Body) != "insufficient_balance" {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
	if paid != want || paid+failed != len(packets) {
		t.Errorf("%d packets paid, %d refused, debit %d", paid, failed, answer.Status)
	}
	balanceIs(t, s, 1000-money.Fen(paid)*100-map[bool]money.Fen{true: 300}[answer.Status == 202], money.Fen(paid)*100)
	if _, err := raw.ExecContext(t.Context(), "UPDATE app_balances SET available = -1"); err == nil {
		t.Error("the table keeps a negative balance")
	}
	if _, err := raw.ExecContext(t.Context(), "UPDATE app_balances SET available = available + 1"); err != nil {
		t.Fatal(err)
	}
	if _, found := verified(t, s); len(found) != 1 || found[0].Rule != staff.RuleBalance || found[0].Subject != "app" {
		t.Errorf("a balance without its transfers: %+v", found)
	}
}

// TestBalanceMovements: who may answer, what is refused, and that a reference counts once.
func TestBalanceMovements(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	credit := staff.BalanceMovement{App: "app", Kind: payout.PostCredit, Amount: 500, Reference: "slip 1"}
	ask := func(m staff.BalanceMovement, want string) string {
		t.Helper()
		a := askMovement(t, s, m)
		words := strings.Fields(string(a.Body))
		if a.Status == 409 {
			words = []string{"", words[0], ""}
		}
		if words[1] != want {
			t.Errorf("%s of %d, %q: %d %s, want %s", m.Kind, m.Amount, m.Reference, a.Status, a.Body, want)
		}
		return words[2]
	}
	answer := func(approval, owner string, agree bool, want string) {
		t.Helper()
		a, err := s.AnswerApproval(ctx, storetest.StaffWrite(t, s, owner), approval, agree, render)
		must(t, err)
		if !strings.Contains(string(a.Body), want) {
			t.Errorf("%d %s, want %s", a.Status, a.Body, want)
		}
	}
	first := ask(credit, "waiting")
	ask(credit, "reference_used")
	_, err := s.AnswerApproval(ctx, storetest.StaffWrite(t, s, "finance"), first, true, render)
	wantErr(t, err, payout.ErrSelfApproval)
	_, err = s.WithdrawApproval(ctx, storetest.StaffWrite(t, s, "finance2"), first, render)
	wantErr(t, err, payout.ErrNotAuthor)
	balanceIs(t, s, 0, 0)
	answer(first, "finance2", false, "rejected")
	answer(first, "finance2", true, "not_retryable")

	again := ask(credit, "waiting") // the reference is free
	list, err := s.Approvals(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting, Limit: 5})
	must(t, err)
	if m := list[0].Decision.Movement; len(list) != 1 || m == nil || m.Amount != 500 || m.Available != 0 {
		t.Fatalf("%+v", list)
	}
	answer(again, "finance2", true, "carried_out")
	answer(again, "finance2", true, "not_retryable")
	balanceIs(t, s, 500, 0)
	ask(credit, "reference_used")

	ask(staff.BalanceMovement{App: "app", Kind: payout.PostDebit, Amount: 501, Reference: "out"}, "insufficient_balance")
	out := ask(staff.BalanceMovement{App: "app", Kind: payout.PostDebit, Amount: 500, Reference: "out"}, "waiting")
	recordMerchant(t, s, ofMerchant(100, 1))
	answer(out, "finance2", true, "insufficient_balance")
	moveBalance(t, s, "app", payout.PostCredit, 100)
	answer(out, "finance2", true, "carried_out")
	balanceIs(t, s, 0, 100)

	late := ask(staff.BalanceMovement{App: "app", Kind: payout.PostCredit, Amount: 1, Reference: "late"}, "waiting")
	c.Pass(25 * time.Hour)
	answer(late, "finance2", true, "not_retryable")
	ask(staff.BalanceMovement{App: "app", Kind: payout.PostCredit, Amount: 1, Reference: "late"}, "waiting")
	_, err = s.MoveBalance(ctx, storetest.StaffWrite(t, s, "finance"), staff.BalanceMovement{App: "none", Kind: payout.PostCredit, Amount: 1,
		Reference: "x"}, "e", render)
	wantErr(t, err, ErrNotFound)
	checkLedger(t, s)
}
