package report

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// HealthReader reads the health snapshot's values in MySQL. Each statement reads an index from the
// unfinished rows, so finished payments cost nothing. It is safe for concurrent use.
type HealthReader struct {
	// LowBalance is the balance of an app, in fen, below which it is counted as short.
	LowBalance money.Fen
	// Providers are the names of the configured providers; empty: not known, and no provider counts as missing.
	Providers []string

	source *Source

	mu         sync.Mutex
	restoredAt time.Time           // RestoredAt of the MySQL that posted is from
	posted     int64               // id of the last transfer checked
	off        map[string]struct{} // packets with an imbalanced ledger
}

// NewHealthReader returns a reader of the health values in MySQL.
func NewHealthReader(s *Source) *HealthReader {
	return &HealthReader{source: s, off: map[string]struct{}{}}
}

type backlogRow struct {
	Kind, Status string
	N            int64
	Oldest       *time.Time
}

func (r backlogRow) backlog() observe.Backlog {
	return observe.Backlog{Waiting: r.N, Oldest: mysql.OrZero(r.Oldest)}
}

// paymentKinds maps kinds to their names in metrics.
var paymentKinds = map[payout.Kind]string{payout.KindCharge: "charge", payout.KindPayout: "payout", payout.KindRefund: "refund",
	payout.KindHonour: "honour"}

// Read fills in what MySQL knows. Errors: ErrUnavailable.
func (r *HealthReader) Read(ctx context.Context, v *observe.HealthSnapshot) error {
	for _, read := range []func(context.Context, *observe.HealthSnapshot) error{r.payments, r.packets, r.breaks, r.waiting, r.decisions,
		r.heldProviders, r.holds, r.shareConflicts, r.lanes, r.repairs, r.ledger, r.books, r.reconciled, r.campaigns, r.retention} {
		if err := read(ctx, v); err != nil {
			return mysql.Classify(err)
		}
	}
	v.FromMySQL = true
	return nil
}

// payments counts unfinished payments. Every kind and status is reported, zeros included: an alert
// needs an existing series.
func (r *HealthReader) payments(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []backlogRow
	err := r.source.read(ctx).Raw("SELECT kind, status, COUNT(*) AS n FROM payments p FORCE INDEX (payments_status) WHERE " + unfinished +
		" AND NOT (" + notConfirmed + ") GROUP BY kind, status").Scan(&rows).Error
	if err != nil {
		return err
	}
	found := map[[2]string]observe.Backlog{}
	for _, row := range rows {
		if row.Oldest, err = r.statusSince(ctx, row.Kind, row.Status); err != nil {
			return err
		}
		found[[2]string{row.Kind, row.Status}] = row.backlog()
		if err := r.countNotAccepted(ctx, v, row.Kind, row.Status); err != nil {
			return err
		}
		if err := r.countMissing(ctx, v, row.Kind, row.Status); err != nil {
			return err
		}
	}
	for _, kind := range []payout.Kind{payout.KindCharge, payout.KindPayout, payout.KindRefund, payout.KindHonour} {
		for _, status := range payout.Statuses {
			if !status.Final() {
				v.Payments = append(v.Payments, observe.PaymentBacklog{Kind: paymentKinds[kind], Status: string(status),
					Backlog: found[[2]string{string(kind), string(status)}]})
			}
		}
	}
	return nil
}

// healthOldest bounds how many payments of a kind and status, oldest first, are checked for the time
// of their status.
const healthOldest = 5000

// selectSince selects the time from which payments have their status. Pending: created, or decided
// so. At the provider: first send of the order number, or the later decision. Failed and returned:
// settled.
const selectSince = `SELECT p.created_at, GREATEST(p.created_at, COALESCE(p.decided_at, p.created_at), COALESCE(p.settled_at, p.created_at),
	IF(p.status IN ('sending', 'unknown', 'awaiting_recipient', 'awaiting_payer'), COALESCE(a.started_at, p.created_at),
	p.created_at)) AS since
	FROM payments p FORCE INDEX (payments_status) LEFT JOIN attempts a ON a.order_no = p.order_no
	WHERE p.kind = ? AND p.status = ? AND NOT (` + notConfirmed + `) ORDER BY p.created_at, p.id LIMIT ?`

// statusSince returns the earliest of these times: a payout of last week that was just retried is
// not stuck. Of more than healthOldest payments, the rest count from their creation: rather too
// early than too late.
func (r *HealthReader) statusSince(ctx context.Context, kind, status string) (*time.Time, error) {
	var row struct {
		N           int
		Since, Last *time.Time
	}
	err := r.source.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(since) AS since, MAX(created_at) AS last FROM ("+selectSince+") oldest", kind,
		status, healthOldest).Scan(&row).Error
	if row.N == healthOldest && row.Last.Before(*row.Since) {
		row.Since = row.Last
	}
	return row.Since, err
}

