package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/wire"
	"hongbao/worker"
	"hongbao/workflows"
)

// TestTimelineOnRealParts: what Redis, Temporal, MySQL and the provider record of one
// payout is one timeline in the answer of the API and at the shell; the run in the
// Temporal UI leads back to the console.
func TestTimelineOnRealParts(t *testing.T) {
	const desk = "https://desk.example"
	p := newPlatform(t, "HONGBAO_CONSOLE_URL="+desk)
	packet := p.packet(t, "timeline", 2)
	status, text := p.call(t, http.MethodPost, "http://"+p.public+"/v1/packets/"+packet+"/grabs", p.keys.App,
		map[string]string{"user_id": "o'neil ~x~frozen"}, nil)
	var claim struct{ Payout struct{ ID string } }
	if status != http.StatusCreated || json.Unmarshal([]byte(text), &claim) != nil {
		t.Fatalf("%d %s", status, text)
	}
	id := claim.Payout.ID
	var found wire.PayoutDetail
	wait.Until(t, "the run has failed, and Temporal says so", func() bool {
		_, text = p.call(t, http.MethodGet, "http://"+p.staff+"/v1/staff/payouts/"+id, p.keys.Auditor, nil, nil)
		if json.Unmarshal([]byte(text), &found) != nil || found.Status != wire.PayoutFailed {
			return false
		}
		return len(found.Temporal.Runs) == 1 && found.Temporal.Runs[0].Status == "failed"
	})
	var sources []string
	for _, e := range found.Timeline {
		sources = append(sources, e.Source)
	}
	first := slices.Index(sources, "temporal")
	if found.Temporal.State != "known" || sources[0] != "redis" || first < 1 || first > slices.Index(sources, "provider") ||
		sources[len(sources)-1] != "temporal" || !slices.Contains(sources, "ledger") {
		t.Errorf("%+v in %+v", found.Timeline, found.Temporal)
	}
	shell := []string{"HONGBAO_STAFF_URL=http://" + p.staff, "HONGBAO_FINANCE_KEY=" + p.keys.Finance}
	code, out, errs := keysRig{t: t}.run(shell, "payouts", "show", id)
	if code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	contains(t, out, "redis", "grab acknowledged, hand-off written: seq ", "temporal", "run "+found.Temporal.Runs[0].RunID+" started",
		"ended: failed")

	temporal, err := worker.Dial(p.temporal, stacktest.Namespace, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	for workflow, page := range map[string]string{workflows.PayoutID(packet, "o'neil ~x~frozen"): "payouts/" + id,
		workflows.PacketID(packet): "packets/" + packet} {
		run, err := temporal.DescribeWorkflowExecution(t.Context(), workflow, "")
		if err != nil {
			t.Fatal(err)
		}
		var details string
		if err := converter.GetDefaultDataConverter().FromPayload(run.GetExecutionConfig().GetUserMetadata().GetDetails(),
			&details); err != nil || !strings.Contains(details, "["+page+"]("+desk+"/"+page+")") {
			t.Errorf("%s: %v, %q", workflow, err, details)
		}
	}
}

// TestOverdueMatchesTheAlert: the lists of late refunds and overdue packets have the
// patience of the alert that sends people there.
func TestOverdueMatchesTheAlert(t *testing.T) {
	if want := fmt.Sprintf("max(hongbao_refund_lag_seconds) > %d'", int64(payout.RefundLateAfter/time.Second)); !strings.Contains(
		readRepo(t, "deploy/prometheus/alerts.yml"), want) {
		t.Errorf("no alert waits for %q", want)
	}
}
