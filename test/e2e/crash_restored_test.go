package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// rebuilt fences the lane of a packet with claims in Redis, as after a loss; a worker rebuilds the
// lane (R9).
func rebuilt(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	l.grabbed(t, name+"-a")
	r := c.redis(t)
	key, _ := l.keyOf(t, r)
	lane, _, _ := strings.Cut(key, "packet:")
	if err := r.HSet(t.Context(), lane+"epoch", "gate", "halted", "reason", "by_hand").Err(); err != nil {
		t.Fatal(err)
	}
	l.grabbed(t, name+"-b")
	l.recall(t)
	l.settled(t)
}

// recovered takes `hongbao recover` through its failpoints: it is killed at each, and run again.
// The test forges orders that the provider knows and MySQL does not.
func (c *crashes) recovered(t *testing.T) {
	number, paid, numbered := refused(t, c, "recover-number")
	cancel, back, cancelled := refused(t, c, "recover-cancel")
	rest := c.newPacketLife(t, "recover-rest", 3)
	rest.grabbed(t, "recover-rest-a")
	rest.payoutOf(t, "recover-rest-a", wire.PayoutPaid)
	c.unfreeze(t, paid)

	run := &recovery{crashes: c, env: c.workerEnv(t), since: time.Now().UTC().Format(time.RFC3339)}
	run.through(t, failpoint.RecoverDeclare)
	run.order(t, "transfers", payout.OrderNo(numbered, 2), paid, number.won[paid].amount, "")
	run.through(t, failpoint.RecoverAttempt)
	run.refund(t, cancel, payout.ID(payout.KindRefund, cancel.id, cancel.won[back].index+1), cancel.won[back].amount)
	run.through(t, failpoint.RecoverCancel)
	run.refund(t, rest, payout.ID(payout.KindRefund, rest.id, 0), crashTotal-rest.won["recover-rest-a"].amount)
	run.through(t, failpoint.RecoverRemainder)
	rest.recall(t) // as its run had observed before the restore
	run.lanes = true
	run.through(t, failpoint.RecoverLane)
	run.through(t, failpoint.RecoverEnd)
	// Killed after the last step: there is nothing left to recover, and a second end changes nothing.
	if out, err := run.once(t); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	c.decided(t, "OPS", "/providers/sandbox/release", "recovered", 200, map[string]any{"reason": "checked after the recovery"})
	number.payoutOf(t, paid, wire.PayoutPaid)
	number.recall(t)
	cancel.payoutOf(t, back, wire.PayoutCancelled)
	cancel.cancelled = back
	cancel.recall(t)
	for _, l := range []*packetLife{number, cancel, rest} {
		l.settled(t)
	}
	if id := number.payoutOf(t, paid, wire.PayoutPaid); id != numbered || cancelled == "" {
		t.Errorf("payout %s became %s", numbered, id)
	}
}

// recovery holds how `hongbao recover` is run.
type recovery struct {
	*crashes
	env   []string
	since string
	lanes bool
}

// once runs it to its end, and returns its output.
func (r *recovery) once(t *testing.T) (string, error) {
	t.Helper()
	args := []string{"recover", "--by", "e2e", "--since", r.since}
	if r.lanes {
		args = append(args, "--rebuild-lanes")
	}
	cmd := exec.CommandContext(t.Context(), "../../.cache/bin/hongbao", args...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = r.env, &out, &out
	err := cmd.Run()
	return out.String(), err
}

// through has it killed before a step, and after it.
func (r *recovery) through(t *testing.T, s failpoint.Step) {
	t.Helper()
	for _, p := range []failpoint.Point{s.Before(), s.After()} {
		if err := os.WriteFile(filepath.Join(r.folder, string(p)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		out, err := r.once(t)
		if _, reached := os.Stat(filepath.Join(r.folder, p.Reached())); reached != nil {
			t.Fatalf("%s was not reached: %v\n%s", p, err, out)
		}
		if err == nil {
			t.Errorf("%s: it was not killed:\n%s", p, out)
		}
		t.Logf("%-26s reached after %4.1f s", p, time.Since(began).Seconds())
	}
}

// order sends an order to the provider that MySQL does not have.
func (r *recovery) order(t *testing.T, what, no, account string, amount money.Fen, charge string) {
	t.Helper()
	body := map[string]any{"order_no": no, "account": account, "amount": int64(amount), "currency": "CNY"}
	if charge != "" {
		body["charge_order_no"] = charge
	}
	if a := r.post(t, r.stack.env("HONGBAO_PROVIDER_URL")+"/v1/"+what, r.setting("HONGBAO_PROVIDER_KEY"), body); a.status/100 != 2 {
		t.Fatalf("%s: %d %s", no, a.status, a.raw)
	}
}

func (r *recovery) refund(t *testing.T, l *packetLife, id string, amount money.Fen) {
	t.Helper()
	r.order(t, "refunds", payout.OrderNo(id, 1), l.create.SenderID, amount, payout.OrderNo(payout.ID(payout.KindCharge, l.id, 0), 1))
}

// setting returns a setting of the worker.
func (r *recovery) setting(name string) string {
	for _, v := range r.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// workerEnv returns the environment of the stack's worker, without its listen address.
func (c *crashes) workerEnv(t *testing.T) (env []string) {
	t.Helper()
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.pid(t, "WORKER")))
	if err != nil {
		t.Fatal(err)
	}
	for v := range bytes.SplitSeq(bytes.TrimRight(environ, "\x00"), []byte{0}) {
		if !strings.HasPrefix(string(v), "HONGBAO_WORKER_LISTEN=") {
			env = append(env, string(v))
		}
	}
	return env
}
