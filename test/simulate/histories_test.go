package simulate

import (
	"reflect"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// histories makes runs find, now and then, that their history is long: they continue as a new run.
type histories struct {
	interceptor.WorkerInterceptorBase
	town *workflowModel
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (h *histories) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, town: h.town}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	town *workflowModel
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, town: i.town})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	town  *workflowModel
	asked int
}

// GetInfo implements interceptor.WorkflowOutboundInterceptor. The test environment reports a long
// history only to the outer workflow, whose information is returned here.
func (o *outbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info, t := o.Next.GetInfo(ctx), o.town
	if o.asked++; o.asked == 1 {
		t.look(func() { delete(t.renewed, info.WorkflowExecution.ID) })
	}
	calm := false
	if t.look(func() { calm = t.calm }); calm || info.WorkflowType.Name == "Town" || o.asked < 3 || !t.hit("long history", 8) {
		return info
	}
	long := t.long
	from, to := reflect.ValueOf(info).Elem(), reflect.ValueOf(&long).Elem()
	for f := range to.NumField() {
		if to.Field(f).CanSet() {
			to.Field(f).Set(from.Field(f))
		}
	}
	return &long
}

// NewContinueAsNewError implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) NewContinueAsNewError(ctx workflow.Context, wfn any, args ...any) error {
	info := o.Next.GetInfo(ctx)
	o.town.look(func() {
		o.town.reached[info.WorkflowType.Name+" goes on as a new run"]++
		o.town.note("%s continues as a new run", info.WorkflowExecution.ID)
		o.town.renewed[info.WorkflowExecution.ID] = true
	})
	return o.Next.NewContinueAsNewError(ctx, wfn, args...)
}
