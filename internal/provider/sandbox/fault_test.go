package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/test/wait"
)

func count(n int64) *int64 { return &n }

// TestFaultsOnSends: one rule, firing once; the caller's answer, whether money has moved, and the
// answer to a repeat once the rule is used up.
func TestFaultsOnSends(t *testing.T) {
	for _, op := range []string{"charge", "transfer", "refund"} {
		moved := op + " 7;"
		for _, c := range []struct {
			kind, account string
			heard         string // a status, a problem code, or "lost"
			moved         string
			repeat        string
		}{
			{"error_before", "u", "internal", "", "succeeded"},
			{"error_after", "u", "internal", moved, "succeeded"},
			{"error_late", "u", "internal", "", "succeeded"},
			{"timeout_before", "u", "lost", "", "succeeded"},
			{"timeout_after", "u", "lost", moved, "succeeded"},
			{"rate_limit", "u", "rate_limited", "", "succeeded"},
			{"low_balance", "u", "low_balance", "", "succeeded"},
			{"decline", "u", "declined", "", "declined"},
			{"contradict", "u", "declined", moved, "succeeded"},
			{"pending", "u", "processing", "", "processing"},
			{"pending_forever", "u", "processing", moved, "processing"},
			{"error_after", "u~declined", "internal", "", "declined"},
			{"contradict", "u~declined", "declined", "", "declined"}, // never a false success
			{"pending_forever", "u~declined", "processing", "", "processing"},
			{"not_found_yet", "u", "succeeded", moved, "succeeded"}, // spoils queries only
			{"notify_never", "u", "succeeded", moved, "succeeded"},
			{"error_after", "u~lost_request", "internal", "", "succeeded"},
			{"contradict", "u~lost_reply", "lost", moved, "declined"}, // kept for an answer that reaches the caller
		} {
			t.Run(op+" "+c.kind+" "+c.account, func(t *testing.T) {
				st := newStand(t, func(c *Config) { c.PendingAfter = time.Hour })
				st.faults(Rule{Op: op, Kind: c.kind, Rate: 1, Times: count(1)})
				hear := func(r result) string {
					if r.err != nil {
						return "lost"
					}
					if r.status == 200 {
						return string(r.order(t).Status)
					}
					return r.code()
				}
				started := time.Now()
				r := st.send(op, "no1", c.account, 7)
				if got := hear(r); got != c.heard {
					t.Fatalf("heard %q, want %q: %s", got, c.heard, r)
				}
				if strings.HasPrefix(c.kind, "timeout") && time.Since(started) < st.cfg.HoldTimeout {
					t.Error("the connection was not held")
				}
				if c.kind == "rate_limit" && r.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
				if got := st.moved("no1"); got != c.moved {
					t.Fatalf("moved %q, want %q", got, c.moved)
				}
				if c.moved == "" && !strings.Contains("decline pending pending_forever contradict", c.kind) && c.account == "u" {
					if q := st.query("no1"); q.code() != "order_not_found" {
						t.Errorf("something was stored: %s", q)
					}
				}
				if got := hear(st.send(op, "no1", c.account, 7)); got != c.repeat {
					t.Errorf("repeat heard %q, want %q", got, c.repeat)
				}
			})
		}
	}
}

