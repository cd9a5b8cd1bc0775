package worker_test

import (
	"fmt"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// wechatRow is a row about a payment through WeChat Pay.
type wechatRow struct {
	faultRow
	// sends are the faults of the first sends: kinds of the simulator, or a refusal with whether the order is
	// stored, its HTTP status and its code.
	sends []string
	// end is what the recipient or the sender, the time or staff do once the recipient can confirm, or the
	// sender can pay; nil: nothing.
	end func(*simulator.Server, string) bool
	// withdraw: then the app withdraws the charge.
	withdraw bool
}

// wechatRows: what differs from the sandbox.
var wechatRows = []wechatRow{
	{faultRow: faultRow{what: "waits for the recipient, who confirms",
		calls: "send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+", status: payout.StatusPaid, money: "once"},
		end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "waits for the recipient, who does not confirm",
		calls: "send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*", status: payout.StatusAwaitingRecipient, money: "never"}},
	{faultRow: faultRow{what: "the 24 hours for the recipient pass",
		calls: "send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask FAIL+", status: payout.StatusFailed, money: "never",
		code: "confirmation_expired"}, end: (*simulator.Server).Expire},
	{faultRow: faultRow{what: "cancelled at the merchant platform",
		calls: "send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask CANCELLED+", status: payout.StatusFailed, money: "never",
		code: "transfer_cancelled"}, end: (*simulator.Server).Cancel},
	{faultRow: faultRow{what: "`~pending`: succeeds without the recipient", suffix: simulator.Pending,
		calls: "send PROCESSING; ask PROCESSING*; ask SUCCESS+", status: payout.StatusPaid, money: "once"}},
	{faultRow: faultRow{what: "`~declined`: the recipient's account is frozen", suffix: simulator.Declined,
		calls: "send FAIL; ask FAIL+", status: payout.StatusFailed, money: "never", code: "account_frozen"}},
	{faultRow: faultRow{what: "429, twice",
		calls:  "send FREQUENCY_LIMITED; send FREQUENCY_LIMITED; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.RateLimit, simulator.RateLimit}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "our balance is too low",
		calls:  "send NOT_ENOUGH; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.LowBalance}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "the answer is lost: the same number is sent again for what the recipient needs",
		calls:  "send silence; ask WAIT_USER_CONFIRM+; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.SilenceAfter}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "`~once`: the answer is lost, and a repeat does not give what the recipient needs: we cancel it there",
		suffix: simulator.Once,
		calls: "send silence; ask WAIT_USER_CONFIRM+; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; send WAIT_USER_CONFIRM; " +
			"ask WAIT_USER_CONFIRM*; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; cancel CANCELING; ask CANCELLED+",
		status: payout.StatusFailed, money: "never", code: "confirmation_expired"},
		sends: []string{simulator.SilenceAfter}},
	{faultRow: faultRow{what: "the request is lost",
		calls:  "send silence; ask NOT_FOUND; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.SilenceBefore}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "system error, and the transfer exists",
		calls:  "send SYSTEM_ERROR; ask WAIT_USER_CONFIRM+; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.ErrorAfter}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "forged answer: it does not count",
		calls:  "send forged WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM+; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.BadSignature}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "answer without a signature: it does not count",
		calls:  "send unsigned WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM+; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{simulator.Unsigned}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "refused with an unknown code, and the transfer exists",
		calls:  "send NEW_CODE; ask WAIT_USER_CONFIRM+; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{"true 400 NEW_CODE"}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "refused with an unknown code, and nothing exists",
		calls:  "send NEW_CODE; ask NOT_FOUND; send WAIT_USER_CONFIRM; ask WAIT_USER_CONFIRM*; ask SUCCESS+",
		status: payout.StatusPaid, money: "once"},
		sends: []string{"false 400 NEW_CODE"}, end: (*simulator.Server).Confirm},
	{faultRow: faultRow{what: "refused as invalid",
		calls: "send PARAM_ERROR; ask NOT_FOUND", status: payout.StatusFailed, money: "never", code: "never_received"},
		sends: []string{"false 400 PARAM_ERROR"}},
}

// TestWechatPayouts plays the rows: each payout reaches its status by its calls and moves its money at most
// once. A recipient who shall confirm has what it needs, also after lost answers.
func TestWechatPayouts(t *testing.T) {
	t.Parallel()
	r := newWechatRig(t)
	p := r.create(t, spec{total: 3000, least: r.pay.Limits().MinPayout, count: len(wechatRows), payouts: "wechat"})
	r.awaitOpen(t, p.ID)
	for i, row := range wechatRows {
		user := fmt.Sprintf("o%d%s", i, row.suffix)
		r.faults("transfer", user, row.sends)
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			claim := r.grab(t, p.ID, user).Claim
			if row.end != nil {
				waiting := r.awaitPayout(t, claim, payout.StatusAwaitingRecipient)
				if got := r.awaitRecipientAction(t, waiting).Parameters; len(got) != 3 || got["package"] == "" {
					t.Errorf("the recipient gets %v", got)
				}
				if no := payout.OrderNo(waiting.ID, 1); !row.end(r.sim, no) {
					t.Fatalf("the simulator has no waiting transfer %s", no)
				}
			}
			r.reaches(t, row, payout.ID(payout.KindPayout, p.ID, claim.ShareIndex))
		})
	}
}

