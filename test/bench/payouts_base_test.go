package bench

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/worker"
)

// The baselines of payouts. The first is the obvious implementation: a workflow of three regular activities, persist, pay and settle,
// with the default retries. The order number is the provider's idempotency key, so a retry of pay moves no money twice. The second is
// the same with local activities, which cost Temporal one workflow task.

const (
	baseQueue   = "baseline"
	baseStarts  = 32 // in flight; as many as our relay has
	basePayout  = "BaselinePayout"
	localPayout = "BaselineLocalPayout"
)

var baseTables = []string{
	`CREATE TABLE baseline_payouts (order_no VARBINARY(32) PRIMARY KEY, account VARBINARY(64) NOT NULL, amount BIGINT NOT NULL,
		status VARCHAR(20) NOT NULL, provider_ref VARCHAR(64) NULL, created_at DATETIME(3) NOT NULL,
		settled_at DATETIME(3) NULL) ENGINE = InnoDB`,
	`CREATE TABLE baseline_ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, order_no VARBINARY(32) NOT NULL UNIQUE, debit VARCHAR(20) NOT NULL,
		credit VARCHAR(20) NOT NULL, amount BIGINT NOT NULL, created_at DATETIME(3) NOT NULL) ENGINE = InnoDB`,
}

// baseOrder is one payout of the baseline.
type baseOrder struct {
	OrderNo string
	Account string
	Amount  money.Fen
}

// baseWorkflow persists, pays and settles.
func baseWorkflow(ctx workflow.Context, o baseOrder) error {
	var b *regulars
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(ctx, b.Persist, o).Get(ctx, nil); err != nil {
		return err
	}
	var ref string
	if err := workflow.ExecuteActivity(ctx, b.Pay, o).Get(ctx, &ref); err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, b.Settle, o, ref).Get(ctx, nil)
}

// localWorkflow is baseWorkflow with local activities.
func localWorkflow(ctx workflow.Context, o baseOrder) error {
	var b *regulars
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteLocalActivity(ctx, b.Persist, o).Get(ctx, nil); err != nil {
		return err
	}
	var ref string
	if err := workflow.ExecuteLocalActivity(ctx, b.Pay, o).Get(ctx, &ref); err != nil {
		return err
	}
	return workflow.ExecuteLocalActivity(ctx, b.Settle, o, ref).Get(ctx, nil)
}

// regulars has the activities.
type regulars struct {
	db  *sql.DB
	pay *provider.Sandbox
}

// Persist writes the row before anything is sent.
func (b *regulars) Persist(ctx context.Context, o baseOrder) error {
	_, err := b.db.ExecContext(ctx, "INSERT IGNORE INTO baseline_payouts (order_no, account, amount, status, created_at) VALUES (?, ?, ?, "+
		"'sending', ?)",
		o.OrderNo, o.Account, int64(o.Amount), time.Now().UTC())
	return err
}

// Pay sends the order and returns the provider's reference.
func (b *regulars) Pay(ctx context.Context, o baseOrder) (string, error) {
	raw, err := b.pay.EncodeRequest(payout.Instruction{Op: payout.OpTransfer, OrderNo: o.OrderNo, Account: o.Account, Amount: o.Amount,
		Currency: "CNY", Remark: "baseline"})
	if err != nil {
		return "", err
	}
	switch seen := b.pay.Send(ctx, payout.Order{Op: payout.OpTransfer, OrderNo: o.OrderNo, Request: raw, Send: 1}); seen.Kind {
	case payout.ObsSucceeded:
		return seen.ProviderRef, nil
	case payout.ObsDeclined:
		return "", temporal.NewNonRetryableApplicationError(seen.Message, seen.Code, nil)
	default:
		return "", fmt.Errorf("order %s: %s %s", o.OrderNo, seen.Kind, seen.Code)
	}
}

// Settle marks the row paid and writes the ledger, in one transaction.
func (b *regulars) Settle(ctx context.Context, o baseOrder, ref string) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	now := time.Now().UTC()
	done, err := tx.ExecContext(ctx, "UPDATE baseline_payouts SET status = 'paid', provider_ref = ?, settled_at = ? WHERE order_no = ? AND "+
		"status = 'sending'", ref, now, o.OrderNo)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); n == 0 || err != nil {
		return err // a retry after the settlement
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO baseline_ledger (order_no, debit, credit, amount, created_at) VALUES (?, 'owed', "+
		"'provider', ?, ?)", o.OrderNo, int64(o.Amount), now); err != nil {
		return err
	}
	return tx.Commit()
}

// beBaseline is the worker of both baselines, with the options of ours. "start <workflow>
// <n> <prefix>" starts so many workflows, as our relay does it, and answers when all are started.
func beBaseline(t *testing.T, cfg childSettings) (string, func(string) string) {
	db, err := store.OpenSQL(cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	t.Cleanup(func() { _ = db.Close() })
	c, err := worker.Dial(cfg.Temporal, stacktest.Namespace, childLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := sdk.New(c, baseQueue, worker.Options())
	w.RegisterWorkflowWithOptions(baseWorkflow, workflow.RegisterOptions{Name: basePayout})
	w.RegisterWorkflowWithOptions(localWorkflow, workflow.RegisterOptions{Name: localPayout})
	w.RegisterActivity(&regulars{db: db, pay: newProvider(t, cfg.Provider)})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return "ready", func(command string) string {
		var n int
		var flow, prefix string
		if _, err := fmt.Sscanf(command, "start %s %d %s", &flow, &n, &prefix); err != nil {
			return err.Error()
		}
		err := startAll(n, func(ctx context.Context, i int) error {
			user := prefix + strconv.Itoa(i)
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "baseline/" + user, TaskQueue: baseQueue}, flow,
				baseOrder{OrderNo: "base" + user, Account: user, Amount: share})
			return err
		})
		if err != nil {
			return err.Error()
		}
		return "started"
	}
}

// startAll calls start n times, baseStarts at a time, and returns the first error.
func startAll(n int, start func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	failed := make(chan error, baseStarts)
	for range baseStarts {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := start(context.Background(), int(i)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
