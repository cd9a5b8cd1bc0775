package api_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// timelineBody is the timeline in the response of a payment.
type timelineBody struct {
	Timeline []struct {
		At                  time.Time
		Source, Event, What string
		Args                map[string]string
	}
	Temporal struct {
		State string
		Runs  []struct {
			RunID  string `json:"run_id"`
			Status string
		}
		Pending []struct {
			Name        string
			Attempt     int
			LastFailure *string    `json:"last_failure"`
			NextAt      *time.Time `json:"next_at"`
		}
	}
}

// TestPayoutBeforeItIsBooked: a payout is found from its acknowledgment on, even before its
// hand-off is processed; a share without a claim is not.
func TestPayoutBeforeItIsBooked(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	var won []string
	for _, user := range []string{"a", "用/户"} {
		var c claimBody
		h.grab(h.app, id, user).json(t, &c)
		won = append(won, c.Payout.ID)
	}
	for i, user := range []string{"a", "用/户"} {
		var p struct {
			timelineBody
			ID, Status string
			UserID     string `json:"user_id"`
			Amount     int64
			Retry      struct {
				Possible bool
				Code     string
			}
		}
		if r := h.as(h.ops, "GET", "/v1/staff/payouts/"+won[i], ""); r.status != http.StatusOK {
			t.Fatalf("%s", r)
		} else {
			r.json(t, &p)
		}
		if p.ID != won[i] || p.UserID != user || p.Status != "pending" || p.Amount != 250 || p.Retry.Possible || p.Retry.Code != "not_retryable" {
			t.Errorf("%+v", p)
		}
		if e := p.Timeline; len(e) != 2 || e[0].Source != "redis" || e[0].What != "grab acknowledged, hand-off written" ||
			e[1].What != "not booked yet" {
			t.Errorf("%+v", e)
		}
	}
	if r := h.write(h.finance, "payouts/"+won[0]+"/ask", "k", because); r.code() != "payout_not_found" {
		t.Errorf("decision about an unbooked payout: %s", r)
	}
	for _, none := range []string{payout.ID(payout.KindPayout, id, 2), payout.ID(payout.KindPayout, id, 1_000_000),
		payout.ID(payout.KindHonour, id, 0), payout.ID(payout.KindPayout, strings.Repeat("0", 20), 0)} {
		if r := h.as(h.ops, "GET", "/v1/staff/payouts/"+none, ""); r.code() != "payout_not_found" {
			t.Errorf("%s: %s", none, r)
		}
	}
	h.record(id)
	var p timelineBody
	h.as(h.ops, "GET", "/v1/staff/payouts/"+won[1], "").json(t, &p)
	if len(p.Timeline) < 3 || p.Timeline[1].Source != "ledger" {
		t.Errorf("booked: %+v", p.Timeline)
	}
}

