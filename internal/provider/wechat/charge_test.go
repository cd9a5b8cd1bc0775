package wechat

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/test/wait"
)

const payer = "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"

// orders makes order numbers of one test.
type orders struct{ n int }

func (o *orders) next(op payout.Op) string {
	o.n++
	kind := map[payout.Op]payout.Kind{payout.OpCharge: payout.KindCharge, payout.OpTransfer: payout.KindPayout,
		payout.OpRefund: payout.KindRefund}[op]
	return payout.OrderNo(payout.ID(kind, fmt.Sprintf("%020d", o.n), 0), 1)
}

// order encodes an instruction under a new number.
func (o *orders) order(t *testing.T, a *Adapter, in payout.Instruction) payout.Order {
	t.Helper()
	in.OrderNo = o.next(in.Op)
	return encoded(t, a, in)
}

// encoded encodes an instruction.
func encoded(t *testing.T, a *Adapter, in payout.Instruction) payout.Order {
	t.Helper()
	in.Currency = currency
	raw, err := a.EncodeRequest(in)
	if err != nil {
		t.Fatal(err)
	}
	return payout.Order{Op: in.Op, OrderNo: in.OrderNo, Request: raw, Send: 1}
}

// wantKind checks the kind and code of an observation.
func wantKind(t *testing.T, what string, o payout.Observation, kind payout.ObservationKind, code string) {
	t.Helper()
	if o.Kind != kind || o.Code != code {
		t.Errorf("%s: %s %q (%s), want %s %q", what, o.Kind, o.Code, o.Message, kind, code)
	}
}

func charged(method string) payout.Instruction {
	return payout.Instruction{Op: payout.OpCharge, Account: payer, Amount: 8800, Method: method, Payer: map[string]string{"openid": payer},
		PayUntil: time.Now().Add(15 * time.Minute)}
}

// TestChargeMethods: each method gives the client what its SDK needs, signed with the merchant's key.
func TestChargeMethods(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	key := testKeys().merchant.PublicKey
	for method, fourth := range map[string]string{MethodJSAPI: "package", MethodAPP: "prepayId"} {
		order := o.order(t, a, charged(method))
		seen := a.Send(t.Context(), order)
		wantKind(t, method, seen, payout.ObsNeedsPayer, "")
		p := seen.Action.Parameters
		signature := p["paySign"] + p["sign"]
		if err := verifyVector(t.Context(), key, clientText(p["appId"], p["timeStamp"], p["nonceStr"], p[fourth]), signature); err != nil {
			t.Errorf("%s: %v in %v", method, err, p)
		}
		if seen.Action.Type != payout.ClientSDK || !seen.Until.After(time.Now().Add(time.Hour)) {
			t.Errorf("%s: %+v until %v", method, seen.Action, seen.Until)
		}
		again := a.Send(t.Context(), order)
		if again.Kind != payout.ObsNeedsPayer || again.Action.Parameters[fourth] == p[fourth] {
			t.Errorf("%s: renewed to %+v", method, again.Action)
		}
	}
	seen := a.Send(t.Context(), o.order(t, a, charged(MethodNative)))
	if seen.Kind != payout.ObsNeedsPayer || seen.Action.Type != payout.ClientQRCode || seen.Action.QRCode == "" {
		t.Errorf("native: %+v", seen.Action)
	}
}

// TestChargeEnds: an order that was paid with a coupon counts with its total; a refund of ours does
// not return it; a close decides nothing by itself.
func TestChargeEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	paid := o.order(t, a, charged(MethodJSAPI))
	a.Send(t.Context(), paid)
	r.sim.Pay(paid.OrderNo, "", 500)
	seen := a.Query(t.Context(), payout.OpCharge, paid.OrderNo)
	wantKind(t, "paid with a coupon", seen, payout.ObsSucceeded, "")
	if seen.Amount != 8800 || seen.Account != "" || seen.ProviderRef == "" {
		t.Errorf("paid: %+v", seen)
	}
	wantKind(t, "coupons refused", r.adapter(t, func(c *Config) { c.RefuseCoupons = true }).Query(t.Context(), payout.OpCharge, paid.OrderNo),
		payout.ObsSucceeded, payout.FailureCouponNotAllowed)
	if err := a.CloseOrder(t.Context(), payout.OpCharge, paid.OrderNo); err != nil {
		t.Errorf("close of a paid charge: %v", err)
	}
	wantKind(t, "closed after it was paid", a.Query(t.Context(), payout.OpCharge, paid.OrderNo), payout.ObsSucceeded, "")
	back := o.order(t, a, payout.Instruction{Op: payout.OpRefund, Amount: 100, ChargeOrderNo: paid.OrderNo, ChargeTotal: 8800})
	wantKind(t, "refund", a.Send(t.Context(), back), payout.ObsPending, "")
	wantKind(t, "with a refund of ours", a.Query(t.Context(), payout.OpCharge, paid.OrderNo), payout.ObsSucceeded, "")

	closed := o.order(t, a, charged(MethodNative))
	a.Send(t.Context(), closed)
	for range 2 {
		if err := a.CloseOrder(t.Context(), payout.OpCharge, closed.OrderNo); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantKind(t, "closed", a.Query(t.Context(), payout.OpCharge, closed.OrderNo), payout.ObsDeclined, "closed")
	if err := a.CloseOrder(t.Context(), payout.OpCharge, o.next(payout.OpCharge)); err != nil {
		t.Errorf("close of an unknown charge: %v", err)
	}
	r.server.CloseClientConnections()
	r.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if err := a.CloseOrder(t.Context(), payout.OpCharge, closed.OrderNo); !errors.Is(err, ErrAnswer) {
		t.Errorf("close without answer: %v", err)
	}
}

