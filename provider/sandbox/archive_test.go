package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// TestArchive: a sandbox on a past answers as if it had lived it, and goes on from there.
func TestArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "past.db")
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a, err := NewArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	past := []Past{
		{Op: opCharge, OrderNo: "c1", Account: "alice", Amount: 300, Currency: "CNY", Status: StatusSucceeded, CreatedAt: day},
		{Op: opTransfer, OrderNo: "p2", Account: "bob", Amount: 100, Currency: "CNY", Status: StatusReturned, Code: "returned", CreatedAt: day.Add(2 * time.Hour), ReturnedAt: day.Add(24 * time.Hour)},
		{Op: opTransfer, OrderNo: "p1", Account: "carol~declined", Amount: 100, Currency: "CNY", Status: StatusDeclined, Code: "payee_declined", CreatedAt: day.Add(time.Hour)},
		{Op: opRefund, OrderNo: "r1", Account: "alice", Amount: 200, Currency: "CNY", ChargeOrderNo: "c1", Status: StatusSucceeded, CreatedAt: day.Add(3 * time.Hour)},
	}
	for _, p := range past {
		if err := a.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	st := newStand(t, func(c *Config) { c.DBPath = path })
	movements := st.movements()
	want := "[charge c1 300 transfer p2 100 refund r1 200 return p2 100]"
	var got []any
	for i, m := range movements {
		got = append(got, m.Op, m.OrderNo, m.Amount)
		if m.Seq != uint64(i)+1 {
			t.Errorf("movement %d has number %d", i, m.Seq)
		}
	}
	if fmt.Sprint(got) != want {
		t.Errorf("movements %v, want %s", got, want)
	}
	for _, p := range past {
		if o := st.query(p.OrderNo).order(t); o.Status != p.Status || o.Amount != p.Amount {
			t.Errorf("order %s: %+v", p.OrderNo, o)
		}
	}
	// What was refunded cannot be refunded again, and a number stays what it is.
	more := params{Op: opRefund, OrderNo: "r2", Account: "alice", Amount: 101, Currency: "CNY", ChargeOrderNo: "c1"}
	if got := st.sendParams(more); got.status != http.StatusConflict || got.code() != problemRefundExceeds.Code {
		t.Errorf("a refund of more than is left: %s", got)
	}
	st.send(opTransfer, "p9", "dave", 1).order(t)
	if last := st.movements(); len(last) != 5 || last[4].OrderNo != "p9" || last[4].Seq != 5 {
		t.Errorf("after a new order: %+v", last)
	}
	st.stop()
	if _, err := NewArchive(path); !errors.Is(err, ErrArchive) {
		t.Errorf("a past for a sandbox in use: %v", err)
	}
}
