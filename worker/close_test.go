package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/staff"
	"hongbao/test/wait"
	"hongbao/worker"
)

// dated is the sandbox with days that end when the test says so; its statements are cut there.
type dated struct {
	*provider.Sandbox
	zone atomic.Pointer[time.Location] // nil: the sandbox's
}

func (d *dated) Zone() *time.Location {
	if zone := d.zone.Load(); zone != nil {
		return zone
	}
	return d.Sandbox.Zone()
}

func (d *dated) Statement(ctx context.Context, day payout.Day, _ string) (payout.StatementPage, error) {
	var out payout.StatementPage
	from, to := day.Span(d.Zone())
	for theirs := payout.DayOf(from, time.UTC); theirs <= min(payout.DayOf(to, time.UTC), today()); theirs = theirs.Add(1) {
		for after := ""; ; {
			page, err := d.Sandbox.Statement(ctx, theirs, after)
			if err != nil {
				return out, err
			}
			for _, l := range page.Lines {
				if !l.At.Before(from) && l.At.Before(to) {
					out.Lines = append(out.Lines, l)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return out, nil
}

// endDay lets a day end at a whole second: the zone is called UTC, as Temporal wants a
// name that it knows for the schedule.
func (d *dated) endDay(midnight time.Time) payout.Day {
	off := -int(midnight.Unix() % 86400)
	if off < -43200 {
		off += 86400
	}
	zone := time.FixedZone("UTC", off)
	d.zone.Store(zone)
	return payout.DayOf(midnight.Add(-time.Second), zone)
}

// lineOf waits until the provider lists a movement of an order number, and returns its time.
func (d *dated) lineOf(t *testing.T, orderNo string) time.Time {
	t.Helper()
	var at time.Time
	wait.Until(t, "money moved under "+orderNo, func() bool {
		page, err := d.Sandbox.Statement(t.Context(), today(), "")
		if i := slices.IndexFunc(page.Lines, func(l payout.StatementLine) bool { return l.OrderNo == orderNo }); err == nil && i >= 0 {
			at = page.Lines[i].At
		}
		return !at.IsZero()
	})
	return at
}

// closedDay waits until the worker has closed a day for good.
func (r *rig) closedDay(t *testing.T, d *dated, day payout.Day) staff.DayClose {
	t.Helper()
	if got := r.reconcileDay(t, day); got.Status != staff.ReconciliationDone || got.Provisional || got.Breaks != 0 {
		t.Fatalf("reconciliation of %s: %+v", day, got)
	}
	var c staff.DayClose
	wait.Until(t, "close of "+string(day)+" is final", func() bool {
		var err error
		c, err = r.reports().DayClose(t.Context(), "sandbox", day, d.Zone())
		return err == nil && !c.FinalAt.IsZero()
	})
	if c.EntriesMatch() == nil || !*c.EntriesMatch() || !c.Match.Agrees() || len(c.Blockers) != 0 {
		t.Errorf("%s: pending %v, %+v", day, c.Blockers, c.Match)
	}
	return c
}

func fen(n int64, amount money.Fen) staff.Sum { return staff.Sum{Count: n, Amount: amount} }

func wantMovements(t *testing.T, c staff.DayClose, want map[payout.TransferKind]staff.Sum) {
	t.Helper()
	got := c.Movements().ByKind()
	for _, kind := range payout.TransferKinds {
		if got[kind] != want[kind] {
			t.Errorf("%s: %s %+v, want %+v", c.Day, kind, got[kind], want[kind])
		}
	}
}

// TestClosesTieToTheProvider runs two days on real parts. Before midnight a payout is paid, one
// fails, one waits for its recipient, and a remainder is refunded. One moves at the provider
// before midnight and is observed after it. On the second day the failed one is retried and the
// others are paid. Both days become final with the right figures and do not change afterwards.
func TestClosesTieToTheProvider(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	d := &dated{}
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns, func(r *rig, c *worker.Config) {
		d.Sandbox = r.provider
		c.Reconcile.Steps.Providers = payout.OnlyProvider(d)
	})
	end := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if time.Until(end) < 5*time.Minute {
		t.Skip("a few minutes from midnight UTC the sandbox makes two statements of it")
	}
	p, rest := r.create(t, spec{total: 4000, count: 4}), r.create(t, spec{total: 300, count: 3})
	r.awaitOpen(t, p.ID)
	r.awaitOpen(t, rest.ID)
	won := func(of packet.Packet, user string) packet.Claim { return r.grab(t, of.ID, user).Claim }
	anna, ice, slow, small := won(p, "anna"), won(p, "ice~frozen"), won(p, "slow~confirm"), won(rest, "small")
	r.awaitPayout(t, anna, payout.StatusPaid)
	frozen := r.awaitPayout(t, ice, payout.StatusFailed)
	waiting := r.awaitPayout(t, slow, payout.StatusAwaitingRecipient)
	r.awaitPayout(t, small, payout.StatusPaid)
	r.recall(t, rest.ID)
	r.awaitRefund(t, rest.ID, 0, payout.StatusPaid)
	r.spoil(t, `{"op":"query","kind":"error_before","rate":1,"account_prefix":"late"}`)
	r.call(t, http.MethodPost, "/_movements", rawJSON(`{"op":"fee","amount":7}`), nil)
	late := won(p, "late~lost_reply")
	lateNo := payout.OrderNo(payout.ID(payout.KindPayout, p.ID, late.ShareIndex), 1)
	midnight := d.lineOf(t, lateNo).Truncate(time.Second).Add(time.Second)
	wait.Until(t, "midnight is over", func() bool { return time.Now().After(midnight) })
	r.call(t, http.MethodPut, "/_faults", rawJSON(`{"rules":[]}`), nil)
	r.awaitPayout(t, late, payout.StatusPaid)
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(waiting.ID, waiting.Attempt), nil, nil)
	r.awaitPayout(t, slow, payout.StatusPaid)
	r.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape(frozen.Account), nil, nil)
	r.retry(t, frozen.ID)
	r.awaitPayout(t, ice, payout.StatusPaid)
	r.awaitStatus(t, p.ID, packet.StatusClosed)

	first := d.endDay(midnight)
	r.off.Store(int64(2 * staff.LedgerSettled))
	owed := ice.Amount + slow.Amount + late.Amount
	c := r.closedDay(t, d, first)
	wantMovements(t, c, map[payout.TransferKind]staff.Sum{payout.PostCharge: fen(2, 4300), payout.PostClaim: fen(5, 4000+small.Amount),
		payout.PostPaid: fen(2, anna.Amount+small.Amount), payout.PostClose: fen(1, 300-small.Amount),
		payout.PostRefunded: fen(1, 300-small.Amount)})
	if got := c.Closing.Balance(payout.AccountOwed); got != fen(3, owed) {
		t.Errorf("in flight at midnight: %+v, want 3 of %d", got, owed)
	}
	if got := c.Closing.OfApp("demo").Balance(payout.AccountProvider).Amount; got != -owed {
		t.Errorf("with the provider: %d, want %d", got, -owed)
	}
	if op := c.Match.Statements[0].Ops[1]; op.Ours != fen(2, anna.Amount+small.Amount) ||
		op.Theirs != fen(3, anna.Amount+small.Amount+late.Amount) || op.Differ != fen(1, late.Amount) {
		t.Errorf("transfers: %+v", op)
	}
	if diff := c.Match.Statements[0].Differences; len(diff) != 2 || diff[0].Kind != staff.DifferBookedLater || diff[0].Op != payout.OpFee ||
		diff[0].Theirs != 7 || diff[1].Kind != staff.DifferBookedLater || diff[1].OrderNo != lateNo || diff[1].Theirs != late.Amount {
		t.Errorf("%+v", diff)
	}
	before := must(json.Marshal(c))(t)

	r.off.Store(int64(25 * time.Hour))
	second := r.closedDay(t, d, first.Add(1))
	wantMovements(t, second, map[payout.TransferKind]staff.Sum{payout.PostPaid: fen(3, owed), payout.PostFee: fen(1, 7)})
	if diff := second.Match.Statements[0].Differences; len(diff) != 2 || diff[0].Kind != staff.DifferMovedEarlier ||
		diff[0].Op != payout.OpFee || diff[0].Ours != 7 || diff[1].Kind != staff.DifferMovedEarlier || diff[1].OrderNo != lateNo ||
		diff[1].Ours != late.Amount {
		t.Errorf("%+v", diff)
	}
	for _, a := range payout.Accounts {
		want := map[payout.Account]money.Fen{payout.AccountFees: -7, payout.AccountProvider: 7}[a]
		if got := second.Closing.Balance(a); got.Amount != want {
			t.Errorf("%s: %+v, want %d: everything has ended, and the fee was deducted", a, got, want)
		}
	}
	again, err := r.reports().DayClose(t.Context(), "sandbox", first, d.Zone())
	if after := must(json.Marshal(again))(t); err != nil || !bytes.Equal(before, after) || !strings.Contains(string(after), lateNo) {
		t.Errorf("%v\n%s\n%s", err, before, after)
	}
	r.balanced(t, p)
}
