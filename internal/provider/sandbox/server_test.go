package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/test/wait"
)

func TestAccounts(t *testing.T) {
	const none = ""
	moved := func(op string) string { return op + " 7;" }
	for _, op := range []string{"charge", "transfer", "refund"} {
		payerOrPayee := map[bool]string{true: "payer_declined", false: "payee_declined"}[op == "charge"]
		for _, c := range []struct {
			account string
			sends   string // outcomes of the sends, one after the other: a status, a code or "lost"
			moved   string // after each send, the movements
			code    string
		}{
			{"plain", "succeeded succeeded", moved(op) + "|" + moved(op), ""},
			{"~pendingx", "succeeded", moved(op), ""},
			{"u~declined", "declined declined", none + "|" + none, payerOrPayee},
			{"u~frozen", "declined declined", none + "|" + none, "account_frozen"},
			{"u~flaky", "500 500 succeeded succeeded", none + "|" + none + "|" + moved(op) + "|" + moved(op), ""},
			{"u~lost_reply", "lost succeeded succeeded", moved(op) + "|" + moved(op) + "|" + moved(op), ""},
			{"u~lost_request", "lost succeeded succeeded", none + "|" + moved(op) + "|" + moved(op), ""},
			{"u~pending", "processing", none, ""},
			{"u~confirm", "awaiting_confirmation awaiting_confirmation", none + "|" + none, ""},
			{"u~returned", "succeeded", moved(op), ""},
		} {
			t.Run(op+" "+c.account, func(t *testing.T) {
				st := newStand(t, func(c *Config) { c.PendingAfter, c.ReturnAfter = time.Hour, time.Hour })
				after := strings.Split(c.moved, "|")
				for i, want := range strings.Fields(c.sends) {
					r := st.send(op, "no1", c.account, 7)
					switch want {
					case "lost":
						if r.err == nil {
							t.Fatalf("send %d: want no answer, got %s", i+1, r)
						}
					case "500":
						if r.status != 500 || r.code() != "internal" {
							t.Fatalf("send %d: %s", i+1, r)
						}
						if q := st.query("no1"); q.code() != "order_not_found" {
							t.Fatalf("query after send %d: %s", i+1, q)
						}
					default:
						got := r.order(t)
						if string(got.Status) != want || deref(got.Code) != c.code || got.Op != op || got.Account != c.account ||
							got.Amount != 7 || got.OrderNo != "no1" || got.ProviderRef == "" {
							t.Fatalf("send %d: %s", i+1, r.body)
						}
						if q := st.query("no1"); string(q.body) != string(r.body) {
							t.Fatalf("query says %s, send said %s", q.body, r.body)
						}
					}
					if got := st.moved("no1"); got != after[i] {
						t.Fatalf("after send %d moved %q, want %q", i+1, got, after[i])
					}
				}
			})
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestBroke(t *testing.T) {
	st := newStand(t)
	if got := st.send("charge", "c1", "s~broke", 7).order(t); got.Status != StatusDeclined ||
		deref(got.Code) != "insufficient_sender_balance" {
		t.Errorf("charge: %+v", got)
	}
	for _, op := range []string{"transfer", "refund"} {
		if got := st.send(op, op, "s~broke", 7).order(t); got.Status != StatusSucceeded || st.moved(op) != op+" 7;" {
			t.Errorf("%s: %+v", op, got)
		}
	}
}

func TestLaterOutcomes(t *testing.T) {
	for _, op := range []string{"charge", "transfer", "refund"} {
		t.Run(op, func(t *testing.T) {
			st, hasty := newStand(t), newStand(t, func(c *Config) { c.ConfirmWithin = time.Millisecond })
			st.send(op, "p1", "u~pending", 5).order(t)
			st.send(op, "r1", "u~returned", 6).order(t)
			confirmed := st.send(op, "f1", "u~confirm", 7).order(t)
			if deref(confirmed.ConfirmToken) == "" || confirmed.ExpiresAt == nil {
				t.Errorf("no token: %+v", confirmed)
			}
			hasty.send(op, "e1", "v~confirm", 8).order(t)
			if r := st.confirm("f1"); r.status != 204 {
				t.Errorf("confirm: %s", r)
			}
			for no, want := range map[string]struct{ status, moved, event string }{
				"p1": {"succeeded", op + " 5;", "order.succeeded"},
				"r1": {"returned", op + " 6;return 6;", "order.returned"},
				"f1": {"succeeded", op + " 7;", "order.succeeded"},
				"e1": {"declined", "", "order.declined"},
			} {
				st := st
				if no == "e1" {
					st = hasty
				}
				wait.Until(t, no+" notified", func() bool { return len(st.hooks.of(no)) == 1 })
				n := st.hooks.of(no)[0]
				if got := st.query(no).order(t); string(got.Status) != want.status || st.moved(no) != want.moved || n.Type != want.event ||
					string(n.Status) != want.status {
					t.Errorf("%s: %+v, moved %q, notified %+v", no, got, st.moved(no), n)
				}
			}
			if got := hasty.query("e1").order(t); deref(got.Code) != "confirmation_expired" {
				t.Errorf("expired: %+v", got)
			}
			// Repeats change nothing any more.
			if got := st.send(op, "r1", "u~returned", 6).order(t); got.Status != StatusReturned {
				t.Errorf("repeat of a returned order: %+v", got)
			}
			if r := st.confirm("f1"); r.status != 204 || st.moved("f1") != op+" 7;" {
				t.Errorf("second confirm: %s, moved %q", r, st.moved("f1"))
			}
		})
	}
}

func TestConfirmRefusals(t *testing.T) {
	st := newStand(t)
	st.send("transfer", "s1", "u", 5).order(t)
	for no, code := range map[string]string{"nobody": "order_not_found", "s1": "order_not_awaiting", "not%20ours": "order_not_found"} {
		if r := st.confirm(no); r.code() != code {
			t.Errorf("confirm %s: %s", no, r)
		}
	}
}

func TestUnfreeze(t *testing.T) {
	st := newStand(t)
	for i, account := range []string{"plain~frozen", "a/b ~frozen", "../x~frozen", "100%~frozen", "微信~frozen", "?#&~frozen"} {
		first, second := "f"+strconv.Itoa(i), "g"+strconv.Itoa(i)
		if got := st.send("transfer", first, account, 5).order(t); got.Status != StatusDeclined {
			t.Fatalf("%s: %+v", account, got)
		}
		st.unfreeze(account)
		if got := st.send("transfer", first, account, 5).order(t); got.Status != StatusDeclined {
			t.Errorf("%s: a stored refusal did not stay: %+v", account, got)
		}
		if got := st.send("transfer", second, account, 5).order(t); got.Status != StatusSucceeded {
			t.Errorf("%s: still frozen: %+v", account, got)
		}
	}
	if got := st.send("transfer", "other", "other~frozen", 5).order(t); got.Status != StatusDeclined {
		t.Errorf("another account was unfrozen too: %+v", got)
	}
}

func TestConflict(t *testing.T) {
	st := newStand(t)
	base := params{Op: "refund", OrderNo: "no1", Account: "u", Amount: 5, Currency: "CNY", Remark: "test"}
	st.sendParams(base).order(t)
	for name, change := range map[string]func(*params){
		"op":      func(p *params) { p.Op = "transfer" },
		"account": func(p *params) { p.Account = "U" },
		"space":   func(p *params) { p.Account = "u " },
		"amount":  func(p *params) { p.Amount = 6 },
		"remark":  func(p *params) { p.Remark = "" },
		"charge":  func(p *params) { p.ChargeOrderNo = "c1" },
	} {
		other := base
		change(&other)
		if r := st.sendParams(other); r.status != 409 || r.code() != "order_conflict" {
			t.Errorf("%s: %s", name, r)
		}
	}
	if st.moved("no1") != "refund 5;" || len(st.movements()) != 1 {
		t.Errorf("moved %v", st.movements())
	}
}

func TestRefundLimit(t *testing.T) {
	st := newStand(t)
	refund := func(no, account, charge string, amount int64) result {
		return st.sendParams(params{Op: "refund", OrderNo: no, Account: account, Amount: amount, Currency: "CNY", ChargeOrderNo: charge})
	}
	st.send("charge", "c1", "s", 100).order(t)
	st.send("charge", "c2", "s~declined", 100).order(t)
	for _, c := range []struct {
		no, account, charge string
		amount              int64
		want                string // status or code
	}{
		{"r1", "s", "c1", 101, "refund_exceeds_charge"},
		{"r2", "s", "none", 1, "refund_exceeds_charge"},
		{"r3", "s", "c2", 1, "refund_exceeds_charge"},
		{"r4", "s~declined", "c1", 60, "declined"}, // moves nothing, so takes nothing
		{"r5", "s", "c1", 60, "succeeded"},
		{"r5", "s", "c1", 60, "succeeded"}, // a repeat is not a second refund
		{"r6", "s~pending", "c1", 40, "processing"},
		{"r7", "s", "c1", 1, "refund_exceeds_charge"}, // what may still move counts
		{"r8", "s", "", 1000, "succeeded"},            // no charge named
	} {
		r := refund(c.no, c.account, c.charge, c.amount)
		got := r.code()
		if r.status == 200 {
			got = string(r.order(t).Status)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.no, r, c.want)
		}
	}
	if r := st.query("r1"); r.code() != "order_not_found" {
		t.Errorf("a refused refund was stored: %s", r)
	}
}

func TestConcurrentRepeats(t *testing.T) {
	st := newStand(t)
	const orders, repeats = 60, 5
	var callers sync.WaitGroup
	bodies := make([][]string, orders)
	for i := range orders {
		bodies[i] = make([]string, repeats)
		for j := range repeats {
			callers.Go(func() {
				p := params{OrderNo: "o" + strconv.Itoa(i), Account: "u" + strconv.Itoa(i), Amount: int64(i + 1), Currency: "CNY"}
				bodies[i][j] = string(st.do("POST", "/v1/transfers", sendJSON(p)).body)
			})
		}
	}
	callers.Wait()
	if got := len(st.movements()); got != orders {
		t.Errorf("%d movements of %d orders", got, orders)
	}
	for i := range bodies {
		for j := range bodies[i] {
			if bodies[i][j] != bodies[i][0] {
				t.Errorf("repeats differ: %s and %s", bodies[i][0], bodies[i][j])
			}
		}
	}
}

// TestMovementsWithoutOrder: a movement without an order is in the statement and in no sum of orders.
func TestMovementsWithoutOrder(t *testing.T) {
	st := newStand(t)
	if r := st.send("charge", "c1", "s", 100); r.status != 200 {
		t.Fatal(r)
	}
	for body, status := range map[string]int{`{"op":"fee","amount":6}`: 204, `{"op":"charge","amount":6}`: 422, `{"amount":6}`: 422,
		`{"op":"fee","amount":0}`: 422, `{"op":"fee"}`: 422, `{"op":"fee","amount":6,"order":"c1"}`: 422, `{`: 400} {
		if r := st.do("POST", "/_movements", body, withoutKey); r.status != status {
			t.Errorf("%s: %s", body, r)
		}
	}
	if all := st.movements(); len(all) != 2 || all[1].Op != "fee" || all[1].Amount != 6 || all[1].OrderNo != "" {
		t.Errorf("%+v", all)
	}
	if r := st.do("POST", "/_movements", `{"op":"fee","amount":7,"order_no":"c1"}`, withoutKey); r.status != 204 {
		t.Errorf("a fee of an order: %s", r)
	}
	if all := st.movements(); len(all) != 3 || all[2].Op != "fee" || all[2].Amount != 7 || all[2].OrderNo != "c1" {
		t.Errorf("%+v", all)
	}
	var got totals
	r := st.do("GET", "/v1/totals?prefix=c", "")
	if err := json.Unmarshal(r.body, &got); err != nil || got != (totals{Charged: 100}) {
		t.Errorf("totals %s", r)
	}
}

func TestStatementAndTotals(t *testing.T) {
	st := newStand(t)
	const id = "0123456789abcdefghij"
	other := "pz123456789abcdefghij000001"
	for i, c := range []struct {
		op, no, account string
		amount          int64
	}{{"charge", "c" + id + "000001", "s", 100}, {"transfer", "p" + id + "000001", "u", 30},
		{"transfer", "p" + id + "000101", "u~declined", 5},
		{"transfer", "p" + id + "000201", "v", 20}, {"refund", "r" + id + "000001", "s", 50}, {"transfer", other, "u", 999}} {
		if r := st.send(c.op, c.no, c.account, c.amount); r.status != 200 {
			t.Fatalf("%d: %s", i, r)
		}
	}
	back := "p" + id + "000301"
	st.send("transfer", back, "w~returned", 8).order(t)
	wait.Until(t, "returned", func() bool { return st.query(back).order(t).Status == StatusReturned })

	var got totals
	r := st.do("GET", "/v1/totals?prefix=p"+id+"&prefix=c"+id+"&prefix=r"+id+"&prefix=p"+id+"00", "")
	if err := json.Unmarshal(r.body, &got); err != nil || got != (totals{Charged: 100, Transferred: 58, Returned: 8, Refunded: 50}) {
		t.Errorf("totals %s", r)
	}
	earlier := "p" + id + "000101" // declined: nothing was returned
	for after, want := range map[string]string{"": back, earlier: back, back: ""} {
		var page returnsPage
		r := st.do("GET", "/v1/returns?limit=1&prefix=p"+id+"&after="+after, "")
		if err := json.Unmarshal(r.body, &page); err != nil || page.At == "" || page.NextAfter != nil || (want == "") != (len(page.Items) == 0) ||
			want != "" && (page.Items[0].OrderNo != want || page.Items[0].Amount != 8 || page.Items[0].Op != opReturn) {
			t.Errorf("returns after %q: %s", after, r)
		}
	}
	all := st.movements()
	first := all[0].At[:10]
	var seqs []uint64
	for after := uint64(0); ; {
		var p statementPage
		r := st.do("GET", fmt.Sprintf("/v1/statement?date=%s&limit=2&after=%d", first, after), "")
		if err := json.Unmarshal(r.body, &p); err != nil || p.Date != first {
			t.Fatalf("statement %s", r)
		}
		for _, m := range p.Items {
			seqs = append(seqs, m.Seq)
		}
		if p.NextAfter == nil {
			break
		}
		after = *p.NextAfter
	}
	want := 0
	for _, m := range all {
		if m.At[:10] == first {
			want++
		}
	}
	if len(seqs) != want {
		t.Errorf("statement has %v, want %d movements", seqs, want)
	}
	for _, date := range []string{"1999-12-31", "2199-01-01"} {
		if r := st.do("GET", "/v1/statement?date="+date, ""); !strings.Contains(string(r.body), `"items":[],"next_after":null`) {
			t.Errorf("statement of %s: %s", date, r)
		}
	}
}

func TestConfig(t *testing.T) {
	good := Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "x.db"), APIKey: "k"}
	for name, change := range map[string]func(*Config){
		"no db":         func(c *Config) { c.DBPath = "" },
		"no key":        func(c *Config) { c.APIKey = "" },
		"no listen":     func(c *Config) { c.Listen = "" },
		"no secret":     func(c *Config) { c.WebhookURL = "http://127.0.0.1:1/" },
		"bad secret":    func(c *Config) { c.WebhookSecret = "whsec_!!" },
		"negative hold": func(c *Config) { c.HoldTimeout = -1 },
	} {
		cfg := good
		change(&cfg)
		if s, err := Open(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if s != nil {
				s.Close()
			}
		}
	}
	s, err := Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
