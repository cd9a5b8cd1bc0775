package worker_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/test/wait"
)

// of reports whether a call is about the scene's payment.
func (s *scene) of(x *exchange) bool { return x.OrderNo[:payout.IDLen] == s.id }

// alter changes the answers to the payment's first send, or to every call about it.
func alter(always bool, change func(a reply) reply) func(s *scene) {
	return func(s *scene) {
		s.line.between = func(x *exchange, forward func() reply) reply {
			a := forward()
			if s.of(x) && (always || x.Send && x.N == 1) {
				return change(a)
			}
			return a
		}
	}
}

// member changes one member of an order as it is answered.
func member(name string, value any) func(a reply) reply {
	return func(a reply) reply {
		var v map[string]any
		if json.Unmarshal(a.body, &v) != nil || v["order_no"] == nil {
			return a
		}
		a.label = a.says() + " of another " + name
		v[name] = value
		a.body, _ = json.Marshal(v)
		return a
	}
}

// instead answers something else, after the provider has worked.
func instead(status int, label, contentType, body string) func(reply) reply {
	return func(reply) reply {
		return reply{status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(body), label: label}
	}
}

// refuses answers the payment's n-th send itself: the provider never hears of it.
func refuses(n int, status int, code string) func(s *scene) {
	return func(s *scene) {
		s.line.between = func(x *exchange, forward func() reply) reply {
			if s.of(x) && x.Send && x.N == n {
				return problemReply(status, code)
			}
			return forward()
		}
	}
}

const oneAsk = "; ask succeeded"

// alteredRows: answers that are not what they should be.
var alteredRows = []faultRow{
	{what: "answer with another amount", ops: everyOp, set: alter(false, member("amount", rowAmount+1)),
		calls: "send succeeded of another amount" + oneAsk, status: payout.StatusPaid, money: "once", breaks: "mismatch"},
	{what: "every answer with another amount", ops: everyOp, set: alter(true, member("amount", rowAmount-1)),
		calls:  "send succeeded of another amount; ask succeeded of another amount; ask succeeded of another amount+",
		status: payout.StatusUnknown, money: "once", breaks: "mismatch"},
	{what: "every answer with another amount for long, then the right one", ops: transfers,
		set: func(s *scene) {
			change := member("amount", rowAmount-1)
			s.line.between = func(x *exchange, forward func() reply) reply {
				if a := forward(); !s.of(x) || s.isReleased() {
					return a
				} else {
					return change(a)
				}
			}
		},
		then: func(s *scene) {
			s.awaitCalls("send succeeded of another amount; ask succeeded of another amount; ask succeeded of another amount+")
			s.release()
		},
		calls: "send succeeded of another amount; ask succeeded of another amount+" + oneAsk, status: payout.StatusPaid, money: "once",
		breaks: "mismatch"},
	{what: "answer with another account", ops: everyOp, set: alter(false, member("account", "another~account")),
		calls: "send succeeded of another account" + oneAsk, status: payout.StatusPaid, money: "once", breaks: "mismatch"},
	{what: "answer about another order", ops: everyOp, set: alter(false, member("order_no", "p00000000000000000000000001")),
		calls: "send succeeded of another order_no" + oneAsk, status: payout.StatusPaid, money: "once", breaks: "mismatch"},
	{what: "answer about another operation", ops: everyOp, set: alter(false, member("op", "return")),
		calls: "send succeeded of another op" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "answer in another currency", ops: transfers, set: alter(false, member("currency", "USD")),
		calls: "send succeeded of another currency" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "unknown status", ops: transfers, set: alter(false, member("status", "settling")),
		calls: "send succeeded of another status" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "amount as a fraction", ops: transfers, set: alter(false, member("amount", rowAmount+0.5)),
		calls: "send succeeded of another amount" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "refusal of another amount", ops: transfers, suffix: "~declined", set: alter(false, member("amount", rowAmount+1)),
		calls: "send declined of another amount; ask declined; ask declined", status: payout.StatusFailed, money: "never", code: "payee_declined",
		breaks: "mismatch"},
	{what: "200 with a page of HTML", ops: everyOp, set: alter(false, instead(200, "HTML", "text/html", "<html>It works!</html>")),
		calls: "send HTML" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "200 without a body", ops: transfers, set: alter(false, instead(200, "nothing", "application/json", "")),
		calls: "send nothing" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "200 with an empty object", ops: transfers, set: alter(false, instead(200, "{}", "application/json", "{}")),
		calls: "send {}" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "answer cut off in its middle", ops: everyOp,
		set:   alter(false, func(a reply) reply { a.cut, a.label = true, "half an answer"; return a }),
		calls: "send half an answer" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "302 to elsewhere: not followed, nothing is sent there", ops: everyOp, set: redirect,
		calls: "send 302" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "201 instead of 200", ops: transfers, set: alter(false, func(a reply) reply { a.status, a.label = 201, "201"; return a }),
		calls: "send 201" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "502 of a gateway after the money moved", ops: everyOp, set: alter(false, instead(502, "502", "text/html", "<h1>Bad Gateway</h1>")),
		calls: "send 502" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "503 after the money moved", ops: transfers, set: alter(false, instead(503, "503", "text/plain", "busy")),
		calls: "send 503" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "400 with an unknown code, after the money moved", ops: everyOp,
		set:   alter(false, instead(400, "400 strange", "application/json", `{"code":"strange"}`)),
		calls: "send 400 strange" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "404 to a send, after the money moved", ops: transfers,
		set:   alter(false, instead(404, "404 order_not_found", "application/json", `{"code":"order_not_found"}`)),
		calls: "send 404 order_not_found" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "409 conflict, after the money moved", ops: everyOp,
		set:   alter(false, instead(409, "order_conflict", "application/json", `{"code":"order_conflict"}`)),
		calls: "send order_conflict; ask succeeded; ask succeeded", status: payout.StatusPaid, money: "once", breaks: "contradiction"},
	{what: "500 that calls itself a refusal, after the money moved", ops: transfers,
		set:   alter(false, instead(500, "500 invalid_request", "application/json", `{"code":"invalid_request"}`)),
		calls: "send 500 invalid_request" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "refused as invalid, nothing stored under the number", ops: everyOp, set: refuses(1, 422, "invalid_request"),
		calls: "send invalid_request; ask order_not_found", status: payout.StatusFailed, money: "never", code: "never_received"},
	{what: "refused as invalid, finance retries: the same number", ops: transfers, set: refuses(1, 422, "invalid_request"),
		then:  func(s *scene) { s.await(payout.StatusFailed); s.mustRetry() },
		calls: "send invalid_request; ask order_not_found; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "404 with a code of another system to the query", ops: transfers, rules: []rule{fault("", "error_after", 1)},
		set: func(s *scene) {
			s.line.between = func(x *exchange, forward func() reply) reply {
				if s.of(x) && !x.Send && x.N == 1 {
					return problemReply(404, "no_such_page")
				}
				return forward()
			}
		},
		calls: "send internal; ask no_such_page" + oneAsk, status: payout.StatusPaid, money: "once"},
	{what: "our key is refused: sent again, same number, after a longer pause", ops: transfers, slow: true,
		set:   refuses(1, 401, "unauthenticated"),
		calls: "send unauthenticated; send succeeded", status: payout.StatusPaid, money: "once"},
}

