package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/watch"
	"hongbao/internal/recovery"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/storetest"
	"hongbao/test/harness"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// beating makes a rig's workers send frequent heartbeats.
func beating(r *rig, cfg *worker.Config) {
	cfg.Heartbeat = &worker.Heartbeat{Store: r.store, Copy: r.pool, Beats: true, Every: 100 * time.Millisecond, Logger: r.logger}
}

// unwatched hides packets from the watch, and unseen their pools: a packet whose run is lost
// stays without.
type (
	unwatched struct{ watch.Store }
	unseen    struct{ watch.Pools }
)

func (unseen) LivePage(context.Context, int, time.Time, int) ([]packet.LivePacket, error) {
	return nil, nil
}

func (unseen) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{}, packet.ErrNotFound
}

func (unwatched) WaitingLists(context.Context) ([]payout.WaitingList, error) { return nil, nil }

func (unwatched) UnfinishedPackets(context.Context, packet.Status, packet.Cursor, int) ([]packet.UnfinishedPacket, error) {
	return nil, nil
}

func (unwatched) UnfinishedPacket(context.Context, string) (packet.UnfinishedPacket, bool, error) {
	return packet.UnfinishedPacket{}, false, nil
}

func beatingUnwatched(r *rig, cfg *worker.Config) {
	beating(r, cfg)
	cfg.Watch, cfg.Live = unwatched{cfg.Watch}, unseen{cfg.Live}
}