// reaches waits until a payment has a row's status after its calls, and checks what moved.
func (r *wechatRig) reaches(t *testing.T, row wechatRow, id string) {
	t.Helper()
	var ended payout.Payment
	no, want := payout.OrderNo(id, 1), callPattern(row.calls)
	wait.Within(t, rowWithin, func() string {
		return fmt.Sprintf("%s (%+v) after calls %q, want %s after %q", ended.Status, ended.Failure, r.seen(no), row.status, row.calls)
	}, func() bool {
		var err error
		ended, err = r.store.PaymentRow(t.Context(), id)
		return err == nil && ended.Status == row.status && want.MatchString(r.seen(no))
	})
	if code := ended.Failure; (row.code == "") != (code == nil) || code != nil && code.Code != row.code {
		t.Errorf("failed with %+v, want %q", code, row.code)
	}
	if n := r.sim.Moved(no); n != map[string]int{"once": 1}[row.money] || ended.Attempt != 1 {
		t.Errorf("money moved %d times, want %s; attempt %d", n, row.money, ended.Attempt)
	}
}

// TestWechatConfirmAgain: a recipient who let the 24 hours pass is paid under another order number, once their app
// asks for it and they confirm.
func TestWechatConfirmAgain(t *testing.T) {
	t.Parallel()
	r := newWechatRig(t)
	p := r.create(t, spec{total: 1000, least: r.pay.Limits().MinPayout, count: 1, payouts: "wechat"})
	r.awaitOpen(t, p.ID)
	claim := r.grab(t, p.ID, "late").Claim
	waiting := r.awaitPayout(t, claim, payout.StatusAwaitingRecipient)
	if !r.sim.Expire(payout.OrderNo(waiting.ID, 1)) {
		t.Fatal("the transfer does not wait")
	}
	r.awaitPayout(t, claim, payout.StatusFailed)
	by := access.Key{ID: "k", Role: access.RoleApp, Owner: "app"}
	if now, err := r.store.ConfirmAgain(t.Context(), by, waiting.ID); err != nil || now.Status != payout.StatusPending {
		t.Fatalf("%+v, %v", now, err)
	}
	again := r.awaitPayout(t, claim, payout.StatusAwaitingRecipient)
	r.awaitRecipientAction(t, again)
	if !r.sim.Confirm(payout.OrderNo(again.ID, 2)) {
		t.Fatal("the second transfer does not wait")
	}
	r.awaitPayout(t, claim, payout.StatusPaid)
	if first, second := r.sim.Moved(payout.OrderNo(again.ID, 1)), r.sim.Moved(payout.OrderNo(again.ID, 2)); first != 0 || second != 1 {
		t.Errorf("paid %d times under the first number, %d under the second", first, second)
	}
}

// TestWechatRecipient: a large payout needs the recipient's name, which reaches WeChat Pay encrypted. A recipient whose
// account is frozen is paid on another one, under another order number, once the app gives it.
func TestWechatRecipient(t *testing.T) {
	t.Parallel()
	r := newWechatRig(t)
	p := r.create(t, spec{total: 300_000, least: r.pay.Limits().MinPayout, count: 1, payouts: "wechat"})
	r.awaitOpen(t, p.ID)
	if !r.pay.Limits().NeedsName(p.LargestShare()) {
		t.Fatalf("a share of %d needs no name", p.LargestShare())
	}
	name := must(packet.SealText(r.seedKey, p.ID, "张三"))(t)
	claim := must(r.pool.Grab(t.Context(), p.ID, "frozen"+simulator.Declined, packet.Profile{SealedName: name}))(t).Claim
	frozen := r.awaitPayout(t, claim, payout.StatusFailed)
	by := access.Key{ID: "k", Role: access.RoleApp, Owner: "app"}
	now, err := r.store.SetRecipient(t.Context(), by, frozen.ID, payout.Recipient{Account: "right", SealedName: name},
		func(payout.Recipient) bool { return false })
	if err != nil || now.Status != payout.StatusPending {
		t.Fatalf("%+v, %v", now, err)
	}
	again := r.awaitPayout(t, claim, payout.StatusAwaitingRecipient)
	if !r.sim.Confirm(payout.OrderNo(again.ID, 2)) {
		t.Fatal("the second transfer does not wait")
	}
	r.awaitPayout(t, claim, payout.StatusPaid)
	if first, second := r.sim.Moved(payout.OrderNo(again.ID, 1)), r.sim.Moved(payout.OrderNo(again.ID, 2)); first != 0 || second != 1 {
		t.Errorf("paid %d times under the first number, %d under the second", first, second)
	}
}

// TestWechatIsReconciledDaily: Temporal knows the time zone of the bills.
func TestWechatIsReconciledDaily(t *testing.T) {
	t.Parallel()
	r := newWechatRig(t)
	handle := r.temporal.ScheduleClient().GetHandle(t.Context(), workflows.DailyReconcileID("wechat"))
	wait.Until(t, "the reconciliation is scheduled", func() bool {
		d, err := handle.Describe(t.Context())
		return err == nil && d.Schedule.Spec.TimeZoneName == r.pay.Zone().String()
	})
}
