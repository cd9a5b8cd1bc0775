package simulator

import (
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// What an openid may end with, to choose the outcome of its transfers and refunds.
const (
	Declined = "~declined" // FAIL; a refund: CLOSED
	Pending  = "~pending"  // PROCESSING, then SUCCESS after PendingAfter
	Abnormal = "~abnormal" // a refund: ABNORMAL
	Once     = "~once"     // only the first answer to a transfer has its package
)

// transferIn is the body of a transfer.
type transferIn struct {
	AppID     string `json:"appid"`
	OutBillNo string `json:"out_bill_no"`
	Scene     string `json:"transfer_scene_id"`
	OpenID    string `json:"openid"`
	AuthNo    string `json:"out_authorization_no"`
	UserName  string `json:"user_name"`
	Amount    int64  `json:"transfer_amount"`
	Remark    string `json:"transfer_remark"`
	NotifyURL string `json:"notify_url"`
	Infos     []struct {
		Type    string `json:"info_type"`
		Content string `json:"info_content"`
	} `json:"transfer_scene_report_infos"`
}

type transfer struct {
	in               transferIn
	raw              map[string]any
	id, openid       string
	state, reason    string
	packageInfo      string
	authorised       bool
	created, updated time.Time
	moved            int
}

var outBillNo = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)

func (s *Server) createTransfer(c call) reply {
	var in transferIn
	raw, ok := decode(c.body, &in)
	s.mu.Lock()
	defer s.mu.Unlock()
	openid, authorised := in.OpenID, strings.HasSuffix(c.URL.Path, "/transfer")
	if authorised {
		openid = s.authorisedBy(in.AuthNo)
	}
	if problem := s.checkTransfer(c, ok, in, openid, authorised); problem != "" {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", problem)
	}
	kind := s.faultOf("transfer", openid)
	if known := s.transfers[in.OutBillNo]; known != nil {
		if !reflect.DeepEqual(known.raw, raw) {
			return refusal(http.StatusBadRequest, "INVALID_REQUEST", "单号已存在但信息不一致")
		}
		again := known.answer(s.cfg.MerchantID)
		if strings.HasSuffix(openid, Once) {
			delete(again, "package_info")
		}
		return spoil(kind, reply{status: http.StatusOK, value: again})
	}
	if early, ok := before(kind); ok {
		if kind == ErrorLate {
			s.after(s.cfg.PendingAfter, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.transfers[in.OutBillNo] == nil {
					s.addTransfer(in, raw, openid, authorised)
				}
			})
		}
		return early
	}
	t := s.addTransfer(in, raw, openid, authorised)
	return spoil(kind, reply{status: http.StatusOK, value: t.answer(s.cfg.MerchantID)})
}

// checkTransfer returns what is wrong with a transfer.
func (s *Server) checkTransfer(c call, ok bool, in transferIn, openid string, authorised bool) string {
	switch {
	case !ok:
		return "请求体不是合法的JSON"
	case !s.hasApp(in.AppID):
		return "appid 与商户号不匹配"
	case !outBillNo.MatchString(in.OutBillNo):
		return "out_bill_no 格式错误"
	case openid == "" || utf8.RuneCountInString(openid) > 64 || authorised && in.OpenID != "":
		return "openid 或授权单号错误"
	case in.Amount < 10:
		return "转账金额低于最小限额"
	case in.Remark == "" || utf8.RuneCountInString(in.Remark) > 32:
		return "transfer_remark 长度错误"
	case in.Scene == "1000" && len(in.Infos) != 2:
		return "transfer_scene_report_infos 与场景不符"
	case strings.ContainsAny(in.NotifyURL, "?#"):
		return "notify_url 不能携带参数"
	case in.Amount >= 200_000 && in.UserName == "":
		return "user_name 必填"
	}
	if in.UserName != "" {
		if name, err := decrypt(c.key, in.UserName); err != nil || name == "" {
			return "user_name 解密失败"
		}
	}
	return ""
}

func (s *Server) hasApp(id string) bool {
	for _, own := range s.cfg.AppIDs {
		if own == id {
			return true
		}
	}
	return false
}

// addTransfer stores a new transfer and starts what follows. The caller holds the lock.
func (s *Server) addTransfer(in transferIn, raw map[string]any, openid string, authorised bool) *transfer {
	now := time.Now()
	t := &transfer{in: in, raw: raw, id: s.nextID("1330000071"), openid: openid, authorised: authorised, created: now, updated: now}
	s.transfers[in.OutBillNo] = t
	if strings.HasSuffix(openid, Declined) {
		t.state = "PROCESSING"
		s.finishTransfer(t, "FAIL", "ACCOUNT_FROZEN")
		return t
	}
	s.move(flow{at: now, fund: operation, id: t.id, voucher: in.OutBillNo, name: "商家转账", kind: "商家转账", out: true, amount: in.Amount,
		remark: in.Remark})
	switch {
	case strings.HasSuffix(openid, Pending):
		t.state = "PROCESSING"
		s.later(s.cfg.PendingAfter, t)
	case authorised:
		t.state = "PROCESSING"
		s.finishTransfer(t, "SUCCESS", "")
	default:
		t.state, t.packageInfo = "WAIT_USER_CONFIRM", nonce(32)
		if s.cfg.ConfirmAfter > 0 {
			s.later(s.cfg.ConfirmAfter, t)
		}
	}
	return t
}

