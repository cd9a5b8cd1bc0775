package wechat

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/test/wait"
)

// TestStatement: charges, refunds and confirmed transfers are listed, in exact fen, whichever number
// the fund flow has; a transfer that waits, or was not confirmed, is not.
func TestStatement(t *testing.T) {
	t.Parallel()
	for _, theirs := range []bool{false, true} {
		r := newRig(t, func(c *simulator.Config) { c.BillsAtOnce, c.VoucherIsBillNo = true, theirs }, nil)
		a, o := r.adapter(t, nil), &orders{}
		tomorrow(a)
		charge := o.order(t, a, charged(MethodJSAPI))
		a.Send(t.Context(), charge)
		r.sim.Pay(charge.OrderNo, "", 500)
		refund := o.order(t, a, payout.Instruction{Op: payout.OpRefund, Amount: 3301, ChargeOrderNo: charge.OrderNo, ChargeTotal: 8800,
			Remark: "a remark, with a comma"})
		a.Send(t.Context(), refund)
		paid, waits, expired := o.order(t, a, paidOut(payer)), o.order(t, a, paidOut(payer)), o.order(t, a, paidOut(payer))
		for _, order := range []payout.Order{paid, waits, expired} {
			a.Send(t.Context(), order)
		}
		r.sim.Confirm(paid.OrderNo)
		r.sim.Expire(expired.OrderNo)
		page, err := a.Statement(t.Context(), payout.DayOf(time.Now(), china), "")
		if err != nil {
			t.Fatal(err)
		}
		got, own := map[string]payout.StatementLine{}, map[payout.Op]money.Fen{}
		for _, l := range page.Lines {
			if !l.Op.WithoutOrder() {
				got[l.OrderNo] = l
				continue
			}
			own[l.Op] += l.Amount
			if of := map[payout.Op]string{payout.OpFee: charge.OrderNo, payout.OpFeeReturned: refund.OrderNo}[l.Op]; l.OrderNo != of {
				t.Errorf("the %s of %s names the order %q", l.Op, of, l.OrderNo)
			}
		}
		for no, want := range map[string]payout.StatementLine{
			charge.OrderNo: {Op: payout.OpCharge, Amount: 8800},
			refund.OrderNo: {Op: payout.OpRefund, Amount: 3301},
			paid.OrderNo:   {Op: payout.OpTransfer, Amount: 8800, Account: payer},
		} {
			if l := got[no]; l.Op != want.Op || l.Amount != want.Amount || l.Account != want.Account || l.Ref == "" {
				t.Errorf("%s is listed as %+v", no, l)
			}
		}
		if len(page.Lines) != 7 || page.Last != "" || own[payout.OpFee] != 500+50 || own[payout.OpFeeReturned] != 187+19 {
			t.Errorf("listed: %+v", page)
		}
	}
}

// TestRefundLessItsFee: a refund that the fund flow lists less its returned fee becomes the full refund and a line for the
// fee.
func TestRefundLessItsFee(t *testing.T) {
	t.Parallel()
	good := flowHead + flowRow + flowTail + "`1.0,`0.0,`0.00,`1.0,`0.02\r\n"
	of := trades{refunds: map[string]refundRow{"50000305742018020103387128253": {outRefundNo: "r1", requested: 3}}}
	lines, err := readFlows([]byte(good), "2018-02-01", of)
	if err != nil || len(lines) != 2 || lines[0].Op != payout.OpRefund || lines[0].Amount != 3 || lines[0].OrderNo != "r1" ||
		lines[1].Op != payout.OpFeeReturned || lines[1].Amount != 1 || lines[1].OrderNo != "r1" || lines[1].Ref != lines[0].Ref+unsettledSuffix {
		t.Errorf("%+v, %v", lines, err)
	}
}

