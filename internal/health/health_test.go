package health

import (
	"strings"
	"testing"
	"time"

	"hongbao/internal/observe"
)

var now = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)

func since(age time.Duration) observe.Backlog {
	return observe.Backlog{Waiting: 3, Oldest: now.Add(-age)}
}

func payouts(status string, age time.Duration) observe.HealthSnapshot {
	return observe.HealthSnapshot{Payments: []observe.PaymentBacklog{{Kind: "payout", Status: "failed"},
		{Kind: "charge", Status: status, Backlog: since(age / 2)}, {Kind: "payout", Status: status, Backlog: since(age)}}}
}

// TestChecks: a backlog is judged by the age of its oldest item where it has a limit, and otherwise by
// whether there is an item.
func TestChecks(t *testing.T) {
	for name, c := range map[string]struct {
		v       observe.HealthSnapshot
		check   string
		verdict Verdict
		says    string
	}{
		"sending long": {payouts("sending", 6*time.Minute), "under_way", Wrong,
			"6 payments that are due or without an answer, the oldest for 6m0s."},
		"sending":            {payouts("pending", 4*time.Minute), "under_way", OK, "the oldest for 4m0s"},
		"not sent":           {payouts("pending", 2*time.Minute), "unsent", Warning, "2m0s"},
		"awaiting recipient": {payouts("awaiting_recipient", 90*time.Hour), "under_way", OK, "No payments"},
		"unknown long":       {payouts("unknown", 61*time.Minute), "unknown_outcomes", Wrong, "1h1m0s"},
		"unknown":            {payouts("unknown", time.Minute), "unknown_outcomes", OK, ""},
		"failed": {observe.HealthSnapshot{Decisions: []observe.DecisionBacklog{
			{Reason: "payout_failed", Fen: 409_281, Backlog: since(time.Minute)}, {Reason: "break", Kind: "orphan", Fen: 7}}},
			"payout_failed", Warning, "3 failed payouts, ¥4092.81 in all, the oldest for 1m0s."},
		"none returned": {observe.HealthSnapshot{}, "refund_returned", OK, "No returned refunds."},
		"holds": {observe.HealthSnapshot{HeldFen: 12_345, Holds: []observe.HoldBacklog{
			{Scope: "packet", Kind: "recovery", Backlog: since(time.Hour)}, {Scope: "payment", Kind: "staff", Backlog: since(time.Minute)},
			{Scope: "provider", Kind: "staff", Backlog: since(2 * time.Hour)}}}, "holds", Warning,
			"6 active holds of packets and payments, ¥123.45 in all, the oldest for 1h0m0s."},
		"release": {observe.HealthSnapshot{Releases: since(5 * time.Hour)}, "release", Warning, "5h0m0s"},
		"overdue": {observe.HealthSnapshot{Overdue: []observe.PacketBacklog{{Status: "open", Backlog: since(6 * time.Minute)}}},
			"overdue", Wrong, "6m0s"},
		"outbox":      {observe.HealthSnapshot{Outbox: since(61 * time.Second)}, "outbox", Wrong, "3 outbox entries"},
		"of tomorrow": {observe.HealthSnapshot{Outbox: since(-time.Hour)}, "outbox", OK, "the oldest for 0s"},
		"reconciled":  {observe.HealthSnapshot{Reconciled: now.Add(-35 * time.Hour)}, "last_run", OK, "Within the last 36h0m0s."},
		"long ago":    {observe.HealthSnapshot{Reconciled: now.Add(-37 * time.Hour)}, "last_run", Warning, "for 37h0m0s"},
		"never":       {observe.HealthSnapshot{Installed: time.Now().Add(-48 * time.Hour)}, "last_run", Warning, "No day was compared"},
		"not yet":     {observe.HealthSnapshot{Installed: time.Now().Add(-time.Hour)}, "last_run", OK, ""},
		"queue long":  {observe.HealthSnapshot{Queues: []observe.QueueBacklog{{Backlog: since(31 * time.Second)}}}, "queues", Wrong, "31s"},
		"queue":       {observe.HealthSnapshot{Queues: []observe.QueueBacklog{{Backlog: since(29 * time.Second)}}}, "queues", OK, "29s"},
		"approvals": {observe.HealthSnapshot{Decisions: []observe.DecisionBacklog{{Reason: "approval", Backlog: since(2 * time.Hour)}}},
			"approval", Warning, "2h0m0s"},
		"new approval": {observe.HealthSnapshot{Decisions: []observe.DecisionBacklog{{Reason: "approval", Backlog: since(time.Minute)}}},
			"approval", OK, ""},
		"lane shut": {observe.HealthSnapshot{Lanes: []observe.LaneBacklog{{State: "open", Backlog: observe.Backlog{Waiting: 63}},
			{State: "shut", Backlog: since(time.Hour)}}}, "gates", Wrong, "3 lanes"},
		"lanes open": {observe.HealthSnapshot{Lanes: []observe.LaneBacklog{{State: "open", Backlog: observe.Backlog{Waiting: 64}},
			{State: "shut"}}}, "gates", OK, ""},
		"grabs lost":   {observe.HealthSnapshot{LostGrabs: 14}, "lost_grabs", Warning, "14 acknowledged grabs that may be lost."},
		"restored":     {observe.HealthSnapshot{MySQLRestored: true}, "books", Wrong, "was restored from a backup and lacks later payments."},
		"not restored": {observe.HealthSnapshot{}, "books", OK, "MySQL is not older"},
		"volatile":     {observe.HealthSnapshot{}, "durable", Wrong, "Redis may lose"},
		"durable":      {observe.HealthSnapshot{Durable: true}, "durable", OK, "keeps every"},
		"imbalanced":   {observe.HealthSnapshot{Imbalanced: 2}, "ledger", Wrong, "2 recently posted packets"},
		"moved twice":  {observe.HealthSnapshot{Suspense: 300}, "suspense", Warning, "300 fen"},
		"low balance": {observe.HealthSnapshot{Troubles: []observe.TroubleBacklog{{Why: observe.TroubleLowBalance, Backlog: since(0)},
			{Why: observe.TroubleNoAnswer, Backlog: since(time.Hour)}}}, "low_balance", Warning, "3 payments"},
		"short account": {observe.HealthSnapshot{Accounts: []observe.ProviderAccount{{Payable: 7, Available: 6, Known: true}, {Payable: 8}}},
			"provider_balances", Warning, "1 provider accounts that hold less"},
		"enough": {observe.HealthSnapshot{Accounts: []observe.ProviderAccount{{Payable: 7, Available: 7, Known: true}}},
			"provider_balances", OK, "No provider accounts"},
		"rate limited": {observe.HealthSnapshot{Troubles: []observe.TroubleBacklog{
			{Why: observe.TroubleRateLimited, Backlog: since(time.Second)}}},
			"rate_limited", OK, ""},
		"provider missing": {observe.HealthSnapshot{ProviderMissing: since(time.Second)}, "provider_missing", Wrong, "3 open payments"},
		"held": {observe.HealthSnapshot{HeldProviders: map[string]time.Time{"x": now.Add(-time.Hour), "y": {}}},
			"held", Warning, "for 1h0m0s"},
		"nobody holds": {observe.HealthSnapshot{HeldProviders: map[string]time.Time{"y": {}}}, "held", OK, "Nobody"},
	} {
		c.v.FromRedis, c.v.FromMySQL, c.v.FromTemporal, c.v.FromProviders = true, true, true, true
		f := find(t, c.check).Judge(c.v, now)
		if says := f.Says(now); f.Verdict != c.verdict || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s: %q", name, f.Verdict, says)
		}
	}
}

func find(t *testing.T, name string) *Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return nil
}

// TestUnread: figures that were not read are unknown, never fine.
func TestUnread(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Checks() {
		if f := c.Judge(observe.HealthSnapshot{}, now); f.Verdict != Unknown || f.Says(now) != "Not read." {
			t.Errorf("%s: %+v", c.Name, f)
		}
		if names[c.Name] || names[c.Title] || c.Do == "" || c.What == "" || (c.Kind != Backlog) != (c.Good != "") || c.Beyond == "" {
			t.Errorf("%+v", c)
		}
		names[c.Name], names[c.Title] = true, true
	}
	if Worse(OK, Unknown) != Unknown || Worse(Wrong, Warning) != Wrong || Worse(Unknown, Warning) != Warning {
		t.Error("order of verdicts")
	}
}