// TestErrorThatLandsLater: the caller gets an error, and the order arrives afterwards, once, also
// across a restart and with repeats.
func TestErrorThatLandsLater(t *testing.T) {
	for _, op := range []string{"charge", "transfer", "refund"} {
		t.Run(op, func(t *testing.T) {
			st := newStand(t, func(c *Config) { c.PendingAfter = time.Hour })
			st.faults(Rule{Op: op, Kind: "error_late", Rate: 1})
			if r := st.send(op, "far", "u", 7); r.code() != "internal" {
				t.Fatalf("heard %s", r)
			}
			if q := st.query("far"); q.code() != "order_not_found" || st.moved("far") != "" {
				t.Errorf("it is there already: %s", q)
			}
			st.cfg.PendingAfter = 60 * time.Millisecond
			st.restart()
			for no, account := range map[string]string{"no1": "u", "no2": "u~declined", "no3": "u~returned", "no4": "u~pending"} {
				for range 2 { // both arrive, as one order
					if r := st.send(op, no, account, 7); r.status == 200 {
						continue // the first one has arrived
					} else if r.code() != "internal" {
						t.Fatalf("%s: heard %s", no, r)
					}
				}
			}
			moved := op + " 7;"
			for no, want := range map[string]string{"no1": moved, "no2": "", "no3": moved + "return 7;", "no4": moved} {
				wait.Until(t, no+" arrives", func() bool { return len(st.hooks.of(no)) > 0 && st.moved(no) == want })
				if q := st.query(no).order(t); !q.Status.final() {
					t.Errorf("%s: %s", no, q.Status)
				}
			}
			st.faults()
			for no := range map[string]string{"no1": "u"} {
				if got := st.send(op, no, "u", 7).order(t); got.Status != StatusSucceeded || st.moved(no) != moved {
					t.Errorf("a repeat heard %s, moved %q", got.Status, st.moved(no))
				}
			}
		})
	}
}

func TestFaultsOnQueries(t *testing.T) {
	for _, c := range []struct{ kind, want string }{
		{"error_before", "internal"}, {"error_after", "internal"}, {"timeout_before", "lost"}, {"timeout_after", "lost"},
		{"rate_limit", "rate_limited"}, {"not_found_yet", "order_not_found"}, {"pending", "processing"},
		{"contradict", "declined"}, {"decline", "succeeded"}, {"low_balance", "succeeded"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			st := newStand(t)
			st.send("transfer", "q1", "u", 7).order(t)
			st.faults(Rule{Op: "query", Kind: c.kind, Rate: 1, Times: count(1)})
			r := st.query("q1")
			got := r.code()
			if r.err != nil {
				got = "lost"
			} else if r.status == 200 {
				got = string(r.order(t).Status)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", r, c.want)
			}
			if got := st.query("q1").order(t); got.Status != StatusSucceeded {
				t.Errorf("the next query is spoiled too: %+v", got)
			}
		})
	}
}

func TestContradictQueries(t *testing.T) {
	st := newStand(t)
	st.send("transfer", "lost1", "u~lost_reply", 7)
	st.send("transfer", "no1", "u~declined", 7).order(t)
	st.faults(Rule{Op: "query", Kind: "contradict", Rate: 1})
	for _, c := range []struct {
		no   string
		want Status
	}{
		{"lost1", StatusSucceeded}, // nothing reported yet: the truth
		{"lost1", StatusDeclined},  // the opposite of the last report
		{"lost1", StatusSucceeded},
		{"no1", StatusSucceeded},
		{"no1", StatusDeclined},
	} {
		if got := st.query(c.no).order(t); got.Status != c.want {
			t.Errorf("%s: %s, want %s", c.no, got.Status, c.want)
		}
	}
	if len(st.movements()) != 1 {
		t.Errorf("a query moved money: %v", st.movements())
	}
}

func TestNotFoundYetOfAnOp(t *testing.T) {
	st := newStand(t)
	st.faults(Rule{Op: "transfer", Kind: "not_found_yet", Rate: 1, Times: count(2)})
	st.send("transfer", "t1", "u", 1).order(t)
	st.send("charge", "c1", "u", 1).order(t)
	st.query("c1").order(t)
	for range 2 {
		if r := st.query("t1"); r.code() != "order_not_found" {
			t.Errorf("t1: %s", r)
		}
	}
	st.query("t1").order(t)
}

