package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/observe"
	"hongbao/internal/pause"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/internal/reconcile/watch"
	"hongbao/internal/relay"
	"hongbao/workflows"
)

// Config configures a worker process. cmd fills it.
type Config struct {
	Client     client.Client
	Packets    *activities.Packets
	Payments   *activities.Payments
	Starter    *Starter
	Handoffs   relay.Handoffs
	Quarantine relay.Quarantine
	Outbox     Outbox
	Watch      watch.Store
	Live       watch.Pools
	Holds      Holds           // nil: payments of a released provider resume by their timers
	Reconcile  *Reconcile      // nil: this process runs no reconciliations
	Returns    ReturnStore     // nil: only notifications and reconciliations find returns
	Retention  *Retention      // nil: this process removes no old rows
	Campaigns  *Campaigns      // nil: this process runs no campaigns
	Heartbeat  *Heartbeat      // nil: a restore of MySQL is not detected
	Rebuild    *rebuild.Config // nil: this process rebuilds no lanes
	Lanes      int
	Logger     *slog.Logger
	// ReturnsEvery is the interval of the search for returned payments; 0: 5 s.
	ReturnsEvery time.Duration
	// Refused returns why Temporal rejects this process, and nil while Temporal may only be
	// unavailable, which the worker waits for. nil: the worker waits for everything.
	Refused func(context.Context) error
	// Tune, if set, changes the Options of the main worker, for measurements only.
	Tune func(*sdk.Options)
}

// Worker is one worker process: workflows, relay, dispatcher, watch, canary.
type Worker struct {
	cfg   Config
	relay *relay.Relay
	watch *watch.Watch
	// rebuilder is nil when lanes are rebuilt by hand.
	rebuilder *rebuild.Rebuilder
	ready     atomic.Bool
	handed    atomic.Int64 // activities of the main task queue, without canaries
	gone      chan error   // the fatal error of the pollers
}

// New prepares a worker; Run does the work.
func New(cfg Config) *Worker {
	watcher := watch.New(watch.Config{Store: cfg.Watch, Pools: cfg.Live, Backlog: cfg.Handoffs, Runs: cfg.Starter, Payments: cfg.Payments,
		Lanes: cfg.Lanes, Logger: cfg.Logger})
	handoffs := relay.New(relay.Config{Handoffs: cfg.Handoffs, Quarantine: cfg.Quarantine, Starter: cfg.Starter, Stale: cfg.Payments,
		Lanes: cfg.Lanes, Logger: cfg.Logger})
	w := &Worker{cfg: cfg, relay: handoffs, watch: watcher, gone: make(chan error, 1)}
	if cfg.Rebuild != nil {
		lanes := *cfg.Rebuild
		lanes.Underway = w.relay.Underway
		w.rebuilder = rebuild.New(lanes)
	}
	return w
}

// Ready reports whether the canary completed twice in a row in time, or other
// activities arrived in that time. Only then does this process serve its task queue.
func (w *Worker) Ready() bool { return w.ready.Load() }

// stuckDesc describes the metric that a Worker itself collects.
var stuckDesc = prometheus.NewDesc(observe.MetricHandoffsStuck,
	"Hand-offs that fail to be relayed or quarantined by this process while others succeed.", nil, nil)

// Describe implements prometheus.Collector.
func (w *Worker) Describe(out chan<- *prometheus.Desc) { out <- stuckDesc }

// Collect implements prometheus.Collector.
func (w *Worker) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(stuckDesc, prometheus.GaugeValue, float64(w.relay.Stuck()))
}

// Run works until ctx ends, then lets running activities end. Temporal, Redis and MySQL may be
// unavailable in between. The error is nil after a clean stop, and the cause if Temporal rejected
// the pollers permanently.
func (w *Worker) Run(ctx context.Context) error {
	stop, err := w.startWorkers(ctx)
	if err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.relay.Run(gctx) })
	group.Go(func() error { return w.dispatch(gctx) })
	group.Go(func() error { return w.watch.Run(gctx) })
	group.Go(func() error { return w.canary(gctx) })
	group.Go(func() error { return w.wakeDeferred(gctx) })
	group.Go(func() error { return w.reconcile(gctx) })
	group.Go(func() error { return w.repeatReconciliations(gctx) })
	group.Go(func() error { return w.closeDays(gctx) })
	group.Go(func() error { return w.campaigns(gctx) })
	group.Go(func() error { return w.watchReturns(gctx) })
	group.Go(func() error { return w.removeOld(gctx) })
	if w.cfg.Heartbeat != nil {
		group.Go(func() error { return w.cfg.Heartbeat.Run(gctx) })
	}
	if w.rebuilder != nil {
		group.Go(func() error { return w.rebuilder.Run(gctx) })
	}
	group.Go(func() error {
		select {
		case <-gctx.Done():
			return nil
		case err := <-w.gone:
			return fmt.Errorf("temporal refused this worker: %w", err)
		}
	})
	err = group.Wait()
	w.ready.Store(false)
	stop()
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err()) || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// pollers returns poller counts for a small machine. Fixed pollers can all sit on the sticky
// queue after a stale backlog hint while the normal queue waits a minute.
func pollers() sdk.PollerBehavior {
	return sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 4, MinimumNumberOfPollers: 2,
		MaximumNumberOfPollers: 8})
}