// TestForeignRefund: what someone else refunds of a charge, with a number that is not ours, is listed as a return of the
// charge. The refund of a charge that is not ours keeps its own number.
func TestForeignRefund(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *simulator.Config) { c.BillsAtOnce = true }, nil)
	a, o := r.adapter(t, nil), &orders{}
	tomorrow(a)
	ours, theirs := o.next(payout.OpCharge), "MALL4711"
	for charge, refund := range map[string]string{ours: "BYHAND1", theirs: "BYHAND2"} {
		in := charged(MethodJSAPI)
		in.OrderNo = charge
		a.Send(t.Context(), encoded(t, a, in))
		r.sim.Pay(charge, "", 0)
		a.Send(t.Context(), encoded(t, a, payout.Instruction{Op: payout.OpRefund, OrderNo: refund, Amount: 3301, ChargeOrderNo: charge,
			ChargeTotal: 8800}))
	}
	page, err := a.Statement(t.Context(), payout.DayOf(time.Now(), china), "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]payout.Op{}
	for _, l := range page.Lines {
		if l.Amount == 3301 {
			got[l.OrderNo] = l.Op
		}
	}
	if len(got) != 2 || got[ours] != payout.OpReturn || got["BYHAND2"] != payout.OpRefund {
		t.Errorf("listed: %+v", page.Lines)
	}
}

// TestStatementPages: a long day is cut into pages.
func TestStatementPages(t *testing.T) {
	t.Parallel()
	a := newRig(t, nil, nil).adapter(t, nil)
	tomorrow(a)
	day := payout.DayOf(time.Now(), china)
	lines := make([]billLine, billLines+1)
	a.bills.day, a.bills.lines = day, lines
	first, err := a.Statement(t.Context(), day, "")
	if err != nil || len(first.Lines) != billLines || first.Next == "" {
		t.Fatalf("first page: %d lines, %v", len(first.Lines), err)
	}
	if last, err := a.Statement(t.Context(), day, first.Next); err != nil || len(last.Lines) != 1 || last.Next != "" {
		t.Errorf("last page: %d lines, %v", len(last.Lines), err)
	}
	for _, after := range []string{"x", "-1", "900"} {
		if _, err := a.Statement(t.Context(), day, after); !errors.Is(err, ErrAnswer) {
			t.Errorf("after %q: %v", after, err)
		}
	}
}

// TestStatementLate: before the bills are made, and for a day after it, a missing bill is not taken for
// a day without movements.
func TestStatementLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	day := payout.DayOf(time.Now(), china)
	_, end := day.Span(china)
	for at, ok := range map[time.Duration]bool{-time.Second: true, 9 * time.Hour: false, 11 * time.Hour: false, 35 * time.Hour: true} {
		a := r.adapter(t, nil) // it keeps the statement of a day
		a.now = func() time.Time { return end.Add(at) }
		page, err := a.Statement(t.Context(), day, "")
		if (err == nil) != ok || len(page.Lines) != 0 || err != nil && !errors.Is(err, payout.ErrNotPublished) {
			t.Errorf("%v after the day: %+v, %v", at, page, err)
		}
	}
}

