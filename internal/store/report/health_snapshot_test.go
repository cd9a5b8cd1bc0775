package report

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// TestHealthStatusSince: a payment's age is that of its status. A payment of last week that was just
// retried is not stuck; one that just failed has not waited for finance.
func TestHealthStatusSince(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	age := func(status payout.Status) time.Duration {
		t.Helper()
		v := storetest.NewSnapshot()
		must(t, NewHealthReader(s.Source).Read(t.Context(), v))
		now, err := s.Clock(t.Context())
		must(t, err)
		found := time.Duration(-1)
		for _, p := range v.Payments {
			switch {
			case p.Kind != "payout" || p.Waiting == 0:
			case p.Status != string(status):
				t.Fatalf("the payout is %s, not %s", p.Status, status)
			default:
				found = now.Sub(p.Oldest).Round(time.Second)
			}
		}
		return found
	}
	expect := func(status payout.Status, want time.Duration) {
		t.Helper()
		if got := age(status); got < want || got > want+5*time.Second {
			t.Errorf("%s for %v, want %v", status, got, want)
		}
	}
	c.Pass(time.Hour)
	expect(payout.StatusPending, time.Hour)
	begin(t, s, id)
	c.Pass(time.Minute)
	expect(payout.StatusSending, time.Minute)
	for _, source := range []payout.Source{payout.SourceSend, payout.SourceQuery} {
		settle(t, s, source, payout.OrderNo(id, 1), payout.ObsDeclined)
	}
	c.Pass(2 * time.Minute)
	expect(payout.StatusFailed, 2*time.Minute)
	c.Pass(24 * time.Hour)
	decide(t, s, id)
	expect(payout.StatusPending, 0)
	c.Pass(10 * time.Minute)
	expect(payout.StatusPending, 10*time.Minute)
}

// TestHealthNotAccepted: what the provider has refused or not answered is reported by reason, from
// its first send until it is accepted; a send in flight is not.
func TestHealthNotAccepted(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	notAccepted := func() map[observe.Trouble]observe.Backlog {
		t.Helper()
		v := storetest.NewSnapshot()
		must(t, NewHealthReader(s.Source).Read(t.Context(), v))
		out := map[observe.Trouble]observe.Backlog{}
		for _, b := range v.Troubles {
			if b.Provider != "sandbox" {
				t.Errorf("of %q", b.Provider)
			}
			out[b.Why] = out[b.Why].Add(b.Backlog)
		}
		return out
	}
	expect := func(want map[observe.Trouble]int64) {
		t.Helper()
		got := map[observe.Trouble]int64{}
		for why, b := range notAccepted() {
			got[why] = b.Waiting
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	refuse := func(id string, kind payout.ObservationKind, code string) {
		t.Helper()
		begin(t, s, id)
		o := observation(payout.SourceSend, payout.OrderNo(id, 1), kind)
		o.Code = code
		_, err := s.Settle(t.Context(), o, o.OrderNo)
		must(t, err)
	}
	low, rate, lost, silent := owing(t, s), owing(t, s), owing(t, s), owing(t, s)
	expect(map[observe.Trouble]int64{})
	refuse(low, payout.ObsRetryAfter, payout.CodeLowBalance)
	c.Pass(3 * time.Minute)
	refuse(rate, payout.ObsRetryAfter, payout.CodeRateLimited)
	refuse(lost, payout.ObsNotSent, "connection")
	refuse(silent, payout.ObsNoAnswer, "timeout")
	expect(map[observe.Trouble]int64{observe.TroubleLowBalance: 1, observe.TroubleRateLimited: 1, observe.TroubleNoAnswer: 2})
	now, err := s.Clock(t.Context())
	must(t, err)
	if since := now.Sub(notAccepted()[observe.TroubleLowBalance].Oldest); since < 3*time.Minute || since > 3*time.Minute+5*time.Second {
		t.Errorf("low for %v", since)
	}
	settle(t, s, payout.SourceQuery, payout.OrderNo(silent, 1), payout.ObsPending)
	expect(map[observe.Trouble]int64{observe.TroubleLowBalance: 1, observe.TroubleRateLimited: 1, observe.TroubleNoAnswer: 1})
	c.Pass(10 * time.Minute)
	begin(t, s, low) // in flight once more
	pay(t, s, rate)
	pay(t, s, lost)
	expect(map[observe.Trouble]int64{})
}

// TestHealthStatusSinceOfMany: payments beyond the limit count from their creation.
func TestHealthStatusSinceOfMany(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := owing(t, s)
	made := storetest.Query[time.Time](t, s, "SELECT created_at FROM payments WHERE id = ?", id)
	copies := func(from, to int, minutes int) {
		tamper(t, s.db.SQL,
			fmt.Sprintf(`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark,
			provider, status, decided_at, created_at, updated_at)
			SELECT CONCAT('p', LPAD(n.seq, 24, '0')), kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider,
			status, created_at, created_at - INTERVAL %d MINUTE, updated_at
			FROM payments, seq_%d_to_%d n WHERE id = '%s'`, minutes, from, to, id))
	}
	oldest := func() time.Time {
		v := &observe.HealthSnapshot{}
		must(t, NewHealthReader(s.Source).payments(t.Context(), v))
		for _, p := range v.Payments {
			if p.Kind == "payout" && p.Status == "pending" {
				return p.Oldest
			}
		}
		return time.Time{}
	}
	copies(1, healthOldest-2, 60) // decided just now; with the first one fewer than the limit
	if got := oldest(); !got.Equal(made) {
		t.Errorf("since %v, want %v", got, made)
	}
	copies(healthOldest-1, healthOldest+1, 30)
	if got, want := oldest(), made.Add(-30*time.Minute); !got.Equal(want) {
		t.Errorf("of more: since %v, want %v", got, want)
	}
	rows, err := s.db.SQL.QueryContext(t.Context(), "EXPLAIN FORMAT=JSON "+strings.NewReplacer("p.kind = ?", "p.kind = 'p'", "p.status = ?",
		"p.status = 'pending'", "LIMIT ?", "LIMIT 5000").Replace(selectSince))
	must(t, err)
	defer rows.Close()
	var plan string
	for rows.Next() {
		must(t, rows.Scan(&plan))
	}
	must(t, rows.Err())
	if !strings.Contains(plan, `"key": "payments_status"`) || strings.Contains(plan, "filesort") || strings.Contains(plan, "temporary") {
		t.Errorf("%s", plan)
	}
}

// TestHealthProviderMissing: open payments of a provider that is not configured are counted, of every status.
func TestHealthProviderMissing(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	configured := storetest.Query[string](t, s, "SELECT MIN(provider) FROM payments WHERE id = ?", owing(t, s))
	sent := owing(t, s)
	begin(t, s, sent)
	for _, c := range []struct {
		providers []string
		want      int64
	}{{nil, 0}, {[]string{"other", configured}, 0}, {[]string{"other"}, 2}} {
		r, v := NewHealthReader(s.Source), storetest.NewSnapshot()
		r.Providers = c.providers
		if must(t, r.Read(t.Context(), v)); v.ProviderMissing.Waiting != c.want || v.ProviderMissing.Oldest.IsZero() != (c.want == 0) {
			t.Errorf("of %q, %q are configured: %+v, want %d", configured, c.providers, v.ProviderMissing, c.want)
		}
	}
}