// redirect answers the first send with a redirect to a server that fails the row when it is
// called.
func redirect(s *scene) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Errorf("the redirect was followed: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusOK)
	}))
	s.Cleanup(elsewhere.Close)
	alter(false, func(reply) reply {
		return reply{status: http.StatusTemporaryRedirect, header: http.Header{"Location": {elsewhere.URL + "/v1/transfers"}}, label: "302"}
	})(s)
}

// keepFirstAnswer holds the payment's first send; other calls pass, as other wants them.
func keepFirst(other func(s *scene, x *exchange, forward func() reply) reply) func(s *scene) {
	return func(s *scene) {
		s.line.between = func(x *exchange, forward func() reply) reply {
			switch {
			case s.of(x) && x.Send && x.Attempt == 1 && x.N == 1:
				return s.keep(x)
			case s.of(x) && other != nil:
				return other(s, x, forward)
			}
			return forward()
		}
	}
}

// says lands a held send and checks what the provider makes of it.
func (s *scene) mustLand(x *exchange, want string) {
	s.Helper()
	if got := s.line.land(s, x); got != want {
		s.Errorf("the held send landed as %s, want %s", got, want)
	}
}

// declinedOrder is the provider's refusal of an order, as a liar would word it.
func (s *scene) declinedOrder(x *exchange) reply {
	body, _ := json.Marshal(map[string]any{"order_no": x.OrderNo, "op": s.op, "account": s.account, "amount": rowAmount, "currency": "CNY",
		"remark": "",
		"status": "declined", "provider_ref": "sbx-1", "code": "declined", "message": "The order was refused."})
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: body}
}

// forgetting is a provider that remembers a number for four seconds beyond the day of safety.
var forgetting = payout.Limits{LandingWindow: 10 * time.Second, Remembers: 24*time.Hour + 4*time.Second}

// slowNetwork is a provider whose sends may land up to a minute late.
var slowNetwork = payout.Limits{LandingWindow: time.Minute, Remembers: provider.SandboxRemembers}

