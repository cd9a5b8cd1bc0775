package worker_test

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/worker"
)

// queued makes every run wait longer than payout.LeaveWithin before a step that calls the
// provider, as behind a backlog. Nothing runs within a workflow task.
type queued struct {
	interceptor.WorkerInterceptorBase
}

func (*queued) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &queuedRun{}
	in.Next = next
	return in
}

type queuedRun struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (q *queuedRun) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	steps := &queuedSteps{}
	steps.Next = outbound
	return q.Next.Init(steps)
}

type queuedSteps struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (q *queuedSteps) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == "Send" {
		if err := workflow.Sleep(ctx, payout.LeaveWithin+100*time.Millisecond); err != nil {
			f, set := workflow.NewFuture(ctx)
			set.SetError(err)
			return f
		}
	}
	return q.Next.ExecuteActivity(ctx, name, args...)
}

func (q *queuedSteps) ExecuteLocalActivity(ctx workflow.Context, _ string, _ ...any) workflow.Future {
	f, set := workflow.NewFuture(ctx)
	set.SetError(errors.New("not within a workflow task"))
	return f
}

// TestR3_QueuesBetweenStepsCostNoSend: where tasks queue for longer than a send may wait after
// its note, every send leaves at its first note. Note and call are one step.
func TestR3_QueuesBetweenStepsCostNoSend(t *testing.T) {
	t.Parallel()
	server, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns, func(_ *rig, cfg *worker.Config) {
		cfg.Tune = func(o *sdk.Options) { o.Interceptors = append(o.Interceptors, &queued{}) }
	})
	p := r.create(t, spec{total: 1000, count: 5}) // it does not expire while its steps are queued
	r.awaitOpen(t, p.ID)
	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	for _, id := range []string{payout.ID(payout.KindCharge, p.ID, 0), payout.ID(payout.KindRefund, p.ID, 0)} {
		d := must(r.reports().Payment(t.Context(), id))(t)
		if d.Status != payout.StatusPaid || len(d.Attempts) != 1 || d.Attempts[0].Sends != 1 || d.Attempts[0].Queries != 0 {
			t.Errorf("%s is %s, attempts %+v", id, d.Status, d.Attempts)
		}
	}
	r.balanced(t, p)
}