// TestRefundEnds: closed is final and may be repeated under a new number; abnormal is not final.
func TestRefundEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	for suffix, want := range map[string]struct {
		kind payout.ObservationKind
		code string
	}{"": {payout.ObsSucceeded, ""}, simulator.Declined: {payout.ObsDeclined, codeRefundClosed},
		simulator.Abnormal: {payout.ObsPending, codeRefundAbnormal}} {
		in := charged(MethodJSAPI)
		in.Payer = map[string]string{"openid": payer + suffix}
		charge := o.order(t, a, in)
		a.Send(t.Context(), charge)
		r.sim.Pay(charge.OrderNo, "", 0)
		refund := o.order(t, a, payout.Instruction{Op: payout.OpRefund, Amount: 3300, ChargeOrderNo: charge.OrderNo, ChargeTotal: 8800,
			Remark: "剩余金额退回"})
		wantKind(t, "sent", a.Send(t.Context(), refund), payout.ObsPending, "")
		var seen payout.Observation
		wait.Reached(wait.Limit(), func() bool {
			seen = a.Query(t.Context(), payout.OpRefund, refund.OrderNo)
			return seen.Kind == want.kind && seen.Code == want.code
		})
		wantKind(t, "refund of "+suffix, seen, want.kind, want.code)
		if seen.Amount != 3300 {
			t.Errorf("refund of %d fen", seen.Amount)
		}
		second := o.order(t, a, payout.Instruction{Op: payout.OpRefund, Amount: 3300, ChargeOrderNo: charge.OrderNo, ChargeTotal: 8800})
		wantKind(t, "a second refund", a.Send(t.Context(), second), payout.ObsPending, "")
	}
	for what, in := range map[string]payout.Instruction{"no charge": {}, "no total": {ChargeOrderNo: o.next(payout.OpCharge)}} {
		in.Op, in.Amount, in.Currency, in.OrderNo = payout.OpRefund, 1, currency, o.next(payout.OpRefund)
		if _, err := a.EncodeRequest(in); err == nil {
			t.Errorf("a refund with %s is encoded", what)
		}
	}
}

// TestRefundSpacing: a refund too soon after another is refused for now.
func TestRefundSpacing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *simulator.Config) { c.RefundSpacing = time.Hour }, nil)
	a, o := r.adapter(t, nil), &orders{}
	charge := o.order(t, a, charged(MethodJSAPI))
	a.Send(t.Context(), charge)
	r.sim.Pay(charge.OrderNo, "", 0)
	for i, kind := range []payout.ObservationKind{payout.ObsPending, payout.ObsRetryAfter} {
		seen := a.Send(t.Context(), o.order(t, a, payout.Instruction{Op: payout.OpRefund, Amount: 100, ChargeOrderNo: charge.OrderNo,
			ChargeTotal: 8800}))
		if seen.Kind != kind || i == 1 && seen.RetryAfter != time.Minute {
			t.Errorf("refund %d: %s after %v", i, seen.Kind, seen.RetryAfter)
		}
	}
}

// exerciseAll makes the calls that the suite of all adapters does not make.
func exerciseAll(t *testing.T, r *rig) {
	t.Helper()
	a, o := r.adapter(t, nil), &orders{}
	for _, method := range methods {
		order := o.order(t, a, charged(method))
		wantKind(t, method, a.Send(t.Context(), order), payout.ObsNeedsPayer, "")
		if err := a.CloseOrder(t.Context(), payout.OpCharge, order.OrderNo); err != nil {
			t.Error(err)
		}
	}
	exerciseAuthorization(t, r, a)
	if err := a.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if available, _, err := a.Balance(t.Context(), FundFees); err != nil || available < 1 {
		t.Errorf("balance of the fees: %d, %v", available, err)
	}
	funds, err := a.Funds(t.Context())
	if err != nil || len(funds) != 2 || funds[0].Name != "OPERATION" || !funds[0].Payouts || funds[0].Available < 1 ||
		funds[1].Payouts || funds[1].Available < 1 {
		t.Errorf("funds %+v, %v", funds, err)
	}
}

// exerciseAuthorization requests an agreement and queries it until it has ended.
func exerciseAuthorization(t *testing.T, r *rig, a *Adapter) {
	t.Helper()
	no := strings.Repeat("a", 32)
	pending, err := a.Authorize(t.Context(), no, payer, "小明")
	if err != nil || pending.Status != payout.AuthorizationPending || !r.sim.Accept(pending.Action.Parameters["package"]) {
		t.Fatalf("%+v, %v", pending, err)
	}
	if active, err := a.Authorization(t.Context(), no, payer); err != nil || active.Status != payout.AuthorizationActive {
		t.Errorf("%+v, %v", active, err)
	}
	if !r.sim.CloseAuthorisation(no) {
		t.Error("it cannot be closed")
	}
	if ended, err := a.Authorization(t.Context(), no, payer); err != nil || ended.Reason != "USER_CLOSE" {
		t.Errorf("%+v, %v", ended, err)
	}
}