// selectNotAccepted selects payments that the provider has not accepted: the next send repeats a
// refused or unanswered one, or queries never got a statement. A payment whose send is in flight is
// not selected.
const selectNotAccepted = `SELECT p.provider, CASE WHEN a.next_action = 'ask' THEN @none WHEN a.code = @low THEN @low
	WHEN a.code = @rate THEN @rate ELSE @none END AS why,
	COUNT(*) AS n, MIN(a.started_at) AS oldest
	FROM (SELECT provider, order_no, status FROM payments FORCE INDEX (payments_status) WHERE kind = @kind AND status = @status
	ORDER BY created_at, id LIMIT @most) p
	JOIN attempts a ON a.order_no = p.order_no
	WHERE a.next_action = 'send' OR p.status = 'unknown' AND a.statement = '' AND NOT a.forgotten GROUP BY p.provider, why`

// countNotAccepted counts the oldest payments of a kind and status that the provider has not
// accepted. Deferrals inside a worker are not in MySQL.
func (r *HealthReader) countNotAccepted(ctx context.Context, v *observe.HealthSnapshot, kind, status string) error {
	if s := payout.Status(status); s != payout.StatusSending && s != payout.StatusUnknown {
		return nil
	}
	var rows []struct {
		Provider, Why string
		N             int64
		Oldest        time.Time
	}
	err := r.source.read(ctx).Raw(selectNotAccepted, map[string]any{"kind": kind, "status": status, "most": healthOldest,
		"low": payout.CodeLowBalance, "rate": payout.CodeRateLimited, "none": string(observe.TroubleNoAnswer)}).Scan(&rows).Error
	for _, row := range rows {
		v.Troubles = append(v.Troubles, observe.TroubleBacklog{Provider: row.Provider, Why: observe.Trouble(row.Why),
			Backlog: observe.Backlog{Waiting: row.N, Oldest: row.Oldest}})
	}
	return err
}

// countMissing counts the oldest open payments of a kind and status whose provider is not configured. They do not move, so
// they are among the oldest.
func (r *HealthReader) countMissing(ctx context.Context, v *observe.HealthSnapshot, kind, status string) error {
	if len(r.Providers) == 0 || !payout.Status(status).Open() {
		return nil
	}
	var row backlogRow
	err := r.source.read(ctx).Raw(`SELECT COUNT(*) AS n, MIN(created_at) AS oldest FROM (SELECT provider, created_at
		FROM payments FORCE INDEX (payments_status) WHERE kind = ? AND status = ? ORDER BY created_at, id LIMIT ?) p
		WHERE provider NOT IN ?`, kind, status, healthOldest, r.Providers).Scan(&row).Error
	v.ProviderMissing = v.ProviderMissing.Add(row.backlog())
	return err
}

// packets counts packets past their expiry. Each status is one range of an index.
func (r *HealthReader) packets(ctx context.Context, v *observe.HealthSnapshot) error {
	now, err := r.source.db.Clock(ctx)
	if err != nil {
		return err
	}
	for _, status := range []string{"funding", "open", "closing"} {
		var row backlogRow
		err := r.source.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(expires_at) AS oldest FROM packets FORCE INDEX (packets_status) WHERE status "+
			"= ? AND expires_at < ?", status, now).Scan(&row).Error
		if err != nil {
			return err
		}
		v.Overdue = append(v.Overdue, observe.PacketBacklog{Status: status, Backlog: row.backlog()})
	}
	return nil
}

// breaks counts open breaks by kind, zeros included.
func (r *HealthReader) breaks(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []backlogRow
	err := r.source.read(ctx).Raw("SELECT kind, COUNT(*) AS n, MIN(created_at) AS oldest FROM breaks WHERE resolved_at IS NULL GROUP BY " +
		"kind").Scan(&rows).Error
	found := map[string]observe.Backlog{}
	for _, kind := range slices.Concat(payout.MachineBreaks, payout.StatementBreaks) {
		found[string(kind)] = observe.Backlog{}
	}
	for _, row := range rows {
		found[row.Kind] = row.backlog()
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		v.Breaks = append(v.Breaks, observe.KindBacklog{Kind: kind, Backlog: found[kind]})
	}
	return err
}

// waiting counts approvals, outbox entries and quarantined hand-offs. An outbox entry whose run was
// started does not count until it is due again.
func (r *HealthReader) waiting(ctx context.Context, v *observe.HealthSnapshot) error {
	now, err := r.source.db.Clock(ctx)
	if err != nil {
		return err
	}
	waiting, err := r.source.waitingDecisions(ctx)
	if err != nil {
		return err
	}
	v.Approvals = waiting.backlog()
	var outbox backlogRow
	if err := r.source.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(IF(reached_at IS NULL, created_at, due_at)) AS oldest FROM outbox WHERE "+
		"reached_at IS NULL OR due_at < ?", now).Scan(&outbox).Error; err != nil {
		return err
	}
	v.Outbox = outbox.backlog()
	return r.source.read(ctx).Table("quarantine").Count(&v.Quarantined).Error
}

