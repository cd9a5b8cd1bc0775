package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestClockOfTheAPI: the clock of an API process is ten minutes off, from one moment to
// the next and then right again. Who has won hears the same, grabs, creates and decisions
// go on, and no time of it comes into the books. What goes by it: keys that end, and the
// provider's notifications, which are refused as too old or too new.
func TestClockOfTheAPI(t *testing.T) {
	for name, step := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var off atomic.Int64
			h := newFixture(t, parts{change: func(c *api.Config) {
				c.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
			}})
			id, bad := h.failed()
			colleague, brief := h.colleague(), h.ending(5*time.Minute)
			returned := map[string]string{}
			for _, user := range []string{"a", "c"} {
				returned[user] = h.amountOf(id, user)
			}

			off.Store(int64(step))
			for user, amount := range returned {
				if again := h.amountOf(id, user); again != amount {
					t.Errorf("%s won %s, and is returned %s", user, amount, again)
				}
			}
			if r := h.grab(h.app, id, "new"); r.status != http.StatusCreated {
				t.Errorf("a grab: %s", r)
			}
			h.record(id)
			made := h.open(h.app, with("share_count", "2", "split", `"equal"`))
			if p := h.packet(h.app, made); p.Status != "open" {
				t.Errorf("just made, and %s", p.Status)
			}
			d := h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
			h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "yes", because), "open")
			if st := h.drive(bad); st.Status != payout.StatusCancelled {
				t.Errorf("%+v", st)
			}
			want := http.StatusNotFound // of a packet that there is not
			if step > 0 {
				want = http.StatusUnauthorized
			}
			if r := h.as(brief, "GET", "/v1/packets/"+anonymous, ""); r.status != want {
				t.Errorf("a key that ends in five minutes: %s", r)
			}
			// The library that verifies looks at the machine's clock: what was signed just
			// now is for a clock that is off what was signed earlier or later for a right one.
			if r := h.notify(bad, time.Now().Add(-step)); r.status != http.StatusUnauthorized {
				t.Errorf("a notification by the clock of the provider: %s", r)
			}
			h.noTimeOff(step)
			if step > 0 { // the one that may be is seen
				wait.Until(h.t, "when a key was used last is off",
					func() bool { return h.timesAt("api_keys", "last_used_at", time.Now().Add(step)) > 0 })
			}

			off.Store(0)
			for user, amount := range returned {
				if again := h.amountOf(id, user); again != amount {
					t.Errorf("%s won %s, and is returned %s in the end", user, amount, again)
				}
			}
			if r := h.as(brief, "GET", "/v1/packets/"+anonymous, ""); r.status != http.StatusNotFound {
				t.Errorf("a key that ends in five minutes: %s", r)
			}
			if r := h.notify(bad, time.Now()); r.status != http.StatusNoContent {
				t.Errorf("a notification: %s", r)
			}
			h.drive(bad)
			h.drive(refundOfCancel(t, bad))
			h.finish(id, packet.CloseSoldOut)
			if p := h.proof(h.app, id); !p.Balanced || p.Owed != 0 || p.Refunding != 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}

func refundOfCancel(t *testing.T, paid string) string {
	t.Helper()
	parts, err := payout.Parse(paid)
	if err != nil {
		t.Fatal(err)
	}
	return payout.ID(payout.KindRefund, parts.PacketID, parts.Number+1)
}

// amountOf returns the amount that a repeated grab of a winner returns.
func (h *fixture) amountOf(id, user string) string {
	h.t.Helper()
	r := h.grab(h.app, id, user)
	var c claimBody
	r.json(h.t, &c)
	if r.status != http.StatusOK {
		h.t.Fatalf("%s again: %s", user, r)
	}
	return fmt.Sprint(c.Amount)
}

// ending is an app whose key ends in a while, and is known.
func (h *fixture) ending(in time.Duration) owner {
	h.t.Helper()
	o := h.newOwner(access.RoleApp)
	db := h.database(h.dsn)
	if _, err := db.ExecContext(h.t.Context(), "UPDATE api_keys SET expires_at = ? WHERE id = ?", time.Now().UTC().Add(in),
		o.key.ID); err != nil {
		h.t.Fatal(err)
	}
	h.check(h.stop())
	h.start() // with the key's end from the first moment
	wait.Until(h.t, "the new key is known", func() bool { return h.as(o, "GET", "/v1/packets/"+anonymous, "").status == http.StatusNotFound })
	return o
}

// notify delivers a notification that was signed at a time.
func (h *fixture) notify(paymentID string, at time.Time) result {
	h.t.Helper()
	id := "evt_" + strconv.FormatInt(at.UnixNano(), 36)
	body := fmt.Sprintf(`{"event_id":%q,"type":"order.succeeded","order_no":"%s01","status":"succeeded","created_at":"2026-01-01T00:00:00.000Z"}`, id, paymentID)
	hook, err := standardwebhooks.NewWebhook(harness.WebhookSecret)
	if err != nil {
		h.t.Fatal(err)
	}
	signature, err := hook.Sign(id, at, []byte(body))
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do(call{method: "POST", path: "/v1/provider-notifications/sandbox", body: body,
		header: map[string]string{"Webhook-Id": id, "Webhook-Timestamp": strconv.FormatInt(at.Unix(), 10), "Webhook-Signature": signature}})
}

// noTimeOff looks at every time in the books, but for when a key was used last: none is
// off by about a step.
func (h *fixture) noTimeOff(step time.Duration) {
	h.t.Helper()
	ctx, db := h.t.Context(), h.database(h.dsn)
	rows, err := db.QueryContext(ctx, `SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = DATABASE() AND data_type IN ('datetime', 'timestamp') AND column_name <> 'last_used_at'`)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	type column struct{ table, name string }
	var all []column
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil || len(all) < 30 {
		h.t.Fatal(len(all), err)
	}
	for _, c := range all {
		if n := h.timesAt(c.table, c.name, time.Now().Add(step)); n != 0 {
			h.t.Errorf("%s.%s: %d times are off by %v", c.table, c.name, n, step)
		}
	}
}

// timesAt counts the times of a column around a moment.
func (h *fixture) timesAt(table, name string, at time.Time) (n int) {
	h.t.Helper()
	query := fmt.Sprintf("SELECT COUNT(*) FROM `%s` WHERE `%s` BETWEEN ? AND ?", table, name)
	if err := h.database(h.dsn).QueryRowContext(h.t.Context(), query, at.UTC().Add(-4*time.Minute),
		at.UTC().Add(4*time.Minute)).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}
