package worker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	sdk "go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	temporal "go.temporal.io/sdk/worker"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
)

// TestStepsNameTheirLines: what a step logs by its context carries its run, and
// its packet and payment as far as they are known.
func TestStepsNameTheirLines(t *testing.T) {
	const packetID = "0123456789abcdefghij"
	for _, tc := range []struct {
		workflow string
		args     []any
		want     string
	}{
		{"payout/" + packetID + "/u", []any{packet.Claim{PacketID: packetID, ShareIndex: 3}}, "workflow_id=payout/" + packetID + "/u packet_id=" +
			packetID + " payment_id=p" + packetID + "0003"},
		{"refund/" + packetID + "/0", []any{"r" + packetID + "000001"}, "workflow_id=refund/" + packetID + "/0 packet_id=" + packetID +
			" payment_id=r" + packetID + "0000"},
		{"packet/" + packetID, []any{packetID, "expired"}, "workflow_id=packet/" + packetID + " packet_id=" + packetID},
		{"canary/x", nil, "workflow_id=canary/x"},
	} {
		var out bytes.Buffer
		logger := slog.New(observe.NewLogHandler(slog.NewTextHandler(&out, nil)))
		logger.InfoContext(observe.WithLogAttrs(t.Context(), idsOf(tc.workflow, tc.args)...), "m")
		if !strings.HasSuffix(out.String(), " msg=m "+tc.want+"\n") {
			t.Errorf("%s: %s", tc.workflow, &out)
		}
	}
	var out bytes.Buffer
	logger := slog.New(observe.NewLogHandler(slog.NewTextHandler(&out, nil)))
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(temporal.Options{Interceptors: []sdk.WorkerInterceptor{&logFields{}}})
	step := func(ctx context.Context, _ string) error { logger.InfoContext(ctx, "deep"); return nil }
	env.RegisterActivity(step)
	if _, err := env.ExecuteActivity(step, "c"+packetID+"0000"); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "workflow_id=") || !strings.Contains(text, "payment_id=c"+packetID+"0000") {
		t.Errorf("a step logged %q", text)
	}
}