// TestStatementIncomplete: a bill that is later than the others is waited for, and then the day has all lines. Without
// the bills that an account does not need, its day is complete at once.
func TestStatementIncomplete(t *testing.T) {
	t.Parallel()
	const trade, basic, operation, fees = "tradebill", string(FundBasic), string(FundOperation), string(FundFees)
	day := payout.DayOf(time.Now(), china)
	_, end := day.Span(china)
	charge, pay := []payout.Op{payout.OpCharge}, []payout.Op{payout.OpTransfer}
	both := []payout.Op{payout.OpCharge, payout.OpTransfer}
	for name, c := range map[string]struct {
		moved      []payout.Op
		late, code string
		chargeOnly bool
		waits      bool
	}{
		"late flow of the basic account":        {moved: both, late: basic, code: simulator.NoStatement, waits: true},
		"late trade bill":                       {moved: both, late: trade, code: simulator.NoStatement, waits: true},
		"late flow of transfers":                {moved: both, late: operation, code: simulator.NoStatement, waits: true},
		"a bill is being made":                  {moved: both, late: fees, code: simulator.StatementCreating, waits: true},
		"charges and transfers":                 {moved: both},
		"an account that pays, without charges": {moved: pay},
		"no transfer of an account that pays":   {moved: charge, waits: true},
		"an account that only charges":          {moved: charge, chargeOnly: true},
	} {
		r := newRig(t, func(c *simulator.Config) { c.BillsAtOnce = true }, nil)
		sender, o := r.adapter(t, nil), &orders{}
		for _, op := range c.moved {
			in := map[payout.Op]payout.Instruction{payout.OpCharge: charged(MethodJSAPI), payout.OpTransfer: paidOut(payer)}[op]
			order := o.order(t, sender, in)
			sender.Send(t.Context(), order)
			r.sim.Pay(order.OrderNo, "", 0)
			r.sim.Confirm(order.OrderNo)
		}
		a := r.adapter(t, func(cfg *Config) {
			if c.chargeOnly {
				cfg.Scene = ""
			}
		})
		read := func(after time.Duration) (moved int, err error) {
			a.now = func() time.Time { return end.Add(after) }
			page, err := a.Statement(t.Context(), day, "")
			for _, l := range page.Lines {
				if l.Op == payout.OpCharge || l.Op == payout.OpTransfer {
					moved++
				}
			}
			return moved, err
		}
		r.sim.LateBill(c.late, c.code)
		if n, err := read(11 * time.Hour); errors.Is(err, payout.ErrNotPublished) != c.waits || !c.waits && (err != nil || n != len(c.moved)) {
			t.Errorf("%s, at 11:00: %d, %v", name, n, err)
		}
		r.sim.LateBill(c.late, "")
		later := 12 * time.Hour
		if c.late == "" {
			later = billsLate
		}
		if n, err := read(later); err != nil || n != len(c.moved) {
			t.Errorf("%s, later: %d, %v", name, n, err)
		}
	}
}

// TestAwaited: a missing trade bill is empty only if nothing but our own money moved in the basic account.
func TestAwaited(t *testing.T) {
	t.Parallel()
	flow := func(kind string) []byte {
		return []byte(flowHead + strings.ReplaceAll(flowRow, "退款", kind) + flowTail + "`1.0,`0.0,`0.00,`1.0,`0.02\r\n")
	}
	for kind, want := range map[string]string{"充值": "", "提现": "", "退款": tradeBill, "交易": tradeBill, "其他": tradeBill} {
		if bill, err := awaited(map[string][]byte{basicFlow: flow(kind)}, false); err != nil || bill != want {
			t.Errorf("%s: %q, %v", kind, bill, err)
		}
	}
	if _, err := awaited(map[string][]byte{basicFlow: []byte("x")}, false); !errors.Is(err, errBill) {
		t.Errorf("a damaged flow: %v", err)
	}
	if bill, err := awaited(map[string][]byte{}, false); err != nil || bill == "" {
		t.Errorf("a day without any bill is complete: %v", err)
	}
}

// TestStatementDamaged: a file with another hash, or an address elsewhere, is no statement.
func TestStatementDamaged(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *simulator.Config) { c.BillsAtOnce = true }, nil)
	sender, o := r.adapter(t, nil), &orders{}
	sender.Send(t.Context(), o.order(t, sender, paidOut(payer)))
	genuine := r.server.Config.Handler
	broken := false
	r.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == downloadPath && broken {
			other, err := http.NewRequestWithContext(req.Context(), http.MethodGet, req.URL.Path, nil)
			if err != nil {
				panic(err)
			}
			genuine.ServeHTTP(w, other)
			return
		}
		genuine.ServeHTTP(w, req)
	})
	a := r.adapter(t, nil)
	tomorrow(a)
	day := payout.DayOf(time.Now(), china)
	broken = true
	if _, err := a.Statement(t.Context(), day, ""); !errors.Is(err, ErrAnswer) {
		t.Errorf("a download that is refused: %v", err)
	}
	broken = false
	wait.Reached(wait.Limit(), func() bool {
		_, err := a.Statement(t.Context(), day, "")
		return err == nil
	})
	if _, err := a.Statement(t.Context(), day, ""); err != nil {
		t.Errorf("repaired: %v", err)
	}
	if _, err := unpack([]byte("no gzip"), ""); err == nil {
		t.Error("a file that is not packed is taken")
	}
}