// TestTimeline: the timeline merges every source. Without Temporal it reports that this part is
// missing and contains the rest.
func TestTimeline(t *testing.T) {
	t.Parallel()
	var asked string
	answer := func(context.Context) (staff.WorkflowRuns, error) {
		return staff.WorkflowRuns{}, errors.New("refused")
	}
	h := newFixture(t, parts{change: func(c *api.Config) {
		c.Runs = func(ctx context.Context, id string) (staff.WorkflowRuns, error) { asked = id; return answer(ctx) }
	}})
	id, bad := h.failed()
	read := func() (body timelineBody) {
		t.Helper()
		r := h.as(h.ops, "GET", "/v1/staff/payouts/"+bad, "")
		if r.status != http.StatusOK {
			t.Fatalf("%s", r)
		}
		r.json(t, &body)
		return body
	}
	sources := func(b timelineBody) (out []string) {
		for i, e := range b.Timeline {
			if i > 0 && e.At.Before(b.Timeline[i-1].At) {
				t.Errorf("out of order: %+v", b.Timeline)
			}
			out = append(out, e.Source)
		}
		return out
	}
	books := []string{"redis", "ledger", "provider", "provider"}
	for name, a := range map[string]func(ctx context.Context) (staff.WorkflowRuns, error){
		"refuses": answer, "silent": func(ctx context.Context) (staff.WorkflowRuns, error) {
			<-ctx.Done()
			return staff.WorkflowRuns{}, ctx.Err()
		},
	} {
		answer = a
		if got := read(); got.Temporal.State != "away" || got.Temporal.Runs == nil || !slices.Equal(sources(got), books) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if want := "payout/" + id + "/用/户~frozen"; asked != want {
		t.Errorf("asked about %q, want %q", asked, want)
	}
	answer = func(context.Context) (staff.WorkflowRuns, error) { return staff.WorkflowRuns{}, nil }
	if got := read(); got.Temporal.State != "gone" || !slices.Equal(sources(got), books) {
		t.Errorf("gone: %+v", got)
	}
	d, err := h.reports().Payment(t.Context(), bad)
	h.check(err)
	h.check(h.store.RecordNotification(t.Context(), h.stack.Provider.Adapter(), "evt-1", d.OrderNo, []byte("{}")))
	now := time.Now()
	answer = func(context.Context) (staff.WorkflowRuns, error) {
		return staff.WorkflowRuns{Known: true, Runs: []staff.WorkflowRun{
			{ID: "first", Status: "failed", StartedAt: d.CreatedAt, ClosedAt: now.Add(time.Second)},
			{ID: "second", Status: "running", StartedAt: now.Add(2 * time.Second)},
		}, Pending: []staff.PendingActivity{{Name: "Settle", State: "scheduled", Attempt: 7, LastFailure: "no MySQL", NextAt: now}}}, nil
	}
	got := read()
	if want := []string{"redis", "temporal", "ledger", "provider", "provider", "notification", "outbox", "temporal",
		"temporal"}; !slices.Equal(sources(got), want) {
		t.Errorf("sources %q, want %q", sources(got), want)
	}
	var said []string
	args := map[string]map[string]string{}
	for _, e := range got.Timeline {
		if said = append(said, e.What); !slices.Contains(payout.EventCodes, payout.EventCode(e.Event)) || e.Args == nil {
			t.Errorf("%+v", e)
		}
		args[e.Event] = e.Args
	}
	for event, want := range map[payout.EventCode]map[string]string{
		payout.EventQueried:      {"order_no": d.OrderNo, "outcome": "declined", "code": d.Failure.Code},
		payout.EventNotification: {"order_no": d.OrderNo, "event_id": "evt-1"},
		payout.EventClaimBooked:  {},
		payout.EventRunEnded:     {"run_id": "first", "status": "failed"},
	} {
		if !maps.Equal(args[string(event)], want) {
			t.Errorf("%s is about %v, want %v", event, args[string(event)], want)
		}
	}
	for _, want := range []string{"grab acknowledged, hand-off written", "run first started", "notification for " + d.OrderNo +
		": event evt-1",
		"start or wake-up pending: ask, attempts 0", "run first ended: failed", "run second started"} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no %q in %q", want, said)
		}
	}
	if p := got.Temporal.Pending; len(p) != 1 || p[0].Name != "Settle" || p[0].Attempt != 7 || *p[0].LastFailure != "no MySQL" ||
		p[0].NextAt == nil {
		t.Errorf("%+v", p)
	}
	packetID, refund := h.remaindered("boss")
	var back timelineBody
	h.as(h.ops, "GET", "/v1/staff/refunds/"+refund, "").json(t, &back)
	if got := sources(back); asked != "refund/"+packetID+"/0" || back.Temporal.State != "known" || len(got) < 4 ||
		slices.Contains(got, "redis") || !slices.Contains(got, "temporal") {
		t.Errorf("asked about %q: %+v", asked, back)
	}
}
