package worker

import (
	"context"
	"log/slog"
	"strings"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/interceptor"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// logFields adds the ids of an activity's payment to every line that it logs.
type logFields struct{ sdk.WorkerInterceptorBase }

// InterceptActivity implements interceptor.WorkerInterceptor.
func (*logFields) InterceptActivity(_ context.Context, next sdk.ActivityInboundInterceptor) sdk.ActivityInboundInterceptor {
	return &fieldLogger{sdk.ActivityInboundInterceptorBase{Next: next}}
}

type fieldLogger struct {
	sdk.ActivityInboundInterceptorBase
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (s *fieldLogger) ExecuteActivity(ctx context.Context, in *sdk.ExecuteActivityInput) (any, error) {
	return s.Next.ExecuteActivity(observe.WithLogAttrs(ctx, idsOf(activity.GetInfo(ctx).WorkflowExecution.ID, in.Args)...), in)
}

// idsOf returns the ids of an activity: its run, its packet, and its payment if the first
// argument determines it.
func idsOf(workflowID string, args []any) []slog.Attr {
	ids := []slog.Attr{slog.String(observe.LogWorkflow, workflowID)}
	_, rest, _ := strings.Cut(workflowID, "/")
	if id, _, _ := strings.Cut(rest, "/"); packet.ValidID(id) {
		ids = append(ids, slog.String(observe.LogPacket, id))
	}
	if len(args) == 0 {
		return ids
	}
	switch arg := args[0].(type) {
	case packet.Claim:
		ids = append(ids, slog.String(observe.LogPayment, payout.ID(payout.KindPayout, arg.PacketID, arg.ShareIndex)))
	case string: // a payment's id, or one of its order numbers
		if parts, err := payout.Parse(arg); err == nil {
			ids = append(ids, slog.String(observe.LogPayment, parts.PaymentID))
		}
	}
	return ids
}
