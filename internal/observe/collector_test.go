package observe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hongbao/test/wait"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestCollector: figures are exported, cached for a while, and a failed source does not hide the
// others.
func TestCollector(t *testing.T) {
	reads, away := 0, false
	c := NewCollector(map[string]Source{
		"mysql": func(_ context.Context, v *HealthSnapshot) error {
			v.Repairs["packet_without_run"] = 0 // the initial value of every process
			if reads++; away {
				return errors.New("away")
			}
			old := func(n int64, age time.Duration) Backlog { return Backlog{Waiting: n, Oldest: at.Add(-age)} }
			v.Payments = []PaymentBacklog{{"payout", "unknown", old(2, time.Minute)}, {"refund", "unknown", old(1, time.Second)},
				{"payout", "failed", Backlog{}}}
			v.Overdue = []PacketBacklog{{"open", old(1, 7*time.Second)}, {"closing", old(3, 40*time.Second)}}
			v.Breaks = []KindBacklog{{"mismatch", old(4, time.Hour)}}
			v.Outbox, v.Approvals = old(5, 2*time.Second), old(6, 3*time.Second)
			v.Unreconciled, v.Reconciled, v.ReturnsSearched = old(2, time.Hour), at.Add(-23*time.Second), at.Add(-24*time.Second)
			v.Campaigns, v.CampaignDays = old(15, 16*time.Second), []KindBacklog{{"missed", old(17, time.Hour)}, {"declined", Backlog{}}}
			v.Decisions = []DecisionBacklog{{"payout_failed", "", 409_281, old(41, time.Hour)}, {"break", "mismatch", 300, old(2, time.Hour)},
				{"break", "orphan", 5, old(1, time.Hour)}, {Reason: "approval"}}
			v.Retention = []Retained{{"breaks", 18, at.Add(-19 * time.Second)}, {Table: "decisions"}}
			v.Quarantined, v.Imbalanced, v.Suspense, v.ShortBalances, v.ProviderMissing = 7, 8, 900, 31, old(32, time.Hour)
			v.HeldProviders["p"], v.HeldProviders["q"] = at.Add(-21*time.Second), time.Time{}
			v.Holds, v.HeldFen, v.Releases = []HoldBacklog{{"packet", "staff", old(22, 25*time.Second)},
				{Scope: "payment", Kind: "second_success"}}, 26, old(27, 28*time.Second)
			v.ShareConflicts, v.ShareConflictsFen = 29, 2930
			v.Repairs["packet_without_run"] = 11
			v.Lanes, v.LostGrabs = []LaneBacklog{{"open", Backlog{Waiting: 61}}, {"shut", old(2, 15*time.Second)},
				{"rebuilding", old(1, 20*time.Second)}}, 14
			v.FromMySQL = true
			return nil
		},
		"temporal": func(_ context.Context, v *HealthSnapshot) error {
			v.Queues, v.FromTemporal = []QueueBacklog{{"main", "workflow", Backlog{Waiting: 14, Oldest: at.Add(-15 * time.Second)}}}, true
			return nil
		},
		"providers": func(_ context.Context, v *HealthSnapshot) error {
			v.Accounts, v.FromProviders = []ProviderAccount{{"short", 33, 32, true}, {"enough", 34, 34, true}, {Provider: "silent", Payable: 35}}, true
			return nil
		},
		"redis": func(_ context.Context, v *HealthSnapshot) error {
			v.Durable = true
			v.Handoffs, v.LanesFenced, v.FromRedis = Backlog{Waiting: 12, Oldest: at.Add(-13 * time.Second)}, 3, true
			return nil
		},
	})
	now := at
	c.now = func() time.Time { return now }
	registry := prometheus.NewRegistry()
	for range 2 {
		if err := c.Register(registry); err != nil {
			t.Fatal(err)
		}
	}
	got := scrape(t, registry)
	for _, line := range []string{
		"hongbao_handoffs 12", "hongbao_handoff_oldest_seconds 13", "hongbao_payments_unknown 3",
		`hongbao_payments{kind="payout",status="unknown"} 2`, `hongbao_payments{kind="payout",status="failed"} 0`,
		`hongbao_payment_oldest_seconds{kind="payout",status="failed"} 0`, `hongbao_payment_oldest_seconds{kind="payout",status="unknown"} 60`,
		`hongbao_payment_oldest_seconds{kind="refund",status="unknown"} 1`,
		`hongbao_packets_overdue{status="closing"} 3`, "hongbao_refund_lag_seconds 40",
		`hongbao_breaks_open{kind="mismatch"} 4`, `hongbao_break_oldest_seconds{kind="mismatch"} 3600`,
		`hongbao_decisions_due{reason="payout_failed"} 41`, `hongbao_decisions_due_fen{reason="payout_failed"} 409281`,
		`hongbao_decisions_due{reason="break"} 3`, `hongbao_decisions_due_fen{reason="break"} 305`,
		`hongbao_decisions_due{reason="approval"} 0`,
		`hongbao_retention_removed_total{table="breaks"} 18`, `hongbao_retention_oldest_seconds{table="breaks"} 19`,
		`hongbao_retention_oldest_seconds{table="decisions"} 0`,
		"hongbao_outbox 5", "hongbao_outbox_oldest_seconds 2", "hongbao_approvals_waiting 6", "hongbao_reconciliation_failed_days 2",
		"hongbao_campaigns_late 15", "hongbao_campaign_late_seconds 16", `hongbao_campaign_days_lost{reason="missed"} 17`,
		`hongbao_campaign_days_lost{reason="declined"} 0`, "hongbao_reconciliation_age_seconds 23", "hongbao_returns_watch_age_seconds 24",
		"hongbao_approval_oldest_seconds 3", `hongbao_pool_gate{state="open"} 61`, `hongbao_pool_gate{state="shut"} 2`,
		`hongbao_pool_gate{state="rebuilding"} 1`, "hongbao_pool_gate_shut_seconds 20", "hongbao_pool_lost_grabs 14",
		"hongbao_pool_lanes_refused 3", "hongbao_quarantined 7", "hongbao_ledger_imbalanced_packets 8", "hongbao_ledger_suspense_fen 900",
		`hongbao_provider_payable_fen{provider="short"} 33`, `hongbao_provider_available_fen{provider="short"} 32`,
		`hongbao_provider_payable_fen{provider="silent"} 35`, "hongbao_provider_balances_short 1",
		"hongbao_app_balances_short 31", "hongbao_payments_provider_missing 32",
		"hongbao_redis_durable 1", `hongbao_provider_held_seconds{provider="p"} 21`, `hongbao_provider_held_seconds{provider="q"} 0`,
		`hongbao_holds_active{kind="staff",scope="packet"} 22`, `hongbao_holds_active{kind="second_success",scope="payment"} 0`,
		`hongbao_hold_oldest_seconds{kind="staff",scope="packet"} 25`, `hongbao_hold_oldest_seconds{kind="second_success",scope="payment"} 0`,
		"hongbao_holds_fen 26", "hongbao_share_conflicts_open 29", "hongbao_share_conflicts_open_fen 2930",
		"hongbao_hold_releases_waiting 27", "hongbao_hold_release_oldest_seconds 28",
		`hongbao_task_queue_backlog{kind="workflow",queue="main"} 14`, `hongbao_task_queue_oldest_seconds{kind="workflow",queue="main"} 15`,
		`hongbao_repairs_total{kind="packet_without_run"} 11`, "hongbao_vitals_age_seconds 0", `hongbao_vitals_up{source="mysql"} 1`,
		`hongbao_vitals_up{source="redis"} 1`,
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("not shown: %s", line)
		}
	}
	if strings.Contains(got, `hongbao_provider_available_fen{provider="silent"}`) {
		t.Error("an unknown balance is shown")
	}
	if scrape(t, registry); reads != 1 {
		t.Errorf("%d readings: scrapes cost readings", reads)
	}
	now, away = at.Add(snapshotFresh), true
	got = scrape(t, registry)
	if reads != 2 || strings.Contains(got, "hongbao_payments{") || strings.Contains(got, "hongbao_outbox") ||
		strings.Contains(got, "hongbao_repairs_total{") {
		t.Errorf("%d readings; shown of a source that is away: %s", reads, got)
	}
	for _, line := range []string{`hongbao_vitals_up{source="mysql"} 0`, `hongbao_vitals_up{source="redis"} 1`, "hongbao_handoffs 12"} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("not shown: %s", line)
		}
	}
}

// TestHangingSource: a source without an answer within the timeout does not delay the others.
func TestHangingSource(t *testing.T) {
	meet := make(chan struct{})
	c := NewCollector(map[string]Source{
		"mysql": func(context.Context, *HealthSnapshot) error { meet <- struct{}{}; return errors.New("hangs") },
		"redis": func(_ context.Context, v *HealthSnapshot) error {
			v.Handoffs, v.FromRedis = Backlog{Waiting: 12, Oldest: at}, true
			<-meet
			return nil
		},
	})
	failed := make(chan bool)
	go func() {
		v := c.HealthSnapshot()
		failed <- !v.FromRedis || v.Handoffs.Waiting != 12 || !c.failed["mysql"] || c.failed["redis"]
	}()
	if wait.For(t, "no source waits for the other", failed) {
		t.Errorf("read %+v, failed %v", c.snapshot, c.failed)
	}
}

// scrape reads /metrics as a monitor does.
func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return "\n" + w.Body.String()
}
