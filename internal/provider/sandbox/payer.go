package sandbox

import (
	"crypto/subtle"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Methods of charges whose payer has to act. A charge without a method is charged at once.
const (
	MethodApp = "sandbox_app" // the payer's app opens the page of the order
	MethodQR  = "sandbox_qr"  // the payer scans the address of that page
)

var payerMethods = []string{MethodApp, MethodQR}

// payTokenValid is how long a token to pay is valid. A repeat of the charge replaces it.
const payTokenValid = 2 * time.Hour

// codeClosed is the code of a charge that was closed before it was paid.
const codeClosed = "order_closed"

// needsPayer reports whether the charge waits for its payer.
func (p params) needsPayer() bool { return slices.Contains(payerMethods, p.Method) }

// await makes the order wait for its payer, with a new token. next is what a payment leads to.
func (r *record) await(next *outcome, now time.Time) {
	r.Status, r.Next = StatusAwaitingPayment, next
	r.ConfirmToken, r.ExpiresMS = newID("pay_"), now.Add(payTokenValid).UnixMilli()
	r.UpdatedMS = now.UnixMilli()
}

// fireForCharge selects a rule of the given kinds for a charge that is paid or closed.
func (s *Server) fireForCharge(tx *txn, rec *record, kinds ...string) (*Rule, error) {
	rule, counted := s.faults.fire(func(r *Rule) bool { return slices.Contains(kinds, r.Kind) && r.matches(rec.Op, rec.Account) })
	if rule == nil {
		rule = &Rule{}
	}
	if counted {
		return rule, tx.put(bucketMeta, keyFaults, s.faults.snapshot())
	}
	return rule, nil
}

// pay is the payment by the payer. A paid order changes nothing and is no error.
func (s *Server) pay(tx *txn, rec *record, now time.Time) (*problem, error) {
	switch {
	case rec.Status == StatusSucceeded || rec.Status == StatusProcessing:
		return nil, nil
	case rec.Status != StatusAwaitingPayment:
		return problemNotAwaitingPayment, nil
	}
	rule, err := s.fireForCharge(tx, rec, faultPaidTwice, faultWrongAmount, faultCoupon)
	if err != nil {
		return nil, err
	}
	switch rule.Kind {
	case faultWrongAmount:
		rec.Amount++
	case faultCoupon:
		rec.Coupon = 1
	}
	if rule.Kind == faultPaidTwice {
		if err := tx.schedule(bucketDue, now.Add(s.cfg.PendingAfter), dueEvent{Kind: duePayAgain, OrderNo: rec.OrderNo}); err != nil {
			return nil, err
		}
	}
	if behaviourOf(rec.Account) == pending {
		rec.Status, rec.UpdatedMS = StatusProcessing, now.UnixMilli()
		if err := tx.schedule(bucketDue, now.Add(s.cfg.PendingAfter), dueEvent{Kind: dueComplete, OrderNo: rec.OrderNo}); err != nil {
			return nil, err
		}
		return nil, tx.putOrder(rec)
	}
	return nil, s.setStatusAndNotify(tx, rec, *rec.Next, now)
}

// payAgain is a second payment of a paid order (paid_twice): the order shows its reference.
func (s *Server) payAgain(tx *txn, rec *record, now time.Time) error {
	rec.ProviderRef = newID("sbx")
	return s.setStatusAndNotify(tx, rec, outcome{Status: StatusSucceeded}, now)
}

// closeCharge ends a charge that waits for its payer.
func (s *Server) closeCharge(tx *txn, orderNo string, now time.Time) (reply, error) {
	rec, err := getOrder(tx.Tx, orderNo)
	switch {
	case err != nil:
		return reply{}, err
	case rec == nil || rec.Op != opCharge:
		return refuse(problemOrderNotFound), nil
	case rec.Status == StatusSucceeded || rec.Status == StatusProcessing:
		return refuse(problemOrderPaid), nil
	case rec.Status != StatusAwaitingPayment:
		return reply{order: rec.view()}, nil
	}
	rule, err := s.fireForCharge(tx, rec, faultCloseLost, faultPayAfterClose)
	if err != nil {
		return reply{}, err
	}
	if rule.Kind == faultPayAfterClose {
		if err := tx.schedule(bucketDue, now.Add(s.cfg.PendingAfter), dueEvent{Kind: dueLatePay, OrderNo: orderNo}); err != nil {
			return reply{}, err
		}
	}
	next := rec.Next
	if err := s.setStatus(tx, rec, outcome{StatusDeclined, codeClosed, "The order was closed before it was paid."}, now); err != nil {
		return reply{}, err
	}
	rec.Next = next
	r := reply{order: rec.view()}
	if rule.Kind == faultCloseLost {
		r = reply{spoil: spoilDrop}
	}
	return r, tx.putOrder(rec)
}

// handleClose serves POST /v1/charges/{order_no}/close.
func (s *Server) handleClose(w http.ResponseWriter, r *http.Request) {
	path, _ := rest(r, "/v1/charges/")
	orderNo, ok := strings.CutSuffix(path, "/close")
	if !ok || !validOrderNo(orderNo) {
		s.writeProblem(w, r, problemNotFound)
		return
	}
	var answer reply
	err := s.writer.do(func(tx *txn) (err error) {
		answer, err = s.closeCharge(tx, orderNo, time.Now())
		return err
	})
	s.writeReply(w, r, answer, err)
}

// payBy pays an order if may allows it.
func (s *Server) payBy(orderNo string, may func(*record) *problem) (refused *problem, err error) {
	err = s.writer.do(func(tx *txn) error {
		rec, err := getOrder(tx.Tx, orderNo)
		switch {
		case err != nil:
			return err
		case rec == nil || !rec.needsPayer():
			refused = problemOrderNotFound
			return nil
		}
		if refused = may(rec); refused != nil {
			return nil
		}
		refused, err = s.pay(tx, rec, time.Now())
		return err
	})
	return refused, err
}

// handlePayNow serves POST /_pay/{order_no}: tests pay without the page.
func (s *Server) handlePayNow(w http.ResponseWriter, r *http.Request) {
	orderNo, ok := rest(r, "/_pay/")
	if !ok || !validOrderNo(orderNo) {
		s.writeProblem(w, r, problemOrderNotFound)
		return
	}
	refused, err := s.payBy(orderNo, func(*record) *problem { return nil })
	if refused != nil && err == nil {
		s.writeProblem(w, r, refused)
		return
	}
	s.answerEmpty(w, r, err)
}

// payPage is the page on which a person pays.
var payPage = template.Must(template.New("pay").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Sandbox payment</title>
<style>body{font:18px/1.5 system-ui,sans-serif;max-width:24em;margin:3em auto;padding:0 1em}
button{font:inherit;padding:.6em 2em}</style></head>
<body><h1>{{.Yuan}}</h1><p>{{.Remark}}</p><p>Order {{.OrderNo}}. No real money moves here.</p>
{{if .Waits}}<form method="post"><button>Pay</button></form>{{else}}<p role="status">{{.State}}</p>{{end}}
{{with .Back}}<p><a href="{{.}}">Back to the app</a></p>{{end}}</body></html>
`))

// handlePage serves the page of an order and takes its button. The token in the query is the
// permission; after pay_until nothing is taken.
func (s *Server) handlePage(w http.ResponseWriter, r *http.Request) {
	orderNo, ok := rest(r, "/pay/")
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		s.writeProblem(w, r, methodNotAllowed("GET, POST"))
		return
	}
	if !ok || !validOrderNo(orderNo) {
		s.writeProblem(w, r, problemOrderNotFound)
		return
	}
	token := r.URL.Query().Get("token")
	var rec *record
	err := s.writer.do(func(tx *txn) (err error) {
		rec, err = getOrder(tx.Tx, orderNo)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if rec == nil || rec.ConfirmToken == "" || subtle.ConstantTimeCompare([]byte(token), []byte(rec.ConfirmToken)) != 1 {
		s.writeProblem(w, r, problemOrderNotFound)
		return
	}
	if r.Method == http.MethodPost {
		refused, err := s.payBy(orderNo, func(rec *record) *problem {
			if late(rec, time.Now()) {
				return problemNotAwaitingPayment
			}
			return nil
		})
		switch {
		case err != nil:
			s.fail(w, r, err)
		case refused != nil:
			s.writeProblem(w, r, refused)
		default:
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusSeeOther)
		}
		return
	}
	s.writePage(w, rec)
}

// late reports whether the payer may not begin to pay any more.
func late(rec *record, now time.Time) bool {
	at := rec.PayUntilMS
	return now.UnixMilli() >= rec.ExpiresMS || at != 0 && now.UnixMilli() >= at
}

func (s *Server) writePage(w http.ResponseWriter, rec *record) {
	state := "This order cannot be paid any more."
	if rec.Status == StatusSucceeded || rec.Status == StatusProcessing {
		state = "Paid. Thank you."
	}
	back := ""
	if u, err := url.Parse(rec.ReturnURL); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		back = rec.ReturnURL
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	err := payPage.Execute(w, map[string]any{"Yuan": yuan(rec.Amount), "Remark": rec.Remark, "OrderNo": rec.OrderNo, "State": state,
		"Waits": rec.Status == StatusAwaitingPayment && !late(rec, time.Now()), "Back": back})
	if err != nil {
		s.log.Warn("page not written", slog.Any("error", err))
	}
}

// yuan writes fen as an amount for a person.
func yuan(fen int64) string { return fmt.Sprintf("¥%d.%02d", fen/100, fen%100) }