// later ends a transfer with success.
func (s *Server) later(pause time.Duration, t *transfer) {
	s.after(pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finishTransfer(t, "SUCCESS", "")
	})
}

// finishTransfer makes a transfer final and notifies the merchant. The caller holds the lock.
func (s *Server) finishTransfer(t *transfer, state, reason string) {
	switch t.state {
	case "SUCCESS", "FAIL", "CANCELLED":
		return
	}
	if waiting := t.state == "WAIT_USER_CONFIRM"; waiting && state != "SUCCESS" {
		s.move(flow{at: time.Now(), fund: operation, id: t.id, voucher: t.in.OutBillNo, name: "商家转账退回", kind: "商家转账",
			amount: t.in.Amount})
	}
	t.state, t.reason, t.packageInfo, t.updated = state, reason, "", time.Now()
	if state == "SUCCESS" {
		t.moved++
	}
	s.notify(t.in.NotifyURL, "MCHTRANSFER.BILL.FINISHED", "mch_payment", t.view(s.cfg.MerchantID))
}

// Confirm is the recipient's tap; Expire the end of the time for it.
func (s *Server) Confirm(no string) bool { return s.endWaiting(no, "SUCCESS", "") }

// Tap is the recipient's tap with the package of a transfer, all that the recipient's client knows.
func (s *Server) Tap(pack string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transfers {
		if t.packageInfo == pack && t.state == "WAIT_USER_CONFIRM" {
			s.finishTransfer(t, "SUCCESS", "")
			return true
		}
	}
	return false
}

// Expire lets the time for the recipient's tap pass.
func (s *Server) Expire(no string) bool { return s.endWaiting(no, "FAIL", "OVERDUE_CLOSE") }

// Cancel ends a transfer as staff do at the merchant platform.
func (s *Server) Cancel(no string) bool { return s.endWaiting(no, "CANCELLED", "") }

func (s *Server) endWaiting(no, state, reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transfers[no]
	if t == nil || t.state != "WAIT_USER_CONFIRM" {
		return false
	}
	s.finishTransfer(t, state, reason)
	return true
}

// answer is the answer to a send: without authorisation it has fewer members than a query's.
func (t *transfer) answer(merchant string) map[string]any {
	if t.authorised {
		return t.view(merchant)
	}
	v := map[string]any{"out_bill_no": t.in.OutBillNo, "transfer_bill_no": t.id, "create_time": stamp(t.created), "state": t.state}
	if t.packageInfo != "" {
		v["package_info"] = t.packageInfo
	}
	if t.reason != "" {
		v["fail_reason"] = t.reason
	}
	return v
}

// view is the answer to a query, and the resource of the notification.
func (t *transfer) view(merchant string) map[string]any {
	v := map[string]any{"mch_id": merchant, "out_bill_no": t.in.OutBillNo, "transfer_bill_no": t.id, "appid": t.in.AppID,
		"state": t.state, "transfer_amount": t.in.Amount, "transfer_remark": t.in.Remark, "openid": t.openid,
		"create_time": stamp(t.created), "update_time": stamp(t.updated)}
	if t.reason != "" {
		v["fail_reason"] = t.reason
	}
	return v
}

var noTransfer = refusal(http.StatusNotFound, "NOT_FOUND", "记录不存在")

func (s *Server) queryTransfer(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transfers[c.PathValue("no")]
	if t == nil {
		return noTransfer
	}
	return s.asked(t.openid, reply{status: http.StatusOK, value: t.view(s.cfg.MerchantID)}, noTransfer)
}

func (s *Server) queryTransferByID(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transfers {
		if t.id == c.PathValue("id") {
			return reply{status: http.StatusOK, value: t.view(s.cfg.MerchantID)}
		}
	}
	return noTransfer
}

func (s *Server) cancelTransfer(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transfers[c.PathValue("no")]
	if t == nil {
		return noTransfer
	}
	if t.state != "WAIT_USER_CONFIRM" {
		return refusal(http.StatusBadRequest, "INVALID_REQUEST", "当前单据状态不支持撤销")
	}
	s.finishTransfer(t, "CANCELLED", "")
	return reply{status: http.StatusOK, value: map[string]any{"out_bill_no": t.in.OutBillNo, "transfer_bill_no": t.id, "state": "CANCELING",
		"update_time": stamp(t.updated)}}
}