// backup copies the database of a rig at one moment, as a dump does, and returns the copy's DSN.
func (r *rig) backup(t *testing.T) (dsn string) {
	t.Helper()
	dsn = stacktest.MariaDB(t)
	to := must(store.OpenSQL(dsn))(t)
	defer func() { _ = to.Close() }()
	stacktest.Migrate(t, dsn)
	name := must(mysql.ParseDSN(r.dsn))(t).DBName
	rows, err := to.QueryContext(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"+
		" AND table_name NOT IN ('goose_db_version', 'data_format')", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil || len(tables) < 20 {
		t.Fatal(tables, err)
	}
	tx := must(to.BeginTx(t.Context(), nil))(t)
	for _, table := range tables {
		if _, err := tx.ExecContext(t.Context(), fmt.Sprintf("REPLACE INTO %s SELECT * FROM `%s`.%s", table, name, table)); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// restored is the rig with another database, which a worker has not seen yet.
func (r *rig) restored(t *testing.T, dsn string) *rig {
	t.Helper()
	back := *r
	back.dsn = dsn
	back.store = must(store.Open(store.Config{DSN: dsn, MustCompare: true,
		ClockOff: func() time.Duration { return time.Duration(r.off.Load()) }}))(t)
	t.Cleanup(func() { _ = back.store.Close() })
	_ = r.pool.Close()
	back.pool = harness.OpenPool(t, pool.Config{Addr: r.redis, Lanes: harness.Lanes, Epochs: back.store, Logger: r.logger})
	return &back
}

// awaitBeat waits until Redis has a later number than the given one, so that a restore to it is
// detected.
func (r *rig) awaitBeat(t testing.TB, than int64) {
	t.Helper()
	wait.Until(t, "a heartbeat since", func() bool {
		known, err := r.pool.HeartbeatNumber(t.Context())
		return err == nil && known > than
	})
}

// beat compares MySQL with Redis once, as every process does.
func (r *rig) beat(t testing.TB) {
	t.Helper()
	heart := worker.Heartbeat{Store: r.store, Copy: r.pool, Logger: r.logger}
	if err := heart.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// declareRestored declares that MySQL is complete only until a time.
func (r *rig) declareRestored(t testing.TB, until time.Time) {
	t.Helper()
	must(r.store.DeclareRestored(t.Context(), staff.Write{Owner: "ops", Role: "operator", Reason: "r"}, 0, until))(t)
}

// recoveryRun is a recovery whose end operations follow up: they release the providers.
type recoveryRun struct {
	*recovery.Recovery
	rig *rig
	t   testing.TB
}

// Run recovers and releases the providers.
func (v *recoveryRun) Run(ctx context.Context) (recovery.Report, error) {
	report, err := v.Recovery.Run(ctx)
	if report.Ended && !report.DryRun {
		for _, name := range v.Providers.Names() {
			v.rig.releases(v.t, payout.HoldProvider, name)
		}
	}
	return report, err
}

// releases has two persons release the active holds of a name.
func (r *rig) releases(t testing.TB, scope payout.HoldScope, name string) {
	t.Helper()
	for _, owner := range []string{"anna", "ben"} {
		r.releasesBy(t, owner, scope, name)
	}
}

// releasesBy has one person release the active holds of a name, or ask for it.
func (r *rig) releasesBy(t testing.TB, owner string, scope payout.HoldScope, name string) {
	t.Helper()
	active := true
	for _, h := range must(r.store.Holds(t.Context(), staff.HoldFilter{Active: &active, Scope: scope, Name: name, Limit: 100}))(t) {
		w := storetest.By(t, r.store, staff.Write{Owner: owner, Role: "finance", Route: fmt.Sprint("release ", h.ID), Key: owner, BodyHash: "h",
			Reason: "looked at"})
		must(r.store.ReleaseHold(t.Context(), w, h.ID, func(payout.Hold, staff.Releases) (int, []byte) { return 200, []byte("{}") }))(t)
	}
}

// recovery is a recovery as the command makes it, on a machine whose clock is ten minutes behind.
func (r *rig) recovery(t testing.TB) *recoveryRun {
	adapter := &stepped{Sandbox: r.provider}
	adapter.off.Store(int64(-10 * time.Minute))
	pools := harness.OpenPool(t, pool.Config{Addr: r.redis, Lanes: harness.Lanes, Observe: true, Logger: r.logger})
	return &recoveryRun{rig: r, t: t, Recovery: &recovery.Recovery{Store: r.store, Pools: pools,
		Providers: payout.OnlyProvider(adapter), Starter: r.starter,
		Lanes: harness.Lanes, SeedKey: r.seedKey,
		By: "operator", Logger: r.logger}}
}

// moves are all movements of the provider but for those of the given packets.
func (r *rig) allMoves(t *testing.T, ids []string) (out []movement) {
	t.Helper()
	for _, id := range ids {
		out = append(out, r.movements(t, id)...)
	}
	return out
}

// paidOnce checks a packet's movements: every user is paid once, net of returns.
func (r *rig) paidOnce(t *testing.T, p packet.Packet, users ...string) {
	t.Helper()
	paid := map[string]int{}
	for _, m := range r.movements(t, p.ID) {
		switch m.Op {
		case "transfer":
			paid[m.Account]++
		case "return":
			paid[m.Account]--
		}
	}
	for _, u := range users {
		if paid[u] != 1 {
			t.Errorf("packet %s: %q was paid %d times", p.ID, u, paid[u])
		}
		delete(paid, u)
	}
	for u, n := range paid {
		if n != 0 {
			t.Errorf("packet %s: %q was paid %d times", p.ID, u, n)
		}
	}
}

// lost is everything that happens between the backup and the loss.
type lost struct {
	inRedis, gone, onlyPaid, refunded, retried, cancelled, made, madeGone, later packet.Packet
	retry, cancel, during                                                        packet.Claim
}

func (l lost) ids() []string {
	var out []string
	for _, p := range l.all() {
		out = append(out, p.ID)
	}
	return out
}

func (l lost) all() []packet.Packet {
	return []packet.Packet{l.inRedis, l.gone, l.onlyPaid, l.refunded, l.retried, l.cancelled, l.made, l.madeGone}
}

func (r *rig) paid(t *testing.T, p packet.Packet, users ...string) {
	t.Helper()
	for _, u := range users {
		g := r.grab(t, p.ID, u)
		if g.Result != packet.GrabWon {
			t.Fatalf("%q: %v", u, g.Result)
		}
		r.awaitPayout(t, g.Claim, payout.StatusPaid)
	}
}

// before is what the backup has.
func (r *rig) before(t *testing.T) (l lost) {
	for _, one := range []struct {
		p     *packet.Packet
		count int
	}{{&l.inRedis, 3}, {&l.gone, 3}, {&l.onlyPaid, 2}, {&l.refunded, 4}, {&l.retried, 2}, {&l.cancelled, 2}} {
		*one.p = r.create(t, spec{total: 600, count: one.count})
		r.awaitOpen(t, one.p.ID)
	}
	for _, p := range []packet.Packet{l.inRedis, l.gone, l.onlyPaid, l.refunded} {
		r.paid(t, p, "early")
	}
	l.retry, l.cancel = r.grab(t, l.retried.ID, "cold~frozen").Claim, r.grab(t, l.cancelled.ID, "never~declined").Claim
	for _, c := range []packet.Claim{l.retry, l.cancel} {
		r.awaitPayout(t, c, payout.StatusFailed)
		wait.Until(t, "run failed", func() bool { return r.runs(t, workflows.PayoutID(c.PacketID, c.UserID)) == "Failed" })
	}
	return l
}

// after is what it does not have.
func (r *rig) after(t *testing.T, l *lost) {
	// Sold out, closed and retired; in the end only the provider knows one of them.
	r.paid(t, l.gone, "second", "third")
	r.paid(t, l.onlyPaid, "second")
	r.paid(t, l.refunded, "second")
	r.recall(t, l.refunded.ID)
	l.made = r.create(t, spec{total: 500, count: 3})
	l.madeGone = r.create(t, spec{total: 500, count: 1})
	r.awaitOpen(t, l.made.ID)
	r.awaitOpen(t, l.madeGone.ID)
	r.paid(t, l.made, "late")
	r.paid(t, l.madeGone, "late")
	for _, p := range []packet.Packet{l.gone, l.onlyPaid, l.refunded, l.madeGone} {
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		wait.Until(t, "retired", func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		})
	}
	r.deleted(t, workflows.PayoutID(l.onlyPaid.ID, "second"))
	r.call(t, http.MethodPost, "/_unfreeze/cold~frozen", nil, nil)
	r.twoPersons(t, payout.ID(payout.KindPayout, l.retry.PacketID, l.retry.ShareIndex), payout.DecisionRequest{Kind: payout.DecisionRetry})
	r.awaitPayout(t, l.retry, payout.StatusPaid)
	r.twoPersons(t, payout.ID(payout.KindPayout, l.cancel.PacketID, l.cancel.ShareIndex), cancel)
	r.awaitRefund(t, l.cancel.PacketID, l.cancel.ShareIndex+1, payout.StatusPaid)
	// Sold out without a run: no watch starts one, and it stays in Redis.
	hands["terminate"](t, r, workflows.PacketID(l.inRedis.ID))
	r.paid(t, l.inRedis, "second", "third")
}

// deleted deletes the run of a workflow id and waits until Temporal has done so.
func (r *rig) deleted(t *testing.T, id string) {
	t.Helper()
	hands["delete"](t, r, id)
	wait.Until(t, "run deleted", func() bool {
		_, err := r.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		return err != nil && unlessOver(err) == nil
	})
}

// decideOn makes a decision about a payout and returns the error, or the error of its state.
func (r *rig) decideOn(t *testing.T, c packet.Claim, kind payout.DecisionKind, key string) error {
	t.Helper()
	w := storetest.By(t, r.store, staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: key, BodyHash: "h", Reason: "r"})
	var refused error
	_, err := r.store.Decide(t.Context(), w, payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), payout.DecisionRequest{Kind: kind},
		func(_ *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
			refused = err
			return 200, []byte("{}")
		})
	return errors.Join(err, refused)
}

// TestR13_Recover: MySQL is restored from a backup that lacks everything in lost. Before the
// recovery nothing moves. After it, however often it was killed, every state is as before and
// continues.
func TestR13_Recover(t *testing.T) {
	t.Parallel()
	server, ns := stacktest.TemporalNamespace(t)
	old := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns)
	old.change = beatingUnwatched
	w, stop := old.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	l := old.before(t)
	dsn := old.backup(t)
	old.after(t, &l)
	stop()
	if v, err := old.pool.View(t.Context(), l.inRedis.ID); err != nil || v.Retired || v.ClaimedCount != 3 {
		t.Fatalf("not in Redis as it was to be: %+v, %v", v, err)
	}
	want := old.allMoves(t, l.ids())

	r := old.restored(t, dsn)
	r.change = beating
	if err := r.decideOn(t, l.retry, payout.DecisionCancel, "early"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a decision before MySQL was compared: %v", err)
	}
	w, _ = r.startWorker(t)
	wait.Until(t, "a restored MySQL is detected, worker ready", func() bool {
		return w.Ready() && errors.Is(r.store.CheckNotRestored(t.Context()), payout.ErrMySQLRestored)
	})
	r.watchFast(t)
	r.refuses(t, &l)
	if got := r.allMoves(t, l.ids()); !slices.Equal(got, want) {
		t.Errorf("moved before the recovery:\n%v\nwas\n%v", got, want)
	}

	dry := r.recovery(t)
	dry.DryRun = true
	if report, err := dry.Run(t.Context()); err != nil || report.Unknown == 0 || report.Numbers != 0 {
		t.Errorf("dry run: %+v, %v", report, err)
	}
	for tries := range 2 { // killed after the first packet, and after some
		ctx, kill := context.WithCancel(t.Context())
		killed := r.recovery(t)
		killed.Progress = func(done, _ int) {
			if done > 3*tries {
				kill()
			}
		}
		if _, err := killed.Run(ctx); err == nil {
			t.Fatal("not killed")
		}
		kill()
		if err := r.store.CheckNotRestored(t.Context()); !errors.Is(err, payout.ErrMySQLRestored) {
			t.Fatalf("after a recovery that was killed: %v", err)
		}
	}
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || len(report.Undecided) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	t.Logf("%+v", report)
	r.askedInTime(t)
	// From here on the workers continue, with the packet of which a share was grabbed in between.
	ids := slices.DeleteFunc(l.ids(), func(id string) bool { return id == l.made.ID })
	want = slices.DeleteFunc(want, func(m movement) bool { return strings.Contains(m.OrderNo, l.made.ID) })
	if got := r.allMoves(t, ids); !slices.Equal(got, want) {
		t.Errorf("moved by the recovery:\n%v\nwas\n%v", got, want)
	}
	r.goesOn(t, l)
	again, err := r.recovery(t).Run(t.Context())
	if err != nil || again.Ended || again.Packets != 0 || again.MySQL.State != payout.MySQLNormal {
		t.Errorf("recovered again: %+v, %v", again, err)
	}
}

