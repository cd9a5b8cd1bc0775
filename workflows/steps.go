package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
)

// The structs are nil: only their method names are used.
var (
	packets  *activities.Packets
	payments *activities.Payments
	combined *activities.CombinedSteps
)

// retryForever is the retry policy of activities on our own stores.
func retryForever() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second}
}

// storeStep returns options for a short, repeatable activity on our own stores.
func storeStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: storeTimeout, RetryPolicy: retryForever(), Summary: summary(what),
	})
}

// bulkStep returns options for a long, heartbeating, repeatable activity.
func bulkStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, bulkOptions(what))
}

func bulkOptions(what string) workflow.ActivityOptions {
	return workflow.ActivityOptions{StartToCloseTimeout: bulkTimeout, HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(),
		Summary: summary(what)}
}

// sendStep returns options for a whole send. It is repeatable, because a repeat finds the note in
// the row and queries (rule R3).
func sendStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: sendTimeout, HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: summary(what),
	})
}

// local runs a local activity within the workflow task, in one attempt; later steps are
// activities of their own.
func local[T any](ctx workflow.Context, what string, activity any, args ...any) (T, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: payNowTimeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: summary(what),
	})
	var out T
	err := workflow.ExecuteLocalActivity(ctx, activity, args...).Get(ctx, &out)
	return out, err
}

// queryStep returns options for a query of the provider.
func queryStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: queryTimeout, RetryPolicy: retryForever(), Summary: summary(what),
	})
}

// step runs one activity and returns its result.
func step[T any](ctx workflow.Context, activity any, args ...any) (T, error) {
	var out T
	err := workflow.ExecuteActivity(ctx, activity, args...).Get(ctx, &out)
	return out, err
}

// takeSignals drains the signals that an ending run has not handled. Nothing is lost. The row or
// the pool has what is to be done, and the sender repeats its signal until it is done (rule R3).
func takeSignals(ctx workflow.Context) {
	for _, name := range []string{SignalClose, SignalWake} {
		c := workflow.GetSignalChannel(ctx, name)
		for c.ReceiveAsync(nil) {
		}
	}
}

// sleepOrWake waits for d or for a wake signal, whichever comes first, and reports whether it was
// woken. It drains further wake signals.
func sleepOrWake(ctx workflow.Context, d time.Duration, what string) (bool, error) {
	wake := workflow.GetSignalChannel(ctx, SignalWake)
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, d, workflow.TimerOptions{Summary: summary(what)})
	woken := false
	var failed error
	workflow.NewSelector(ctx).
		AddFuture(timer, func(f workflow.Future) { failed = f.Get(timerCtx, nil) }).
		AddReceive(wake, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			woken = true
			for c.ReceiveAsync(nil) {
			}
		}).
		Select(ctx)
	return woken, failed
}