func TestPendingRule(t *testing.T) {
	st := newStand(t)
	st.faults(Rule{Op: "transfer", Kind: "pending", Rate: 1})
	for no, c := range map[string]struct{ account, status, moved string }{
		"p1": {"u", "succeeded", "transfer 7;"},
		"p2": {"u~declined", "declined", ""},
		"p3": {"u~returned", "returned", "transfer 7;return 7;"},
		"p4": {"u~pending", "succeeded", "transfer 7;"},
		"p5": {"u~confirm", "awaiting_confirmation", ""},
	} {
		if got := st.send("transfer", no, c.account, 7).order(t); got.Status != StatusProcessing {
			t.Errorf("%s: %+v", no, got)
		}
		wait.Until(t, no, func() bool { return string(st.query(no).order(t).Status) == c.status })
		if got := st.moved(no); got != c.moved {
			t.Errorf("%s moved %q, want %q", no, got, c.moved)
		}
		if got := st.send("transfer", no, c.account, 7).order(t); string(got.Status) != c.status {
			t.Errorf("%s: a repeat regressed to %s", no, got.Status)
		}
	}
}

func TestPendingForever(t *testing.T) {
	st := newStand(t)
	st.faults(Rule{Op: "transfer", Kind: "pending_forever", Rate: 1, Times: count(2)})
	st.send("transfer", "f1", "u", 7).order(t)
	st.send("transfer", "f2", "u~pending", 7).order(t)
	wait.Until(t, "both moved", func() bool { return len(st.movements()) == 2 })
	st.restart()
	for _, no := range []string{"f1", "f2"} {
		if got := st.query(no).order(t); got.Status != StatusProcessing || st.moved(no) != "transfer 7;" {
			t.Errorf("%s: %+v", no, got)
		}
	}
	wait.Holds(t, 50*time.Millisecond, "no notification", func() bool { return st.hooks.triesSoFar() == 0 })
	st.faults()
	for _, no := range []string{"f1", "f2"} {
		if got := st.query(no).order(t); got.Status != StatusSucceeded {
			t.Errorf("%s after the rule: %+v", no, got)
		}
	}
}

func TestNotifyFaults(t *testing.T) {
	st := newStand(t)
	st.faults(
		Rule{Op: "transfer", Kind: "notify_never", Rate: 1, AccountPrefix: "never"},
		Rule{Op: "transfer", Kind: "notify_twice", Rate: 1, AccountPrefix: "twice"},
		Rule{Op: "transfer", Kind: "notify_late", Rate: 1, AccountPrefix: "late", DelayMS: 400},
	)
	for _, who := range []string{"never", "twice", "late", "plain"} {
		st.send("transfer", who, who+"~pending", 7).order(t)
	}
	wait.Until(t, "two notifications", func() bool { return len(st.hooks.of("twice")) == 2 })
	if two := st.hooks.of("twice"); two[0].EventID != two[1].EventID || two[0].body != two[1].body {
		t.Errorf("not the same event: %+v", two)
	}
	wait.Until(t, "late", func() bool { return len(st.hooks.of("late")) == 1 && len(st.hooks.of("plain")) == 1 })
	// From its success, to the millisecond; the time of the plain one depends on the machine.
	var n Notification
	late := st.hooks.of("late")[0]
	if err := json.Unmarshal([]byte(late.body), &n); err != nil {
		t.Fatal(err)
	}
	since, err := time.Parse(time.RFC3339Nano, n.CreatedAt)
	if by := late.at.Sub(since); err != nil || by < 400*time.Millisecond {
		t.Errorf("late by %v only, %v", by, err)
	}
	if got := st.hooks.of("never"); len(got) != 0 || st.query("never").order(t).Status != StatusSucceeded {
		t.Errorf("never: %+v", got)
	}
}

