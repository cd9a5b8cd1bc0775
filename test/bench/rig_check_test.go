package bench

import (
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
)

// TestMovedOnce: the check of every measured payout finds each way in which movements and debts can differ.
func TestMovedOnce(t *testing.T) {
	owed := map[string]money.Fen{"a": 1, "b": 2}
	a, b := movement{Account: "a", Amount: 1}, movement{Account: "b", Amount: 2}
	for name, moved := range map[string][]movement{
		"not paid":       {a},
		"paid twice":     {a, b, b},
		"another amount": {a, {Account: "b", Amount: 3}},
		"nobody's":       {a, b, {Account: "c", Amount: 1}},
	} {
		if movedOnce(moved, owed) == nil {
			t.Errorf("%s: not found", name)
		}
	}
	if err := movedOnce([]movement{b, a}, owed); err != nil {
		t.Error(err)
	}
}

func TestRateOf(t *testing.T) {
	if got := rateOf([]float64{3, 1, 8}); got != (rate{3, 1, 8}) {
		t.Errorf("%+v", got)
	}
	if got := rateOf([]float64{3, 1}); got != (rate{2, 1, 3}) {
		t.Errorf("%+v", got)
	}
}

func TestWorkGroup(t *testing.T) {
	for want, stack := range map[string][]string{
		groupGC: {"runtime.scanobject", "runtime.gcBgMarkWorker"},
		"MariaDB: gorm, driver, sockets": {"syscall.write", "github.com/go-sql-driver/mysql.(*mysqlConn).writePacket",
			"gorm.io/gorm.(*DB).Exec", "hongbao/store.(*Store).Settle"},
		"Temporal: gRPC, protobuf, sockets": {"syscall.read", "google.golang.org/grpc/internal/transport.(*http2Client).reader"},
		"Temporal: SDK":                     {"runtime.mallocgc", "go.temporal.io/sdk/internal.(*workflowTaskHandlerImpl).ProcessWorkflowTask"},
		"the provider: HTTP":                {"syscall.write", "net/http.(*persistConn).writeLoop"},
		"our own code":                      {"crypto/hmac.New", "hongbao/packet.NewID"},
		groupSchedule:                       {"runtime.findRunnable", "runtime.schedule"},
	} {
		if got := workGroup(stack); got != want {
			t.Errorf("%q is of %q, want %q", stack, got, want)
		}
	}
}

// TestDueTable: a pause of 20 s is a stall, whether it ended or not.
func TestDueTable(t *testing.T) {
	ended, for20, ever := dueRun{}, dueRun{}, dueRun{stalled: true}
	ended.Progress = stacktest.Progress{Took: time.Minute, Longest: 19 * time.Second}
	for20.Progress = stacktest.Progress{Took: time.Minute, Longest: 20 * time.Second}
	r := dueTable("t", []dueRun{ended, for20, ever})
	if err := r.check(); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"no", "yes", "for good"} {
		if got := r.rows[i][len(r.columns)-1]; got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}
