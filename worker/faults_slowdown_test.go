package worker_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/payout"
	"hongbao/workflows"
)

// slowFactor is how much longer than in production a step of the fault table may take. A step
// that times out on a busy machine would add a call that the row does not expect.
const slowFactor = 10

// patiently lets a client's runs, and the workers made of it, wait longer for their steps.
func patiently(o *client.Options) { o.Interceptors = append(o.Interceptors, &patient{}) }

type patient struct{ interceptor.InterceptorBase }

// InterceptClient implements interceptor.ClientInterceptor.
func (*patient) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &patientStarts{interceptor.ClientOutboundInterceptorBase{Next: next}}
}

type patientStarts struct {
	interceptor.ClientOutboundInterceptorBase
}

// ExecuteWorkflow implements interceptor.ClientOutboundInterceptor.
func (s *patientStarts) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	in.Options.WorkflowTaskTimeout = slowFactor * workflows.TaskTimeout
	return s.Next.ExecuteWorkflow(ctx, in)
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (*patient) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &patientRun{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type patientRun struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (r *patientRun) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return r.Next.Init(&patientSteps{interceptor.WorkflowOutboundInterceptorBase{Next: next}})
}

type patientSteps struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (s *patientSteps) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o := workflow.GetActivityOptions(ctx)
	o.StartToCloseTimeout *= slowFactor
	o.HeartbeatTimeout *= slowFactor
	return s.Next.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, args...)
}

// ExecuteLocalActivity implements interceptor.WorkflowOutboundInterceptor.
func (s *patientSteps) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o := workflow.GetLocalActivityOptions(ctx)
	o.ScheduleToCloseTimeout *= slowFactor
	return s.Next.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, o), name, args...)
}

// tunePatiently is for workers: one that does not get the processor is not stuck.
func tunePatiently(o *sdk.Options) { o.DeadlockDetectionTimeout = slowFactor * workflows.TaskTimeout }

// slowClock returns a clock that runs slowFactor times slower: it measures the time between the
// note of a send and its call.
func slowClock() func() time.Time {
	start := time.Now()
	return func() time.Time { return start.Add(time.Since(start) / slowFactor) }
}

// unhurried is a provider whose sends only its adapter cuts off, after providerTimeout.
type unhurried struct{ activities.Provider }

func (u unhurried) Send(ctx context.Context, o payout.Order) payout.Observation {
	return u.Provider.Send(context.WithoutCancel(ctx), o)
}

// CloseOrder implements payout.OrderCloser.
func (u unhurried) CloseOrder(ctx context.Context, op payout.Op, orderNo string) error {
	return u.Provider.(payout.OrderCloser).CloseOrder(ctx, op, orderNo)
}