// askedAfterForgetting waits until two queries found nothing after ask_until, and checks that
// nothing was sent after it.
func askedAfterForgetting(s *scene) {
	s.Helper()
	var until time.Time
	wait.Until(s, "first send", func() bool {
		d, err := s.r.reports().Payment(s.Context(), s.id)
		if err != nil || len(d.Attempts) == 0 {
			return false
		}
		until = d.Attempts[0].QueryUntil
		return true
	})
	asked := func() (n int) {
		d, err := s.r.reports().Payment(s.Context(), s.id)
		if err != nil {
			return 0
		}
		for _, e := range d.Events {
			if e.Op == "send" && n > 0 {
				s.Fatalf("sent at %v, after a query past %v", e.StartedAt, until)
			}
			if e.Op == "ask" && e.StartedAt.After(until) {
				n++
			}
		}
		return n
	}
	wait.Until(s, "two queries after the provider may have forgotten", func() bool { return asked() >= 2 })
	wait.Until(s, "no send may land any more", func() bool { // before, nobody may decide
		d, err := s.r.reports().Payment(s.Context(), s.id)
		now, failed := s.r.store.Clock(s.Context())
		return err == nil && failed == nil && !slices.ContainsFunc(d.Attempts, func(a payout.Attempt) bool {
			return a.CurrentSendUntil.After(now) || a.EarlierSendsUntil.After(now)
		})
	})
}

// loseSends loses every send of the payment until release.
func loseSends(s *scene) {
	s.line.between = func(x *exchange, forward func() reply) reply {
		if s.of(x) && x.Send && !s.isReleased() {
			select {
			case s.held <- x:
			default:
			}
			return problemReply(http.StatusInternalServerError, "internal")
		}
		return forward()
	}
}

// loseSuccess loses every answer that the payment has succeeded.
func loseSuccess(s *scene) {
	s.line.between = func(x *exchange, forward func() reply) reply {
		a := forward()
		if s.of(x) && a.says() == "succeeded" {
			a.silent, a.label = true, "succeeded, lost"
		}
		return a
	}
}

// landsLater is a row whose first send gets an inconclusive answer, and lands after the second
// one was refused. The first answer is not final (rule R4).
func landsLater(label string, ops []payout.Op, first reply) faultRow {
	first.label = label
	asked := "send " + label + "; ask order_not_found; send invalid_request; ask order_not_found"
	return faultRow{what: label + ", the second send is refused as invalid, then the first one lands", ops: ops, limits: slowNetwork,
		set: func(s *scene) {
			s.line.between = func(x *exchange, forward func() reply) reply {
				switch {
				case s.of(x) && x.Send && x.N == 1:
					s.held <- x
					return first
				case s.of(x) && x.Send && x.N == 2:
					return problemReply(http.StatusUnprocessableEntity, "invalid_request")
				}
				return forward()
			}
		},
		then: func(s *scene) {
			x := s.heldSend()
			s.awaitCalls(asked + "; ask order_not_found+")
			if p := s.payment(); p.Status != payout.StatusUnknown {
				s.Errorf("%s while the first send may still land", p.Status)
			}
			s.mustLand(x, "succeeded")
		},
		calls: asked + "+; ask succeeded+", status: payout.StatusPaid, money: "once", breaks: "contradiction"}
}