const (
	flowHead = "记账时间,微信支付业务单号,资金流水单号,业务名称,业务类型,收支类型,收支金额（元）,账户结余（元）,资金变更提交申请人,备注,业务凭证号\r\n"
	flowTail = "资金流水总笔数,收入笔数,收入金额,支出笔数,支出金额\r\n"
	flowRow  = "`2018-02-01 04:21:23,`50000305742018020103387128253,`1900009231201802015884652186,`退款,`退款,`支出,`0.02,`0.17," +
		"`system,`缺货, 抱歉,`REF42\r\n"
)

// TestBillFile: the published example is read, with its wide parentheses, its counts with a decimal and
// a comma in a value; a bill that does not add up is refused.
func TestBillFile(t *testing.T) {
	t.Parallel()
	good := "\ufeff" + flowHead + flowRow + flowTail + "`1.0,`0.0,`0.00,`1.0,`0.02\r\n"
	lines, err := readFlows([]byte(good), "2018-02-01", trades{})
	if err != nil || len(lines) != 1 || lines[0].Amount != 2 || lines[0].OrderNo != "REF42" || lines[0].Op != payout.OpRefund ||
		!lines[0].At.Equal(time.Date(2018, 1, 31, 20, 21, 23, 0, time.UTC)) {
		t.Fatalf("%+v, %v", lines, err)
	}
	for what, change := range map[string][2]string{
		"another sum":      {"`0.02\r\n", "`0.03\r\n"},
		"another count":    {"`1.0,`0.0,", "`2.0,`0.0,"},
		"no sums":          {flowTail, ""},
		"a row less":       {flowRow, ""},
		"a short row":      {",`REF42", ""},
		"another day":      {"2018-02-01", "2018-02-02"},
		"an amount in fen": {"`0.02,`0.17", "`2,`0.17"},
	} {
		file := strings.Replace(good, change[0], change[1], 1)
		if file == good {
			t.Fatalf("%s changes nothing", what)
		}
		if _, err := readFlows([]byte(file), "2018-02-01", trades{}); !errors.Is(err, errBill) {
			t.Errorf("%s: %v", what, err)
		}
	}
	strange := strings.NewReplacer("`退款,`退款", "`其他,`其他").Replace(good)
	lines, err = readFlows([]byte(strange), "2018-02-01", trades{})
	if err != nil || len(lines) != 1 || lines[0].Op != payout.OpTransfer || lines[0].Amount != money.Fen(2) {
		t.Errorf("money that left for an unknown reason: %+v, %v", lines, err)
	}
	for kind, ops := range map[string][2]payout.Op{"扣除交易手续费": {payout.OpFee}, "退回交易手续费": {"", payout.OpFeeReturned},
		"提现": {payout.OpWithdrawal, payout.OpTopUp}, "充值": {payout.OpWithdrawal, payout.OpTopUp}} {
		for i, op := range ops {
			if op == "" {
				continue
			}
			file := strings.NewReplacer("`退款,`退款", "`"+kind+",`"+kind).Replace(good)
			if i == 1 {
				file = strings.NewReplacer("`支出", "`收入", "`1.0,`0.0,`0.00,`1.0,`0.02", "`1.0,`1.0,`0.02,`0.0,`0.00").Replace(file)
			}
			lines, err := readFlows([]byte(file), "2018-02-01", trades{})
			if err != nil || len(lines) != 1 || lines[0].Op != op || lines[0].Amount != 2 || lines[0].OrderNo != "" ||
				lines[0].Ref != "1900009231201802015884652186" {
				t.Errorf("%s, line %d: %+v, %v", kind, i, lines, err)
			}
		}
	}
}