// askedInTime: no order was queried before its payment was created, by MySQL's clock.
func (r *rig) askedInTime(t *testing.T) {
	t.Helper()
	var early int
	if err := r.sql(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM attempts a JOIN payments p ON p.id = a.payment_id WHERE "+
		"a.asked_at < p.created_at").Scan(&early); err != nil || early != 0 {
		t.Errorf("%d orders were queried before their payments were created, %v", early, err)
	}
}

// awaitWinner waits until Temporal lists the run of a claim among those that were started since.
func (r *rig) awaitWinner(t *testing.T, c packet.Claim, since time.Time) {
	t.Helper()
	wait.Until(t, "Temporal lists the claim", func() bool {
		winners, err := r.starter.WinnersSince(t.Context(), since)
		return err == nil && slices.Contains(winners[c.PacketID], c.UserID)
	})
}

// refuses: operations that could lose money are refused while MySQL is restored; grabs and
// creates are accepted.
func (r *rig) refuses(t *testing.T, l *lost) {
	t.Helper()
	for _, kind := range []payout.DecisionKind{payout.DecisionCancel, payout.DecisionRetry} {
		for _, c := range []packet.Claim{l.retry, l.cancel} {
			if err := r.decideOn(t, c, kind, "restored"); !errors.Is(err, payout.ErrMySQLRestored) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	g := r.grab(t, l.made.ID, "during")
	if l.during = g.Claim; g.Result != packet.GrabWon {
		t.Errorf("a grab: %v", g.Result)
	}
	l.later = r.create(t, spec{total: 100, count: 1})
	wait.Until(t, "recorded", func() bool {
		_, err := r.store.Packet(t.Context(), l.later.ID)
		return err == nil
	})
	// Whatever signal ends the run's wait, the packet does not close.
	for _, p := range []packet.Packet{l.inRedis, l.gone, l.onlyPaid, l.refunded} {
		wait.Until(t, "watch has given it a run", func() bool { return r.runs(t, workflows.PacketID(p.ID)) == "Running" })
		if err := r.starter.SignalClose(t.Context(), p.ID, packet.CloseRecalled); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "closing", func() bool {
			rec, err := r.store.Packet(t.Context(), p.ID)
			return err == nil && rec.Stored == packet.StatusClosing
		})
		if _, err := r.store.CloseBooks(t.Context(), p.ID, ""); !errors.Is(err, payout.ErrMySQLRestored) {
			t.Errorf("books are closed: %v", err)
		}
		if rec := must(r.store.Packet(t.Context(), p.ID))(t); !rec.BooksClosedAt.IsZero() {
			t.Errorf("books of %s are closed", p.ID)
		}
	}
}

// goesOn: after the recovery every packet and payment ends, once.
func (r *rig) goesOn(t *testing.T, l lost) {
	t.Helper()
	if err := r.decideOn(t, l.retry, payout.DecisionCancel, "late cancel"); !errors.Is(err, payout.ErrNotRetryable) {
		t.Errorf("a cancel of what was paid under number 2: %v", err)
	}
	if p := r.payoutOf(t, l.retry); p.Status != payout.StatusPaid || p.Attempt != 2 {
		t.Errorf("%+v", p)
	}
	if p := r.payoutOf(t, l.cancel); p.Status != payout.StatusCancelled {
		t.Errorf("%+v", p)
	}
	r.awaitRefund(t, l.cancel.PacketID, l.cancel.ShareIndex+1, payout.StatusPaid)
	if err := r.decideOn(t, l.cancel, payout.DecisionRetry, "late retry"); !errors.Is(err, payout.ErrNotRetryable) {
		t.Errorf("a retry of what went back to the sender: %v", err)
	}
	r.awaitPayout(t, l.during, payout.StatusPaid)
	r.awaitWinner(t, l.during, l.during.ClaimedAt.Add(-time.Minute))
	r.awaitOpen(t, l.later.ID)
	r.paid(t, l.later, "at last")
	for _, p := range []packet.Packet{l.made, l.retried, l.cancelled} {
		r.recall(t, p.ID)
	}
	for _, p := range append(l.all(), l.later) {
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.balanced(t, p)
	}
	r.paidOnce(t, l.inRedis, "early", "second", "third")
	r.paidOnce(t, l.gone, "early", "second", "third")
	r.paidOnce(t, l.onlyPaid, "early", "second")
	r.paidOnce(t, l.refunded, "early", "second")
	r.paidOnce(t, l.retried, "cold~frozen")
	r.paidOnce(t, l.cancelled)
	r.paidOnce(t, l.made, "late", "during")
	r.paidOnce(t, l.madeGone, "late")
	r.paidOnce(t, l.later, "at last")
	if c := must(r.store.Claim(t.Context(), l.onlyPaid.ID, "second"))(t); c.PayoutStatus != string(payout.StatusPaid) {
		t.Errorf("%+v", c)
	}
	r.verified(t)
	if open := r.openBreaks(t); len(open) != 0 {
		t.Errorf("breaks: %+v", open)
	}
	if check, err := r.reports().VerifyAudit(t.Context()); err != nil || check.Entries == 0 {
		t.Errorf("%+v, %v", check, err)
	}
}

// verified checks the whole ledger, as the command does.
func (r *rig) verified(t *testing.T) {
	t.Helper()
	found, err := r.reports().VerifyLedger(t.Context(), func(v staff.Violation) error { t.Errorf("%+v", v); return nil })
	if err != nil || found.ViolationCount() != 0 || found.Suspense != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestR13_RecoverLeavesBreaksToStaff: what neither the provider nor Redis nor Temporal determines
// becomes a break, and its packet is unchanged until staff have resolved it.
func TestR13_RecoverLeavesBreaksToStaff(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	server, ns := stacktest.TemporalNamespace(t)
	old := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns)
	old.change = beatingUnwatched
	w, stop := old.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	account, outside, aged := old.create(t, spec{total: 300, count: 3}), old.create(t, spec{total: 300, count: 2}),
		old.create(t, spec{total: 300, count: 2})
	for _, p := range []packet.Packet{account, outside, aged} {
		old.awaitOpen(t, p.ID)
	}
	old.paid(t, account, "early")
	slip := old.grab(t, outside.ID, "broken~declined").Claim
	bad := old.awaitPayout(t, slip, payout.StatusFailed)
	// Recorded, not charged; then refused without a trace at the provider, and rejected.
	refused := packet.Packet{ID: packet.NewID([]byte("salt"), "refused "+rand.Text()), App: "demo", SenderID: "s",
		Currency: packet.CurrencyCNY, ChargeProvider: "sandbox", PayoutProvider: "sandbox", TotalAmount: 100, ShareCount: 1,
		Split: packet.SplitRandom, MinShare: 1, BodyHash: "h", Metadata: map[string]string{}}
	refused.Commitment = packet.Commitment(packet.DeriveSeed(old.seedKey, refused.ID))
	old.occupied(t, workflows.PacketID(refused.ID))
	staged := must(old.pool.Create(t.Context(), refused, nil, nil, time.Hour, 5*time.Second))(t)
	if _, err := old.steps().RecordPacket(t.Context(), staged.View.Packet, packet.Facts{}); err != nil {
		t.Fatal(err)
	}
	dsn := old.backup(t)
	exec(t, old.sql(t), 1, "UPDATE payments SET status = 'failed', failure_code = 'payer_declined', settled_at = NOW(6) WHERE id = ?",
		payout.ID(payout.KindCharge, refused.ID, 0))
	exec(t, old.sql(t), 1, "UPDATE packets SET status = 'rejected', failure_code = 'payer_declined', failure_message = 'm' WHERE id = ?",
		refused.ID)
	if err := old.pool.Reject(t.Context(), refused.ID, packet.Failure{Code: "payer_declined", Message: "m"}); err != nil {
		t.Fatal(err)
	}

	// To the account of another winner, which is all that is left of this claim.
	g, err := old.pool.Grab(t.Context(), account.ID, "second", packet.Profile{Recipient: "early"})
	if err != nil {
		t.Fatal(err)
	}
	old.awaitPayout(t, g.Claim, payout.StatusPaid)
	old.twoPersons(t, bad.ID, payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "slip"})
	wait.Until(t, "its run has seen it", func() bool {
		ended, err := old.starter.EndedAs(t.Context(), bad)
		return err == nil && ended == payout.StatusPaidOutside
	})
	unheard := old.create(t, spec{total: 100, count: 1})
	old.awaitOpen(t, unheard.ID)
	stop()
	old.deleted(t, workflows.PayoutID(account.ID, "second"))
	for _, p := range []packet.Packet{account, unheard} {
		old.deleted(t, workflows.PacketID(p.ID))
		old.forgetPool(t, p.ID)
	}

	r := old.restored(t, dsn)
	r.change = beating
	exec(t, r.sql(t), 1, "UPDATE packets SET created_at = created_at - INTERVAL 40 DAY WHERE id = ?", aged.ID)
	r.beat(t)
	recovery := r.recovery(t)
	recovery.Since = time.Now().Add(-50 * 24 * time.Hour)
	report, err := recovery.Run(t.Context())
	if err != nil || len(report.Undecided) != 4 {
		t.Fatalf("%+v, %v", report, err)
	}
	rec := must(r.store.Packet(t.Context(), refused.ID))(t)
	if rec.Stored != packet.StatusRejected || rec.Failure == nil || rec.Failure.Code != "payer_declined" {
		t.Errorf("%+v, %+v", rec.Stored, rec.Failure)
	}
	if b := report.MySQL; b.State != payout.MySQLNormal {
		t.Errorf("%+v", b)
	}
	found := map[string]string{}
	for _, b := range r.openBreaks(t)[payout.BreakRestored] {
		found[b.PacketID] = b.OrderNo
	}
	want := map[string]string{account.ID: payout.OrderNo(payout.ID(payout.KindPayout, account.ID, g.Claim.ShareIndex), 1),
		outside.ID: bad.ID, unheard.ID: payout.ID(payout.KindCharge, unheard.ID, 0), aged.ID: payout.ID(payout.KindCharge, aged.ID, 0)}
	if !maps.Equal(found, want) {
		t.Errorf("breaks %v, want %v", found, want)
	}
	before := r.allMoves(t, []string{account.ID, outside.ID, unheard.ID, refused.ID})
	w, _ = r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	if err := r.decideOn(t, slip, payout.DecisionRetry, "guarded"); !errors.Is(err, payout.ErrHeld) {
		t.Errorf("a retry of what was paid by other means: %v", err)
	}
	if _, err := r.store.BeginClosing(t.Context(), account.ID, packet.CloseRecalled); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.CloseBooks(t.Context(), account.ID, ""); !errors.Is(err, payout.ErrHeld) {
		t.Errorf("the share that nobody has would be refunded: %v", err)
	}
	other := r.create(t, spec{total: 100, count: 1})
	r.awaitOpen(t, other.ID)
	r.paid(t, other, "u")
	r.awaitStatus(t, other.ID, packet.StatusClosed)
	if after := r.allMoves(t, []string{account.ID, outside.ID, unheard.ID, refused.ID}); !slices.Equal(after, before) {
		t.Errorf("moved: %v, before %v", after, before)
	}
	// Staff determine the owner of the share; then the packet continues.
	r.releases(t, payout.HoldPacket, outside.ID)
	r.twoPersons(t, bad.ID, payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "slip"})
	r.awaitPayout(t, slip, payout.StatusPaidOutside)
	r.verified(t)
}
