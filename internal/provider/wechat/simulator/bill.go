package simulator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // the vendor's hash of bills
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The funds of the merchant.
const (
	basic     = "BASIC"
	operation = "OPERATION"
)

// flow is one movement of a fund.
type flow struct {
	at                      time.Time
	fund, id, voucher, name string
	kind, remark, no        string
	out                     bool
	amount                  int64
}

// move records a movement. The caller holds the lock.
func (s *Server) move(f flow) {
	f.no = s.nextID("1900009231")
	s.flows = append(s.flows, f)
	if f.out {
		s.balance[f.fund] -= f.amount
	} else {
		s.balance[f.fund] += f.amount
	}
}

// feeRate is the fee of a charge, in hundredths of a percent.
const feeRate = 60

// fee is the fee of a charge, rounded to the nearest fen.
func fee(amount int64) int64 { return (amount*feeRate + 5000) / 10000 }

// moveFee records a fee (amount above 0) or a returned one (below 0). The caller holds the lock.
func (s *Server) moveFee(at time.Time, id, voucher string, amount int64) {
	switch {
	case amount > 0:
		s.move(flow{at: at, fund: basic, id: id, voucher: voucher, name: "交易", kind: "扣除交易手续费", out: true, amount: amount})
	case amount < 0:
		s.move(flow{at: at, fund: basic, id: id, voucher: voucher, name: "退款", kind: "退回交易手续费", amount: -amount})
	}
}

// opening is the balance of each fund before the first movement, in fen.
const opening = 1 << 40

func (s *Server) fundBalance(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	fund := c.PathValue("fund")
	if fund != basic && fund != operation && fund != "FEES" {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "account_type 错误")
	}
	return reply{status: http.StatusOK, value: map[string]int64{"available_amount": opening + s.balance[fund], "pending_amount": 0}}
}

// Codes of bills that are not there.
const (
	NoStatement       = "NO_STATEMENT_EXIST"
	StatementCreating = "STATEMENT_CREATING"
)

// LateBill refuses a bill with a code, whatever moved: "tradebill", or the account of a fund flow. "": it is made.
func (s *Server) LateBill(bill, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateBills == nil {
		s.lateBills = map[string]string{}
	}
	s.lateBills[bill] = code
}

// bill makes the file of a day and answers where it can be fetched.
func (s *Server) bill(c call) reply {
	q := c.URL.Query()
	day, err := time.ParseInLocation(time.DateOnly, q.Get("bill_date"), china)
	if err != nil || q.Get("tar_type") != "" && q.Get("tar_type") != "GZIP" {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "参数错误")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := refusal(http.StatusBadRequest, NoStatement, "账单文件不存在")
	if !s.cfg.BillsAtOnce && time.Now().Before(day.Add(34*time.Hour)) {
		return missing
	}
	var text, late string
	switch kind := c.PathValue("kind"); kind {
	case "tradebill":
		text, late = s.tradeBill(day), s.lateBills[kind]
	case "fundflowbill":
		fund := cmp.Or(q.Get("account_type"), basic)
		text, late = s.fundFlow(day, fund), s.lateBills[fund]
	default:
		return refusal(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "接口不存在")
	}
	if late != "" {
		return refusal(http.StatusBadRequest, late, "账单文件不存在或生成中")
	}
	if text == "" {
		return missing
	}
	sum := sha1.Sum([]byte(text))
	file := []byte(text)
	if q.Get("tar_type") == "GZIP" {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(file) // into memory
		_ = z.Close()
		file = b.Bytes()
	}
	token := nonce(16)
	s.files[token] = file
	return reply{status: http.StatusOK, value: map[string]string{"hash_type": "SHA1", "hash_value": hex.EncodeToString(sum[:]),
		"download_url": "https://api.mch.weixin.qq.com/v3/billdownload/file?token=" + token}}
}

// download answers with a file, unsigned.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	if s.authenticate(r, nil) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.mu.Lock()
	file := s.files[r.URL.Query().Get("token")]
	s.mu.Unlock()
	if file == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(file)
}