func TestRulesOrder(t *testing.T) {
	st := newStand(t)
	st.faults(
		Rule{Op: "transfer", Kind: "rate_limit", Rate: 0},
		Rule{Op: "charge", Kind: "decline", Rate: 1},
		Rule{Op: "transfer", Kind: "decline", Rate: 1, AccountPrefix: "no-"},
		Rule{Op: "transfer", Kind: "low_balance", Rate: 1, Times: count(1)},
		Rule{Op: "transfer", Kind: "error_before", Rate: 1, Times: count(0)},
	)
	if r := st.send("transfer", "o1", "u", 1); r.code() != "low_balance" {
		t.Errorf("first: %s", r)
	}
	st.send("transfer", "o1", "u", 1).order(t)
	if got := st.send("transfer", "o2", "no-u", 1).order(t); deref(got.Code) != "declined_by_rule" {
		t.Errorf("prefix: %+v", got)
	}
	st.send("refund", "o3", "no-u", 1).order(t)
	var shown faultsView
	if r := st.do("GET", "/_faults", ""); json.Unmarshal(r.body, &shown) != nil || len(shown.Rules) != 5 || *shown.Rules[3].Times != 0 {
		t.Errorf("shown %s", r)
	}
	// A rate is neither never nor always.
	st.faults(Rule{Op: "query", Kind: "rate_limit", Rate: 0.5})
	limited := 0
	for range 200 {
		if st.query("o1").status == 429 {
			limited++
		}
	}
	if limited < 50 || limited > 150 {
		t.Errorf("a rate of 0.5 fired %d of 200 times", limited)
	}
}

func TestRuleDelay(t *testing.T) {
	st := newStand(t)
	st.faults(Rule{Op: "transfer", Kind: "error_after", Rate: 1, DelayMS: 150})
	started := time.Now()
	if r := st.send("transfer", "d1", "u", 1); r.status != 500 || time.Since(started) < 150*time.Millisecond {
		t.Errorf("after %v: %s", time.Since(started), r)
	}
}

func TestBadRules(t *testing.T) {
	st := newStand(t)
	st.faults(Rule{Op: "charge", Kind: "decline", Rate: 1})
	for _, body := range []string{
		``, `{}`, `[]`, `{"rules":null}`, `{"rules":[{}]}`, `{"rules":[],"x":1}`,
		`{"rules":[{"op":"pay","kind":"decline"}]}`,
		`{"rules":[{"op":"charge","kind":"explode"}]}`,
		`{"rules":[{"op":"charge","kind":"decline","rate":1.5}]}`,
		`{"rules":[{"op":"charge","kind":"decline","rate":-0.1}]}`,
		`{"rules":[{"op":"charge","kind":"decline","rate":"1"}]}`,
		`{"rules":[{"op":"charge","kind":"decline","times":-1}]}`,
		`{"rules":[{"op":"charge","kind":"decline","times":1.5}]}`,
		`{"rules":[{"op":"charge","kind":"decline","delay_ms":-1}]}`,
		`{"rules":[{"op":"charge","kind":"decline","colour":"red"}]}`,
		`{"rules":[{"op":"charge","kind":"decline"},{"op":"charge"}]}`,
	} {
		if r := st.do("PUT", "/_faults", body); r.status != 422 && r.status != 400 {
			t.Errorf("%s: %s", body, r)
		}
	}
	if got := st.server.faults.snapshot(); len(got) != 1 || got[0].Kind != "decline" {
		t.Errorf("a bad set replaced the rules: %+v", got)
	}
	if r := st.do("PUT", "/_faults",
		`{"rules":[{"op":"charge","kind":"decline","rate":1,"times":null,"account_prefix":"","delay_ms":0}]}`); r.status != 204 {
		t.Errorf("the documented form: %s", r)
	}
}

func FuzzDecodeSend(f *testing.F) {
	f.Add([]byte(`{"order_no":"b1","account":"u","amount":1,"currency":"CNY","remark":"x"}`))
	f.Add([]byte(`{"order_no":"b1","account":"\ud800","amount":1e0}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, wrong := decodeSend("transfer", body)
		if wrong == nil && (!validOrderNo(p.OrderNo) || !validAccount(p.Account) || p.Amount < 1 || p.Amount > maxAmount) {
			t.Errorf("accepted %q as %+v", body, p)
		}
	})
}
