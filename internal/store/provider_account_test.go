package store

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// others are adapters that must not affect what adapter has sent.
var others = map[string]payout.Adapter{
	"another account":  {Provider: provider, Account: "1900007292"},
	"another provider": {Provider: "other", Account: adapter.Account},
	"nobody":           {},
}

// TestPaymentOfAnotherProvider: a payment that one account has sent is neither sent again, nor
// queried, settled nor notified by another account or provider; its rows stay as they are.
func TestPaymentOfAnotherProvider(t *testing.T) {
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived)
	c.Pass(time.Hour) // every send has landed, and a repeat is due
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived)
	row := func() [2]string {
		return [2]string{
			storetest.Query[string](t, s, "SELECT CONCAT_WS(' ', provider, provider_account, status, version, attempt, updated_at) FROM payments "+
				"WHERE id = ?", id),
			storetest.Query[string](t, s,
				"SELECT CONCAT_WS(' ', sends, asks, next_action, statement, ask_wanted_at) FROM attempts WHERE order_no = ?",
				o.OrderNo)}
	}
	before := row()
	for name, by := range others {
		other := limits
		other.Adapter = by
		b, err := s.BeginSend(ctx, id, other, encode)
		wantErr(t, err, payout.ErrWrongProvider)
		if b.Order != nil {
			t.Errorf("%s: sent", name)
		}
		seen := observation(payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
		seen.Adapter = by
		_, err = s.Settle(ctx, seen, o.OrderNo)
		wantErr(t, err, payout.ErrWrongProvider)
		_, err = s.BeginQuery(ctx, o.OrderNo, by)
		wantErr(t, err, payout.ErrWrongProvider)
		must(t, s.RecordNotification(ctx, by, "evt "+name, o.OrderNo, []byte("{}")))
		if after := row(); after != before {
			t.Errorf("%s: %q, was %q", name, after, before)
		}
	}
	if at, err := s.BeginQuery(ctx, o.OrderNo, adapter); err != nil || at.IsZero() {
		t.Errorf("own question: %v, %v", at, err)
	}
	if b, err := s.BeginSend(ctx, id, limits, encode); err != nil || b.Order == nil {
		t.Errorf("own send: %+v, %v", b, err)
	}
}

// TestAccountIsStoredByTheFirstSend: a payment belongs to the account that first sends it, in one
// transaction with the record of the send. A refund belongs to the account of its packet's charge.
func TestAccountIsStoredByTheFirstSend(t *testing.T) {
	s, c := newStore(t)
	ctx := t.Context()
	account := func(id string) string {
		return storetest.Query[string](t, s, "SELECT CONCAT_WS('/', provider, provider_account) FROM payments WHERE id = ?", id)
	}
	mine := provider + "/" + adapter.Account
	p := funded(t, s, 1000, 4)
	if got := account(chargeID(p)); got != mine {
		t.Errorf("charge: %q", got)
	}
	claim(t, s, p, 0, "zhao")
	if got := account(payoutID(p, 0)); got != provider+"/" {
		t.Errorf("payout that was never sent: %q", got)
	}
	fail(t, s, payoutID(p, 0))
	if got := account(payoutID(p, 0)); got != mine {
		t.Errorf("payout: %q", got)
	}
	b, err := s.BeginClaim(ctx, claimOf(p, 1, "qian"), limits, encode)
	if err != nil || b.Order == nil || account(payoutID(p, 1)) != mine {
		t.Errorf("claim paid at once: %+v, %v: %q", b, err, account(payoutID(p, 1)))
	}
	must(t, s.db.Gorm.Exec("UPDATE payments SET provider_account = 'before' WHERE id = ?", chargeID(p)).Error)
	agreed(t, s, payoutID(p, 0), payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Minute)
	settle(t, s, payout.SourceQuery, payout.OrderNo(payoutID(p, 0), 1), payout.ObsDeclined)
	must(t, storetest.ErrOnly(s.CarryOut(ctx, payoutID(p, 0))))
	must(t, storetest.ErrOnly(s.BeginClosing(ctx, p.ID, packet.CloseExpired)))
	must(t, storetest.ErrOnly(s.CloseBooks(ctx, p.ID, "")))
	for what, id := range map[string]string{"remainder": refundID(p), "cancel": payout.ID(payout.KindRefund, p.ID, 1)} {
		if got := account(id); got != provider+"/before" {
			t.Errorf("refund of the %s: %q", what, got)
		}
		_, err = s.BeginSend(ctx, id, limits, encode)
		wantErr(t, err, payout.ErrWrongProvider)
	}
}