const (
	tradeHead = "交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,交易类型,交易状态,付款银行,货币种类," +
		"应结订单金额,代金券金额,微信退款单号,商户退款单号,退款金额,充值券退款金额,退款类型,退款状态,商品名称,商户数据包,手续费,费率,订单金额,申请退款金额,费率备注"
	tradeSum = "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额"
	flowHead = "记账时间,微信支付业务单号,资金流水单号,业务名称,业务类型,收支类型,收支金额(元),账户结余(元),资金变更提交申请人,备注,业务凭证号"
	flowSum  = "资金流水总笔数,收入笔数,收入金额,支出笔数,支出金额"
)

func line(values ...string) string { return "`" + strings.Join(values, ",`") + "\r\n" }

func on(day, at time.Time) bool { return !at.Before(day) && at.Before(day.AddDate(0, 0, 1)) }

func moment(t time.Time) string { return t.In(china).Format(time.DateTime) }

// tradeBill lists paid charges and accepted refunds of a day; "" when there are none.
func (s *Server) tradeBill(day time.Time) string {
	var rows []string
	var paid, settled, back, unsettled int64
	for no, c := range s.charges {
		if c.id != "" && on(day, c.paidAt) {
			net := c.settled(c.in.Amount.Total)
			paid, settled = paid+c.in.Amount.Total, settled+net
			rows = append(rows, line(moment(c.paidAt), c.in.AppID, c.in.MerchantID, "0", "", c.id, no, c.openid, c.method, "SUCCESS", "OTHERS",
				"CNY", yuan(net), yuan(c.in.Amount.Total-net), "0", "0", "0.00", "0.00", "", "", c.in.Description, "", "0.00000", "0.60%",
				yuan(c.in.Amount.Total), "0.00", ""))
		}
	}
	for no, r := range s.refunds {
		if on(day, r.created) {
			back, unsettled = back+r.in.Amount.Refund, unsettled+r.settled()
			c := r.of
			rows = append(rows, line(moment(r.created), c.in.AppID, c.in.MerchantID, "0", "", c.id, r.in.OutTradeNo, c.openid, c.method, "REFUND",
				"OTHERS", "CNY", "0.00", "0.00", r.id, no, yuan(r.settled()), "0.00", "ORIGINAL", "PROCESSING", c.in.Description, "",
				"0.00000", "0.60%", "0.00", yuan(r.in.Amount.Refund), ""))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	slices.Sort(rows)
	return "\ufeff" + tradeHead + "\r\n" + strings.Join(rows, "") + tradeSum + "\r\n" +
		line(fmt.Sprint(len(rows)), yuan(settled), yuan(unsettled), "0.00", "0.00000", yuan(paid), yuan(back))
}

// fundFlow lists the movements of a fund on a day; "" when there are none.
func (s *Server) fundFlow(day time.Time, fund string) string {
	var b strings.Builder
	var in, out, nIn, nOut, balance int64
	balance = opening
	for _, f := range s.flows {
		if f.fund != fund {
			continue
		}
		way := "收入"
		if f.out {
			way = "支出"
			balance -= f.amount
		} else {
			balance += f.amount
		}
		if !on(day, f.at) {
			continue
		}
		if f.out {
			out, nOut = out+f.amount, nOut+1
		} else {
			in, nIn = in+f.amount, nIn+1
		}
		voucher := f.voucher
		if s.cfg.VoucherIsBillNo {
			voucher = f.id
		}
		b.WriteString(line(moment(f.at), f.id, f.no, f.name, f.kind, way, yuan(f.amount), yuan(balance), "system", f.remark, voucher))
	}
	if nIn+nOut == 0 {
		return ""
	}
	return flowHead + "\r\n" + b.String() + flowSum + "\r\n" +
		line(fmt.Sprint(nIn+nOut), fmt.Sprint(nIn), yuan(in), fmt.Sprint(nOut), yuan(out))
}