// lanes counts the pool's lanes by fence state; the table has one row a lane.
func (r *HealthReader) lanes(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []struct {
		State  string
		N      int64
		Oldest *time.Time
	}
	err := r.source.read(ctx).Raw("SELECT state, COUNT(*) AS n, MIN(shut_at) AS oldest FROM pool_lanes GROUP BY state").Scan(&rows).Error
	found := map[string]observe.Backlog{}
	for _, row := range rows {
		found[row.State] = observe.Backlog{Waiting: row.N, Oldest: mysql.OrZero(row.Oldest)}
	}
	for _, state := range []fence.LaneState{fence.LaneOpen, fence.LaneShut, fence.LaneRebuilding} {
		v.Lanes = append(v.Lanes, observe.LaneBacklog{State: string(state), Backlog: found[string(state)]})
	}
	if err != nil {
		return err
	}
	return r.source.read(ctx).Raw(selectLostGrabs, string(payout.BreakPoolLost)).Scan(&v.LostGrabs).Error
}

// selectLostGrabs adds up the lost grabs of unresolved breaks. The last rebuild of a lane would not
// do: the next one may have lost nothing.
const selectLostGrabs = `SELECT COALESCE(SUM(r.lost), 0) FROM breaks b JOIN pool_rebuilds r
	ON r.lane = CAST(SUBSTRING_INDEX(b.payment_id, '/', -1) AS UNSIGNED) AND r.from_epoch = CAST(SUBSTRING_INDEX(b.order_no, '/',
	-1) AS UNSIGNED)
	WHERE b.resolved_at IS NULL AND b.kind = ?`

func (r *HealthReader) repairs(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []struct {
		Kind string
		Made int64
	}
	err := r.source.read(ctx).Table("repairs").Select("kind", "made").Find(&rows).Error
	for _, row := range rows {
		v.Repairs[row.Kind] = row.Made
	}
	return err
}

func (r *HealthReader) books(ctx context.Context, v *observe.HealthSnapshot) error {
	b, err := mysql.ReadState(r.source.read(ctx))
	v.MySQLRestored = b.State == payout.MySQLRestored
	return err
}

const (
	// healthTransfers bounds the new transfers of one reading, healthPackets the packets that it
	// adds up. Under more load only the newest are checked; `hongbao ledger verify` checks
	// everything.
	healthTransfers = 2000
	healthPackets   = 100
	// healthMaxShares: larger packets take too long to be added up often.
	healthMaxShares = 20_000
)

// ledger adds up the packets with transfers since the last reading and those imbalanced then.
func (r *HealthReader) ledger(ctx context.Context, v *observe.HealthSnapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	books, err := mysql.ReadState(r.source.read(ctx))
	if err != nil {
		return err
	}
	if !books.RestoredAt.Equal(r.restoredAt) { // earlier transfers may be gone and their ids reused
		r.restoredAt, r.posted = books.RestoredAt, 0
	}
	var rows []struct {
		ID       int64
		PacketID string
	}
	err = r.source.read(ctx).Model(&mysql.TransferRow{}).Select("id", "packet_id").Where("id > ?", r.posted).Order("id DESC").
		Limit(healthTransfers).Find(&rows).Error
	if err != nil {
		return err
	}
	look := map[string]bool{}
	for id := range r.off {
		look[id] = true
	}
	for _, row := range rows {
		if row.PacketID != "" && len(look) < healthPackets+len(r.off) {
			look[row.PacketID] = true
		}
	}
	for id := range look {
		if err := r.addUp(ctx, id); err != nil {
			return err
		}
	}
	if len(rows) > 0 {
		r.posted = rows[0].ID
	}
	v.Imbalanced = int64(len(r.off))
	return r.source.read(ctx).Raw(selectSuspense, int64(money.Saturated), string(payout.AccountSuspense), string(payout.AccountSuspense),
		string(payout.BreakSecondSuccess)).Scan(&v.Suspense).Error
}

// selectSuspense adds up what order numbers with an unresolved break have in suspense: what moved twice,
// or was returned after it had been written off. Every such transfer has a break. Money recovered by other
// means has no transfer: staff resolve the break.
const selectSuspense = `SELECT LEAST(COALESCE(SUM(ABS(amount)), 0), ?) FROM (
	SELECT SUM(IF(t.debit = ?, t.amount, -CAST(t.amount AS DECIMAL(20)))) AS amount
	FROM breaks b FORCE INDEX (breaks_open) STRAIGHT_JOIN transfers t FORCE INDEX (transfers_order) ON t.order_no = b.order_no
	AND ? IN (t.debit, t.credit)
	WHERE b.resolved_at IS NULL AND b.kind = ? GROUP BY b.order_no) numbers`

func (r *HealthReader) addUp(ctx context.Context, packetID string) error {
	var shares int // 0 without a packet
	if err := r.source.read(ctx).Model(&mysql.PacketRow{}).Where("id = ?", packetID).Pluck("share_count", &shares).Error; err != nil {
		return err
	}
	if shares > healthMaxShares {
		return nil
	}
	b, err := mysql.Balances(r.source.read(ctx), packetID)
	if err != nil {
		return err
	}
	delete(r.off, packetID)
	if b.Imbalanced() {
		r.off[packetID] = struct{}{}
	}
	return nil
}
