package wechat

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// The columns that are read. They are found by name: the order differs between kinds of bill.
//
// Sources: pay.weixin.qq.com/docs/merchant/products/bill-download/format-trade.html and
// pay.weixin.qq.com/doc/v2/merchant/4011939779 (fund flow).
const (
	colTime, colTransaction, colOutTradeNo    = "交易时间", "微信订单号", "商户订单号"
	colState                                  = "交易状态"
	colCurrency, colTotal, colSettled         = "货币种类", "订单金额", "应结订单金额"
	colRefundID, colOutRefundNo, colRequested = "微信退款单号", "商户退款单号", "申请退款金额"

	colBooked, colBusiness, colFlow   = "记账时间", "微信支付业务单号", "资金流水单号"
	colName, colKind, colWay          = "业务名称", "业务类型", "收支类型"
	colAmount, colVoucher, wayOut     = "收支金额(元)", "业务凭证号", "支出"
	colCount, colIn, colOut, colTrade = "资金流水总笔数", "收入金额", "支出金额", "总交易单数"
)

// table is one block of a bill: rows by column.
type table []map[string]string

// readTable reads a bill: a header, rows, a header of sums and their row. Values begin with a backtick,
// and may have commas in them.
func readTable(file []byte) (rows table, sums map[string]string, err error) {
	text := strings.TrimPrefix(string(file), "\ufeff")
	var heads []string
	var blocks [2]table
	at := -1
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		if !strings.HasPrefix(line, "`") {
			if at++; at > 1 {
				return nil, nil, fmt.Errorf("%w: line %d is a third header", errBill, n+1)
			}
			// Some files write the yuan in wide parentheses.
			heads = strings.Split(strings.NewReplacer("（", "(", "）", ")").Replace(line), ",")
			continue
		}
		values := strings.Split(line[1:], ",`")
		if at < 0 || len(values) != len(heads) {
			return nil, nil, fmt.Errorf("%w: line %d has %d values for %d columns", errBill, n+1, len(values), len(heads))
		}
		row := make(map[string]string, len(heads))
		for i, head := range heads {
			row[head] = strings.TrimSpace(values[i])
		}
		blocks[at] = append(blocks[at], row)
	}
	if at != 1 || len(blocks[1]) != 1 {
		return nil, nil, fmt.Errorf("%w: it has no sums at its end", errBill)
	}
	return blocks[0], blocks[1][0], nil
}

// count reads a number of rows, which some files write as "20.0".
func count(text string) (int, error) {
	whole, _, _ := strings.Cut(text, ".")
	n, err := strconv.Atoi(whole)
	if err != nil {
		return 0, fmt.Errorf("%w: count %q", errBill, text)
	}
	return n, nil
}

// amount reads yuan as exact fen.
func amount(text string) (money.Fen, error) {
	fen, err := money.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBill, err)
	}
	return fen, nil
}

// sum reads a sum in yuan, which may be above the largest amount.
func sum(text string) (money.Fen, error) {
	whole, part, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil || len(part) != 2 || n < 0 {
		return 0, fmt.Errorf("%w: sum %q", errBill, text)
	}
	return money.Fen(n), nil
}

// moment reads a time of a bill and checks that it is of the day.
func moment(text string, day payout.Day) (time.Time, error) {
	at, err := time.ParseInLocation(time.DateTime, text, china)
	from, to := day.Span(china)
	if err != nil || at.Before(from) || !at.Before(to) {
		return time.Time{}, fmt.Errorf("%w: time %q", errBill, text)
	}
	return at.UTC(), nil
}

// refundRow is what the trade bill says about a refund. Its state is that of the moment of acceptance:
// that money moved is in the fund flow alone.
type refundRow struct {
	outRefundNo string
	outTradeNo  string    // of the charge
	requested   money.Fen // what the sender receives; the fund flow may have less
}

// foreign reports whether someone else refunded a charge of ours, for instance by hand at the merchant
// platform: the money went back to the sender, and no refund of ours has the number.
func (r refundRow) foreign() bool { return isOrderNo(r.outTradeNo) && !isOrderNo(r.outRefundNo) }

// isOrderNo reports whether a number has the form of ours.
func isOrderNo(no string) bool {
	parts, err := payout.Parse(no)
	return err == nil && parts.Attempt > 0
}

// trades is what the trade bill says, by the vendor's numbers.
type trades struct {
	charges map[string]string    // transaction -> order number
	refunds map[string]refundRow // by refund id
}

// orderOf returns the order number of a transaction or a refund; "": the trade bill of the day does not list it.
func (t trades) orderOf(business string) string {
	if no, found := t.charges[business]; found {
		return no
	}
	return t.refunds[business].outRefundNo
}

// unsettledSuffix follows the reference of a line in that of the line for what was not settled of it.
const unsettledSuffix = "-unsettled"

// unsettled is a line for the part of an order's amount that did not move in our funds: a coupon that we
// granted, or a fee that was deducted from the same movement. It counts as a fee of the order.
func unsettled(l payout.StatementLine, op payout.Op, amount money.Fen) billLine {
	return billLine{StatementLine: payout.StatementLine{Ref: l.Ref + unsettledSuffix, Op: op, OrderNo: l.OrderNo, Amount: amount, At: l.At}}
}