// startWorkers starts the workers of both task queues. It waits for Temporal without limit,
// unless Temporal rejects this process.
func (w *Worker) startWorkers(ctx context.Context) (stop func(), err error) {
	for {
		main, drain := w.newMain(), w.newDrain()
		err := main.Start()
		if err == nil {
			if err = drain.Start(); err == nil {
				return func() { drain.Stop(); main.Stop() }, nil
			}
			main.Stop()
		}
		if w.cfg.Refused != nil {
			if refused := w.cfg.Refused(ctx); refused != nil {
				return nil, fmt.Errorf("start workers: %w", refused)
			}
		}
		w.cfg.Logger.WarnContext(ctx, "Temporal is not ready; retrying.", slog.Any("error", err))
		if !pause.For(ctx, 500*time.Millisecond) {
			return nil, fmt.Errorf("start workers: %w", context.Cause(ctx))
		}
	}
}

// Options returns the options of the main worker: polling and concurrency.
func Options() sdk.Options {
	return sdk.Options{
		WorkflowTaskPollerBehavior:             pollers(),
		ActivityTaskPollerBehavior:             pollers(),
		MaxConcurrentActivityExecutionSize:     200,
		MaxConcurrentWorkflowTaskExecutionSize: 100,
		// How long the runs of a dead worker wait for it before another worker takes them.
		StickyScheduleToStartTimeout: 5 * time.Second,
		WorkerStopTimeout:            workflows.WorkerStopTimeout,
		// A workflow that gets no CPU for the default of a second is not stuck, and the SDK would
		// report a deadlock while it runs. After this time Temporal gives the task to another
		// worker.
		DeadlockDetectionTimeout: workflows.TaskTimeout,
		// The SDK would delay heartbeats for most of the heartbeat timeout. A server that is slow
		// for a second would then time out a live activity.
		MaxHeartbeatThrottleInterval: activities.HeartbeatEvery,
		Interceptors:                 []interceptor.WorkerInterceptor{&logFields{}},
	}
}

func (w *Worker) newMain() sdk.Worker {
	options := Options()
	if w.cfg.Tune != nil {
		w.cfg.Tune(&options)
	}
	options.OnFatalError = w.fatal
	options.Interceptors = append(options.Interceptors, &stepCounter{handed: &w.handed})
	main := sdk.New(w.cfg.Client, workflows.TaskQueue, options)
	main.RegisterWorkflowWithOptions(workflows.Packet, workflow.RegisterOptions{Name: workflows.PacketWorkflow})
	main.RegisterWorkflowWithOptions(workflows.Payout, workflow.RegisterOptions{Name: workflows.PayoutWorkflow})
	main.RegisterWorkflowWithOptions(workflows.Refund, workflow.RegisterOptions{Name: workflows.RefundWorkflow})
	main.RegisterWorkflowWithOptions(workflows.Charge, workflow.RegisterOptions{Name: workflows.ChargeWorkflow})
	main.RegisterWorkflowWithOptions(workflows.Canary, workflow.RegisterOptions{Name: workflows.CanaryWorkflow})
	w.cfg.Reconcile.registerWorkflows(main)
	w.cfg.Campaigns.register(main)
	main.RegisterActivity(w.cfg.Packets)
	main.RegisterActivity(w.cfg.Payments)
	main.RegisterActivity(&activities.CombinedSteps{Packets: w.cfg.Packets, Payments: w.cfg.Payments})
	main.RegisterActivityWithOptions(echo, activity.RegisterOptions{Name: workflows.CanaryActivity})
	return main
}

func (w *Worker) newDrain() sdk.Worker {
	drain := sdk.New(w.cfg.Client, workflows.DrainTaskQueue, sdk.Options{
		DisableWorkflowWorker:              true,
		ActivityTaskPollerBehavior:         pollers(),
		MaxConcurrentActivityExecutionSize: 200,
		WorkerStopTimeout:                  time.Second,
		MaxHeartbeatThrottleInterval:       activities.HeartbeatEvery,
		OnFatalError:                       w.fatal,
		Interceptors:                       []interceptor.WorkerInterceptor{&logFields{}},
	})
	w.cfg.Reconcile.registerSteps(drain)
	drain.RegisterActivityWithOptions(w.cfg.Packets.Drain, activity.RegisterOptions{Name: "Drain"})
	return drain
}

// fatal stores that a worker's pollers gave up, for example because the namespace is gone. The
// process must not stay up without them: Run ends, and the supervisor restarts it.
func (w *Worker) fatal(err error) {
	w.ready.Store(false)
	select {
	case w.gone <- err:
	default: // the first error is enough
	}
}

func echo(_ context.Context, say string) (string, error) { return say, nil }
