package worker_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// request returns the stored request of an order, opened.
func (r *rig) request(t *testing.T, packetID, orderNo string) string {
	t.Helper()
	var stored []byte
	if err := r.sql(t).QueryRowContext(t.Context(), "SELECT request FROM attempts WHERE order_no = ?", orderNo).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	sealed, ok := bytes.CutPrefix(stored, []byte("sealed:"))
	if !ok {
		t.Fatalf("the request of %s is not sealed: %s", orderNo, stored)
	}
	return string(must(packet.Open(r.seedKey, packetID, sealed))(t))
}

// TestR13_SealedRequestIsRestored: a charge with personal data of its payer was sent since the backup. Its order is
// restored with the request that was sent, sealed, and the packet opens once its sender has paid.
func TestR13_SealedRequestIsRestored(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	dsn := old.backup(t)
	const returnURL = "https://app.example/back"
	id := packet.NewID([]byte("salt"), rand.Text())
	payer := must(packet.Seal(old.seedKey, id, must(json.Marshal(packet.Payer{ReturnURL: returnURL}))(t)))(t)
	p := old.create(t, spec{id: id, total: 1000, count: 2, method: "sandbox_app", within: 600, payer: payer})
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	wait.Until(t, "awaiting payer", func() bool {
		row, err := old.store.PaymentRow(t.Context(), charge)
		return err == nil && row.Status == payout.StatusAwaitingPayer
	})
	sent := old.request(t, p.ID, chargeNo(p))
	if !strings.Contains(sent, returnURL) {
		t.Fatalf("sent %s", sent)
	}
	old.awaitBeat(t, must(old.store.MySQLState(t.Context()))(t).Heartbeat+1)
	stop()

	r := old.restored(t, dsn)
	r.beat(t)
	if report, err := r.recovery(t).Run(t.Context()); err != nil || !report.Ended || len(report.Undecided) != 0 || report.Numbers != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if again := r.request(t, p.ID, chargeNo(p)); again != sent {
		t.Errorf("restored %s, sent %s", again, sent)
	}
	r.call(t, http.MethodPost, "/_pay/"+chargeNo(p), nil, nil)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.awaitNotification(t, p)
	r.awaitOpen(t, p.ID)
}