// readBills returns the lines of a day, in the order of their times.
func readBills(files map[string][]byte, day payout.Day) ([]billLine, error) {
	var lines []billLine
	of := trades{charges: map[string]string{}, refunds: map[string]refundRow{}}
	for bill, file := range files {
		if strings.HasPrefix(bill, "tradebill") {
			var err error
			if lines, err = readTrades(file, day, of); err != nil {
				return nil, fmt.Errorf("trade bill: %w", err)
			}
		}
	}
	for bill, file := range files {
		if strings.HasPrefix(bill, "fundflowbill") {
			more, err := readFlows(file, day, of)
			if err != nil {
				return nil, fmt.Errorf("fund flow bill: %w", err)
			}
			lines = append(lines, more...)
		}
	}
	slices.SortFunc(lines, func(x, y billLine) int { return cmp.Or(x.At.Compare(y.At), strings.Compare(x.Ref, y.Ref)) })
	return lines, nil
}

// readTrades returns the charges, and fills in what the bill says about charges and refunds.
func readTrades(file []byte, day payout.Day, of trades) ([]billLine, error) {
	rows, sums, err := readTable(file)
	if err != nil {
		return nil, err
	}
	if n, err := count(sums[colTrade]); err != nil || n != len(rows) {
		return nil, fmt.Errorf("%w: %d rows, its sum says %q", errBill, len(rows), sums[colTrade])
	}
	var lines []billLine
	for _, row := range rows {
		if id := row[colRefundID]; row[colState] == "REFUND" {
			requested, err := sum(row[colRequested])
			if err != nil {
				return nil, err
			}
			of.refunds[id] = refundRow{row[colOutRefundNo], row[colOutTradeNo], requested}
			continue
		}
		if row[colState] != "SUCCESS" || row[colCurrency] != currency {
			return nil, fmt.Errorf("%w: state %q, currency %q", errBill, row[colState], row[colCurrency])
		}
		l := payout.StatementLine{Ref: row[colTransaction], Op: payout.OpCharge, OrderNo: row[colOutTradeNo]}
		of.charges[l.Ref] = l.OrderNo
		if l.At, err = moment(row[colTime], day); err != nil {
			return nil, err
		}
		if l.Amount, err = amount(row[colTotal]); err != nil {
			return nil, err
		}
		settled, err := sum(row[colSettled])
		if err != nil {
			return nil, err
		}
		if lines = append(lines, billLine{StatementLine: l}); settled < l.Amount {
			lines = append(lines, unsettled(l, payout.OpFee, l.Amount-settled))
		}
	}
	return lines, nil
}

// readFlows returns refunds, transfers, fees, what we move between the merchant's account and our bank,
// and outgoing money without a known reason.
func readFlows(file []byte, day payout.Day, of trades) ([]billLine, error) {
	rows, sums, err := readTable(file)
	if err != nil {
		return nil, err
	}
	var lines []billLine
	moved := map[bool]money.Fen{}
	for _, row := range rows {
		l := payout.StatementLine{Ref: row[colFlow], OrderNo: row[colVoucher]}
		if l.At, err = moment(row[colBooked], day); err != nil {
			return nil, err
		}
		if l.Amount, err = amount(row[colAmount]); err != nil {
			return nil, err
		}
		out := row[colWay] == wayOut
		moved[out] += l.Amount
		lines = append(lines, flowLines(row, l, out, of)...)
	}
	n, err := count(sums[colCount])
	if err != nil {
		return nil, err
	}
	in, inErr := sum(sums[colIn])
	out, outErr := sum(sums[colOut])
	if n != len(rows) || inErr != nil || outErr != nil || in != moved[false] || out != moved[true] {
		return nil, fmt.Errorf("%w: its sums are not those of its %d rows", errBill, len(rows))
	}
	return lines, nil
}

// listsTrades reports whether a fund flow lists more than money that we moved ourselves, so that the day has charges or
// refunds.
func listsTrades(file []byte) (bool, error) {
	rows, _, err := readTable(file)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(rows, func(row map[string]string) bool {
		what := row[colName] + row[colKind]
		own := func(word string) bool { return strings.Contains(what, word) }
		return !slices.ContainsFunc([]string{"提现", "充值", "转账"}, own)
	}), nil
}

// flowLines reads one movement of a fund. There are none for charges, which are in the trade bill, for the
// settlement between funds, and for incoming money of a transfer: it was not confirmed. Money moved from
// one of our funds to another is a withdrawal from the one and a top-up of the other.
func flowLines(row map[string]string, l payout.StatementLine, out bool, of trades) []billLine {
	what := row[colName] + row[colKind]
	is := func(word string) bool { return strings.Contains(what, word) }
	either := func(wentOut, cameIn payout.Op) payout.Op {
		if out {
			return wentOut
		}
		return cameIn
	}
	one := func(op payout.Op, orderNo, transferID string) []billLine {
		l.Op, l.OrderNo = op, orderNo
		return []billLine{{StatementLine: l, transferID: transferID}}
	}
	switch {
	case is("手续费"):
		return one(either(payout.OpFee, payout.OpFeeReturned), of.orderOf(row[colBusiness]), "")
	case is("提现"), is("充值"):
		return one(either(payout.OpWithdrawal, payout.OpTopUp), "", "")
	case is("退款"):
		r, found := of.refunds[row[colBusiness]]
		op := either(payout.OpRefund, payout.OpReturn) // incoming: the refund did not reach its sender
		if !found {
			return one(op, l.OrderNo, "")
		}
		moved := l.Amount
		l.Amount = max(moved, r.requested)
		no := r.outRefundNo
		if out && r.foreign() {
			op, no = payout.OpReturn, r.outTradeNo
		}
		lines := one(op, no, "")
		if moved < r.requested {
			l.OrderNo = no
			lines = append(lines, unsettled(l, either(payout.OpFeeReturned, payout.OpFee), r.requested-moved))
		}
		return lines
	case is("转账") && out:
		return one(payout.OpTransfer, l.OrderNo, row[colBusiness])
	case is("转账"), !out, is("结算"):
		return nil
	}
	return one(payout.OpTransfer, row[colFlow], "") // money went out, and no order of ours explains it
}