// TestAccountAtTheProvider: the first start binds a provider's name to its kind and account. Then
// another account stores and sends nothing, even of new payments. Other names have accounts of
// their own.
func TestAccountAtTheProvider(t *testing.T) {
	s, _ := newStore(t)
	ctx := t.Context()
	if kept, err := s.ProviderAccount(ctx, provider); err != nil || kept != (payout.Adapter{}) {
		t.Fatalf("before the first start: %v, %v", kept, err)
	}
	for range 2 {
		must(t, s.BindProvider(ctx, "sandbox", adapter))
	}
	p := funded(t, s, 1000, 4)
	claim(t, s, p, 0, "zhao")
	for name, by := range others {
		if name != "another provider" {
			wantErr(t, s.BindProvider(ctx, "sandbox", by), payout.ErrWrongProvider)
		}
		other := limits
		other.Adapter = by
		if b, err := s.BeginSend(ctx, payoutID(p, 0), other, encode); b.Order != nil {
			t.Errorf("%s: sent: %v", name, err)
		} else {
			wantErr(t, err, payout.ErrWrongProvider)
		}
		b, err := s.BeginClaim(ctx, claimOf(p, 1, "qian"), other, encode)
		wantErr(t, err, payout.ErrWrongProvider)
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM claims WHERE user_id = 'qian'"); n != 0 || b.Order != nil {
			t.Errorf("%s: claim recorded: %+v", name, b)
		}
	}
	if kept, err := s.ProviderAccount(ctx, provider); err != nil || kept != adapter {
		t.Errorf("stored %v, %v", kept, err)
	}
	wantErr(t, s.BindProvider(ctx, "wechat", adapter), payout.ErrWrongProvider)
	must(t, s.BindProvider(ctx, "wechat", others["another provider"]))
	// The other account has held the provider.
	must(t, s.db.Gorm.Exec("UPDATE holds SET released_at = NOW(3), released_by = 'o' WHERE name = ?", provider).Error)
	begin(t, s, payoutID(p, 0))
}

// TestStatementOfAnotherProvider: a statement read by another account or provider is neither
// accepted by the reconciliation nor searched for returns.
func TestStatementOfAnotherProvider(t *testing.T) {
	x := newStatement(t)
	ctx := t.Context()
	day := payout.DayOf(x.s.Now(), time.UTC).Add(-1)
	asked, err := x.s.RequestDailyReconciliation(ctx, provider, day, "tester")
	must(t, err)
	lines := []payout.StatementLine{{Ref: "1", Op: payout.OpTransfer, OrderNo: "Foreign", Account: "a", Amount: 1, At: x.s.Now()}}
	wantErr(t, x.s.SealStatement(ctx, asked.ID, others["another provider"], day, x.s.Now()), payout.ErrWrongProvider)
	must(t, x.s.BindProvider(ctx, "sandbox", adapter))
	must(t, x.s.BindProvider(ctx, "sandbox", payout.Adapter{Provider: "other", Account: "2"}))
	for _, by := range others {
		wantErr(t, x.s.SaveStatement(ctx, asked.ID, by, day, lines), payout.ErrWrongProvider)
		wantErr(t, x.s.SealStatement(ctx, asked.ID, by, day, x.s.Now()), payout.ErrWrongProvider)
		_, _, err := x.s.TakeReturnWatchTurn(ctx, by, time.Second)
		wantErr(t, err, payout.ErrWrongProvider)
	}
	if n := storetest.Query[int](t, x.s, "SELECT (SELECT COUNT(*) FROM statement_lines) + (SELECT COUNT(*) FROM statements)"); n != 0 {
		t.Errorf("%d rows of another provider's statement", n)
	}
	must(t, x.s.SaveStatement(ctx, asked.ID, adapter, day, lines))
	must(t, x.s.SealStatement(ctx, asked.ID, adapter, day, x.s.Now()))
}
