package worker

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"hongbao/internal/observe"
	"hongbao/workflows"
)

// Metrics exports the SDK's metrics that show a shortage of workers. It drops the others where
// they arise, because they would cost more than they are worth.
type Metrics struct {
	slots    map[string]*prometheus.GaugeVec
	waits    map[string]prometheus.Histogram
	failures *prometheus.CounterVec
}

// Names of the SDK, without Prometheus' suffixes, and its tags.
const (
	sdkActivityWait = "temporal_activity_schedule_to_start_latency"
	sdkTaskWait     = "temporal_workflow_task_schedule_to_start_latency"
	sdkTaskFailed   = "temporal_workflow_task_execution_failed"

	tagQueue  = "task_queue"
	tagWorker = "worker_type"
	tagReason = "failure_reason"
)

// NewMetrics returns metrics to register with a registry, and with a client by Into.
func NewMetrics() *Metrics {
	waits := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	m := &Metrics{slots: map[string]*prometheus.GaugeVec{}, waits: map[string]prometheus.Histogram{
		sdkActivityWait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: observe.MetricActivityWait,
			Help: "Time that activities waited for a worker, in seconds.", Buckets: waits}),
		sdkTaskWait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: observe.MetricTaskWait,
			Help: "Time that workflow tasks waited for a worker, in seconds.", Buckets: waits}),
	}, failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: observe.MetricTaskFailed,
		Help: "Workflow tasks that failed and are retried."}, []string{tagReason})}
	for name, help := range map[string]string{observe.MetricSlotsFree: "Free task slots of this process.",
		observe.MetricSlotsUsed: "Used task slots of this process."} {
		m.slots[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{tagQueue, tagWorker})
	}
	for _, reason := range []string{"NonDeterminismError", "WorkflowError"} {
		m.failures.WithLabelValues(reason) // alerts need a counter that exists from the start
	}
	return m
}

// Into makes a client and its workers report to m.
func (m *Metrics) Into(o *client.Options) { o.MetricsHandler = tagged{Metrics: m} }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.each(func(c prometheus.Collector) { c.Describe(out) })
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.each(func(c prometheus.Collector) { c.Collect(out) })
}

func (m *Metrics) each(do func(prometheus.Collector)) {
	for _, g := range m.slots {
		do(g)
	}
	for _, h := range m.waits {
		do(h)
	}
	do(m.failures)
}

// tagged is Metrics with the tags that are kept.
type tagged struct {
	*Metrics
	queue, worker, reason string
}

// WithTags implements client.MetricsHandler.
func (h tagged) WithTags(tags map[string]string) client.MetricsHandler {
	for tag, to := range map[string]*string{tagQueue: &h.queue, tagWorker: &h.worker, tagReason: &h.reason} {
		if value, ok := tags[tag]; ok {
			*to = value
		}
	}
	return h
}

// Counter implements client.MetricsHandler.
func (h tagged) Counter(name string) client.MetricsCounter {
	if name != sdkTaskFailed {
		return ignored{}
	}
	return counter{h.failures.WithLabelValues(h.reason)}
}

// Gauge implements client.MetricsHandler.
func (h tagged) Gauge(name string) client.MetricsGauge {
	g, ok := h.slots[name]
	if !ok {
		return ignored{}
	}
	return gauge{g.WithLabelValues(h.queue, h.worker)}
}

// Timer implements client.MetricsHandler.
func (h tagged) Timer(name string) client.MetricsTimer {
	t, ok := h.waits[name]
	if !ok {
		return ignored{}
	}
	return timer{t}
}

type (
	counter struct{ prometheus.Counter }
	gauge   struct{ prometheus.Gauge }
	timer   struct{ prometheus.Histogram }
	ignored struct{}
)

func (c counter) Inc(n int64)          { c.Add(float64(n)) }
func (g gauge) Update(v float64)       { g.Set(v) }
func (t timer) Record(d time.Duration) { t.Observe(d.Seconds()) }
func (ignored) Inc(int64)              {}
func (ignored) Update(float64)         {}
func (ignored) Record(_ time.Duration) {}

// Queues reads the backlog of Temporal's task queues.
type Queues struct {
	client    client.Client
	namespace string
}

// NewQueues returns a reader of the task queues of our workers.
func NewQueues(c client.Client, namespace string) *Queues {
	return &Queues{client: c, namespace: namespace}
}

// HealthSnapshot adds the tasks that no worker has taken yet. Error: Temporal is unavailable.
func (q *Queues) HealthSnapshot(ctx context.Context, v *observe.HealthSnapshot) error {
	queues, _, err := q.Look(ctx)
	if err != nil {
		return err
	}
	v.Queues, v.FromTemporal = queues, true
	return nil
}

// Look returns the tasks that no worker has taken yet, and the number of workers that recently
// polled for tasks of every kind. Error: Temporal is unavailable.
func (q *Queues) Look(ctx context.Context) (queues []observe.QueueBacklog, workers int, err error) {
	workers = math.MaxInt
	for _, one := range []struct {
		queue, kind string
		of          enums.TaskQueueType
	}{
		{workflows.TaskQueue, "workflow", enums.TASK_QUEUE_TYPE_WORKFLOW},
		{workflows.TaskQueue, "activity", enums.TASK_QUEUE_TYPE_ACTIVITY},
		{workflows.DrainTaskQueue, "activity", enums.TASK_QUEUE_TYPE_ACTIVITY},
	} {
		d, err := q.client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: q.namespace, TaskQueue: &taskqueue.TaskQueue{Name: one.queue}, TaskQueueType: one.of, ReportStats: true,
		})
		if err != nil {
			return nil, 0, fmt.Errorf("backlog of task queue %s: %w", one.queue, err)
		}
		queues = append(queues, observe.QueueBacklog{Queue: one.queue, Kind: one.kind, Backlog: backlogOf(d)})
		workers = min(workers, recentPollers(d))
	}
	return queues, workers, nil
}

// backlogOf returns the backlog of a task queue from a description with statistics.
func backlogOf(d *workflowservice.DescribeTaskQueueResponse) observe.Backlog {
	b := observe.Backlog{Waiting: d.GetStats().GetApproximateBacklogCount()}
	if b.Waiting > 0 {
		b.Oldest = time.Now().Add(-d.GetStats().GetApproximateBacklogAge().AsDuration())
	}
	return b
}

// recentPollers counts the recent pollers of a task queue.
func recentPollers(d *workflowservice.DescribeTaskQueueResponse) (n int) {
	for _, p := range d.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < recentPoll {
			n++
		}
	}
	return n
}
