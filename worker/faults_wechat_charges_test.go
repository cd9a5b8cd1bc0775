package worker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/test/wait"
)

// payAll is the sender's payment of a charge, payWithCoupon one of which a coupon pays a part.
func payAll(s *simulator.Server, no string) bool        { return s.Pay(no, "", 0) }
func payWithCoupon(s *simulator.Server, no string) bool { return s.Pay(no, "", 100) }

// wechatChargeRows: charges that their senders pay in WeChat.
var wechatChargeRows = []wechatRow{
	{faultRow: faultRow{what: "paid in time", calls: "send prepay; ask NOTPAY*; ask SUCCESS+", status: payout.StatusPaid, money: "once"},
		end: payAll},
	{faultRow: faultRow{what: "not paid until the deadline", within: hurriedPayer,
		calls: "send prepay; ask NOTPAY*; close done; ask CLOSED+", status: payout.StatusFailed, money: "never",
		code: payout.FailureFundingExpired, ends: packet.StatusRejected}},
	{faultRow: faultRow{what: "withdrawn before it is paid",
		calls: "send prepay; ask NOTPAY*; close done; ask CLOSED+", status: payout.StatusFailed, money: "never",
		code: payout.FailureFundingCancelled, ends: packet.StatusRejected}, withdraw: true},
	{faultRow: faultRow{what: "paid, and withdrawn before that is known: refunded in full",
		calls: "send prepay; ask NOTPAY*; close ORDER_PAID+; ask SUCCESS+", status: payout.StatusPaid, money: "once",
		ends: packet.StatusClosed}, end: payAll, withdraw: true},
	{faultRow: faultRow{what: "paid with a coupon, where coupons are refused: refunded in full",
		calls: "send prepay; ask NOTPAY*; ask SUCCESS+", status: payout.StatusPaid, money: "once", ends: packet.StatusClosed},
		end: payWithCoupon},
	{faultRow: faultRow{what: "429, twice", calls: "send FREQUENCY_LIMITED; send FREQUENCY_LIMITED; send prepay; ask NOTPAY*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}, sends: []string{simulator.RateLimit, simulator.RateLimit}, end: payAll},
	{faultRow: faultRow{what: "the answer is lost: the same number is sent again for what the sender needs",
		calls: "send silence; ask NOTPAY+; send prepay; ask NOTPAY*; ask SUCCESS+", status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.SilenceAfter}, end: payAll},
	{faultRow: faultRow{what: "the request is lost",
		calls: "send silence; ask ORDER_NOT_EXIST; send prepay; ask NOTPAY*; ask SUCCESS+", status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.SilenceBefore}, end: payAll},
	{faultRow: faultRow{what: "forged answer: it does not count",
		calls: "send forged prepay; ask NOTPAY+; send prepay; ask NOTPAY*; ask SUCCESS+", status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.BadSignature}, end: payAll},
	{faultRow: faultRow{what: "refused as invalid", calls: "send PARAM_ERROR; ask ORDER_NOT_EXIST+", status: payout.StatusFailed,
		money: "never", code: "never_received", ends: packet.StatusRejected}, sends: []string{"false 400 PARAM_ERROR"}},
}

// wechatRefundRows: refunds to senders who paid in WeChat.
var wechatRefundRows = []wechatRow{
	{faultRow: faultRow{what: "in progress first", calls: "send PROCESSING; ask PROCESSING*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}},
	{faultRow: faultRow{what: "`~declined`: closed, our balance did not cover it for seven days", suffix: simulator.Declined,
		calls: "send PROCESSING; ask PROCESSING*; ask CLOSED+", status: payout.StatusFailed, money: "never", code: "refund_unfunded"}},
	{faultRow: faultRow{what: "`~abnormal`: the sender's account does not take it", suffix: simulator.Abnormal,
		calls: "send PROCESSING; ask PROCESSING*; ask ABNORMAL+", status: payout.StatusSending, money: "never"}},
	{faultRow: faultRow{what: "our balance is too low", calls: "send NOT_ENOUGH; send PROCESSING; ask PROCESSING*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}, sends: []string{simulator.LowBalance}},
	{faultRow: faultRow{what: "the answer is lost", calls: "send silence; ask PROCESSING*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}, sends: []string{simulator.SilenceAfter}},
	{faultRow: faultRow{what: "the request is lost",
		calls:  "send silence; ask RESOURCE_NOT_EXISTS; send PROCESSING; ask PROCESSING*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}, sends: []string{simulator.SilenceBefore}},
	{faultRow: faultRow{what: "system error, and the refund exists", calls: "send SYSTEM_ERROR; ask PROCESSING*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}, sends: []string{simulator.ErrorAfter}},
	{faultRow: faultRow{what: "forged answer: it does not count", calls: "send forged PROCESSING; ask PROCESSING*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"}, sends: []string{simulator.BadSignature}},
	{faultRow: faultRow{what: "refused as invalid", calls: "send PARAM_ERROR; ask RESOURCE_NOT_EXISTS+", status: payout.StatusFailed,
		money: "never", code: "never_received"}, sends: []string{"false 400 PARAM_ERROR"}},
}

// TestWechatCharges plays the rows of charges and refunds: each reaches its status by its calls, moves its money
// at most once, and its packet ends as it has to.
func TestWechatCharges(t *testing.T) {
	t.Parallel()
	r := newWechatRig(t)
	for op, rows := range map[payout.Op][]wechatRow{payout.OpCharge: wechatChargeRows, payout.OpRefund: wechatRefundRows} {
		for i, row := range rows {
			t.Run(string(op)+" "+row.what, func(t *testing.T) {
				t.Parallel()
				sender := fmt.Sprintf("%s%d%s", op, i, row.suffix)
				r.faults(string(op), sender, row.sends)
				if op == payout.OpCharge {
					r.playCharge(t, row, sender)
				} else {
					r.playRefund(t, row, sender)
				}
			})
		}
	}
}

// charged creates a packet that its sender, who has another name at the app, pays in WeChat.
func (r *wechatRig) charged(t *testing.T, sender string, within int64) packet.Packet {
	t.Helper()
	id := packet.NewID([]byte("salt"), sender)
	payer := must(json.Marshal(packet.Payer{Payer: map[string]string{"openid": sender}}))(t)
	return r.create(t, spec{id: id, sender: "user of " + sender, total: 1000, least: r.pay.Limits().MinPayout, count: 1, charges: "wechat",
		payouts: "wechat", method: wechat.MethodJSAPI, within: within, payer: must(packet.Seal(r.seedKey, id, payer))(t)})
}

// awaitPayer waits until the sender can pay.
func (r *wechatRig) awaitPayer(t *testing.T, id string) {
	t.Helper()
	wait.Until(t, "the sender can pay", func() bool {
		p, err := r.store.PaymentRow(t.Context(), id)
		return err == nil && p.Status == payout.StatusAwaitingPayer && strings.Contains(r.seen(payout.OrderNo(id, 1)), "send prepay; ")
	})
}

func (r *wechatRig) playCharge(t *testing.T, row wechatRow, sender string) {
	t.Helper()
	within := row.within
	if within == 0 {
		within = unhurriedPayer
	}
	p := r.charged(t, sender, within)
	id := payout.ID(payout.KindCharge, p.ID, 0)
	if row.end != nil || row.withdraw {
		r.awaitPayer(t, id)
	}
	if row.withdraw {
		r.silence(payout.OrderNo(id, 1))
	}
	if row.end != nil && !row.end(r.sim, payout.OrderNo(id, 1)) {
		t.Fatal("the charge cannot be paid")
	}
	if row.withdraw {
		if err := r.store.WithdrawCharge(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
	}
	r.reaches(t, row, id)
	if row.ends == "" {
		row.ends = packet.StatusOpen
	}
	if rec := r.awaitStatus(t, p.ID, row.ends); row.ends == packet.StatusClosed && rec.Remainder != p.TotalAmount {
		t.Errorf("%d fen are refunded of %d", rec.Remainder, p.TotalAmount)
	}
}

func (r *wechatRig) playRefund(t *testing.T, row wechatRow, sender string) {
	t.Helper()
	p := r.charged(t, sender, unhurriedPayer)
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	r.awaitPayer(t, charge)
	if !payAll(r.sim, payout.OrderNo(charge, 1)) {
		t.Fatal("the charge cannot be paid")
	}
	r.awaitOpen(t, p.ID)
	r.recall(t, p.ID)
	r.reaches(t, row, payout.ID(payout.KindRefund, p.ID, 0))
}