// lateRows: calls that the network delivers late, and decisions in between.
var lateRows = []faultRow{
	{what: "send held beyond the query, sent again, then the first one lands", ops: everyOp, set: keepFirst(nil),
		then:  func(s *scene) { x := s.heldSend(); s.await(payout.StatusPaid); s.mustLand(x, "succeeded") },
		calls: "send silence; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "send held beyond the query, lands before the second one", ops: transfers,
		set: keepFirst(func(s *scene, x *exchange, forward func() reply) reply {
			if x.Send && x.N == 2 {
				s.mustLand(s.heldSend(), "succeeded")
			}
			return forward()
		}),
		calls: "send silence; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "send held, the second one is refused as invalid, then the first one lands", ops: everyOp, limits: slowNetwork,
		set: keepFirst(func(s *scene, x *exchange, forward func() reply) reply {
			if x.Send && x.N == 2 {
				return problemReply(http.StatusUnprocessableEntity, "invalid_request")
			}
			return forward()
		}),
		then: func(s *scene) {
			x := s.heldSend()
			s.awaitCalls("send silence; ask order_not_found; send invalid_request; ask order_not_found; ask order_not_found+")
			if p := s.payment(); p.Status != payout.StatusUnknown {
				s.Errorf("%s while the first send may still land", p.Status)
			}
			s.mustLand(x, "succeeded")
		},
		calls: "send silence; ask order_not_found; send invalid_request; ask order_not_found+; ask succeeded+", status: payout.StatusPaid,
		money: "once", breaks: "contradiction"},
	landsLater("500", everyOp, problemReply(http.StatusInternalServerError, "internal")),
	landsLater("503", transfers, problemReply(http.StatusServiceUnavailable, "busy")),
	landsLater("502", transfers, instead(http.StatusBadGateway, "502", "text/html", "<h1>Bad Gateway</h1>")(reply{})),
	landsLater("302", transfers, reply{status: http.StatusFound, label: "302"}),
	landsLater("HTML", transfers, instead(http.StatusOK, "HTML", "text/html", "<html>It works!</html>")(reply{})),
	landsLater("half a refusal", transfers, instead(http.StatusUnprocessableEntity, "half a refusal", "application/json",
		`{"code":"invalid_request","det`)(reply{})),
	landsLater("two codes", transfers, instead(http.StatusUnprocessableEntity, "two codes", "application/json",
		`{"code":"invalid_request","code":"rate_limited"}`)(reply{})),
	{what: "send lost for good, the second one is refused as invalid: failed once the first one cannot land any more", ops: transfers,
		set: keepFirst(func(s *scene, x *exchange, forward func() reply) reply {
			if x.Send && x.N == 2 {
				return problemReply(http.StatusUnprocessableEntity, "invalid_request")
			}
			return forward()
		}),
		calls: "send silence; ask order_not_found; send invalid_request; ask order_not_found+", status: payout.StatusFailed, money: "never",
		code: "never_received"},
	{what: "not found past `ask_until`: nothing is sent any more", ops: everyOp, limits: forgetting, set: loseSends,
		then: askedAfterForgetting, loose: true,
		calls: "send internal; ...; ask order_not_found; ask order_not_found", status: payout.StatusUnknown, money: "never",
		breaks: "outcome_unknown"},
	{what: "not found past `ask_until`, then an earlier send lands", ops: transfers, limits: forgetting, set: loseSends, loose: true,
		then:  func(s *scene) { askedAfterForgetting(s); s.mustLand(s.heldSend(), "succeeded") },
		calls: "send internal; ...; ask order_not_found; ask order_not_found; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "returned before paid is known", ops: []payout.Op{payout.OpTransfer}, suffix: "~returned",
		set:   loseSuccess,
		calls: "send succeeded, lost; ask succeeded, lost*; ask returned+", status: payout.StatusReturned, money: "once, returned",
		code: "returned"},
	{what: "the charge was returned before its success is known: the packet is rejected", ops: charges, suffix: "~returned",
		set:   loseSuccess,
		calls: "send succeeded, lost; ask succeeded, lost*; ask returned; ask returned", status: payout.StatusFailed, money: "once, returned",
		code: "returned", breaks: "contradiction", adrift: true},
	{what: "says refused twice though the money moved; finance retries", ops: transfers,
		set: func(s *scene) {
			s.line.between = func(x *exchange, forward func() reply) reply {
				a := forward()
				if s.of(x) && !s.isReleased() {
					return s.declinedOrder(x)
				}
				return a
			}
		},
		then:  func(s *scene) { s.await(payout.StatusFailed); s.release(); s.mustRetry() },
		calls: "send declined; ask declined; ask succeeded; ask succeeded", status: payout.StatusPaid, money: "once", breaks: "contradiction"},
	{what: "says refused twice, then the money moves and a notification comes", ops: transfers, suffix: "~pending",
		set: lies,
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.release()
			s.mustLand(s.heldSend(), "processing")
		},
		calls: "send declined; ask declined; ask succeeded; ask succeeded+", status: payout.StatusPaid, money: "once",
		breaks: "late_success"},
	{what: "says refused twice, the packet is rejected, then the money moves and a notification comes: all of it goes back", ops: charges,
		suffix: "~pending",
		set:    lies,
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.awaitPacket(packet.StatusRejected)
			s.release()
			s.mustLand(s.heldSend(), "processing")
			s.awaitRefund()
		},
		calls: "send declined; ask declined; ask succeeded; ask succeeded+", status: payout.StatusPaid, money: "once",
		breaks: "late_success", ends: packet.StatusRejected},
	{what: "refused, finance retries, then the superseded number succeeds after all", ops: transfers, suffix: "~pending",
		set: lies,
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.mustRetry()
			s.awaitNumber(payout.StatusPaid, 2)
			s.release()
			s.mustLand(s.heldSend(), "processing")
			wait.Until(s, "the second success is seen", func() bool { return s.breaks() == "second_success" })
		},
		loose: true, tries: 2,
		calls:  "send declined; ask declined; ask declined; #2 send processing; #2 ask processing*; #2 ask succeeded+; ask succeeded+",
		status: payout.StatusPaid, money: "twice", breaks: "second_success"},
}
