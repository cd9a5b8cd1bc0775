package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/store"
)

const (
	// crowdUser is the name prefix of users with one claim each.
	crowdUser = "crowd"
	// regular is the sender of most packets, and the recipient of their only share.
	regular = "regular"
	// rejected is the number of this sender's packets with this rare status: more than a page.
	rejected = pageSize + 1
	// filledYear is the year of the rows that only MySQL has.
	filledYear = 2020
)

// archive is an installation with a long history:
//
//   - a closed packet of `rows` shares, each claimed and paid; MySQL has it alone;
//   - a packet of as many shares, all claimed, that is still in Redis, and of
//     which MySQL has nothing but the packet;
//   - packets of one sender, of one share each.
type archive struct {
	*installation
	db         *sql.DB
	rows, sent int
	closed     string // packet that MySQL has
	live       string // packet that Redis has
	took       time.Duration
	reader     *caller
}

// sentFor returns the number of packets of the sender for a number of rows: at least some pages, because a page that is not full
// would be faster in a small archive.
func sentFor(rows int) int { return max(rows/50, 4*pageSize) }

// newArchive fills a new installation. Two statements write the rows of the closed packet: a million rows take half a minute. The claims
// in Redis are grabbed.
func newArchive(tb testing.TB, rows int) *archive {
	tb.Helper()
	a := &archive{installation: newInstallation(tb, stacktest.FreshRedis(tb, noRewrite...).Addr), rows: rows, sent: sentFor(rows)}
	a.reader = newCaller(a.addr, a.token)
	tb.Cleanup(a.reader.close)
	began := time.Now()
	var err error
	if a.db, err = store.OpenSQL(a.dsn); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = a.db.Close() })
	a.fill(tb)
	a.grabAll(tb)
	a.took = time.Since(began)
	return a
}

// row is a packet of an archive. Every share is 1 yuan.
type row struct {
	id, sender string
	status     packet.Status
	shares     int
	created    time.Time
}

// fill writes to MySQL the rows that the worker would write.
func (a *archive) fill(tb testing.TB) {
	tb.Helper()
	start := time.Date(filledYear, time.January, 2, 0, 0, 0, 0, time.UTC)
	a.closed = packet.NewID([]byte(a.app), "closed")
	rows := []row{{a.closed, "company", packet.StatusClosed, a.rows, start}}
	for i := range a.sent {
		r := row{packet.NewID([]byte(a.app), strconv.Itoa(i)), regular, packet.StatusClosed, 1, start.Add(time.Duration(i) * time.Minute)}
		if every := a.sent / rejected; i%every == 0 && i/every < rejected {
			r.status = packet.StatusRejected
		}
		rows = append(rows, r)
	}
	a.addPackets(tb, rows)
	a.exec(tb, `INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at)
		SELECT ?, seq, ?, CONCAT(?, seq), ? + INTERVAL seq * 1000 MICROSECOND FROM seq_0_to_`+strconv.Itoa(a.rows-1), a.closed, int64(share),
		crowdUser, start)
	a.exec(tb, `INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at)
		SELECT id, 0, total_amount, sender_id, created_at + INTERVAL 1 SECOND FROM packets
		WHERE sender_id = ? AND status = 'closed'`, regular)
	a.exec(tb, `INSERT INTO claims (packet_id, user_id, kind, share_index, amount, payment_id, app_id, claimed_at)
		SELECT packet_id, user_id, 'share', share_index, amount, CONCAT('p', packet_id, LOWER(LPAD(CONV(share_index, 10, 32), 4, '0'))),
			?, claimed_at FROM shares WHERE user_id IS NOT NULL`, a.app)
	a.exec(tb, `INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status,
		version, attempt, order_no, created_at, updated_at, settled_at)
		SELECT CONCAT('p', packet_id, LOWER(LPAD(CONV(share_index, 10, 32), 4, '0'))), 'p', packet_id, ?, user_id, share_index, user_id,
		amount, 'CNY', '', 'sandbox', 'paid', 2, 1,
			CONCAT('p', packet_id, LOWER(LPAD(CONV(share_index, 10, 32), 4, '0')), '01'), claimed_at, claimed_at, claimed_at
		FROM shares ORDER BY packet_id, share_index`, a.app)
}

// addPackets inserts packets with their statuses. Each has its own sealed seed, because a page of the API opens the seeds of its
// packets.
func (a *archive) addPackets(tb testing.TB, rows []row) {
	tb.Helper()
	const chunk = 500
	for ; len(rows) > 0; rows = rows[min(chunk, len(rows)):] {
		some := rows[:min(chunk, len(rows))]
		var args []any
		for _, r := range some {
			seed := packet.DeriveSeed(seedKey, r.id)
			sealed, err := packet.SealSeed(seedKey, r.id, seed)
			if err != nil {
				tb.Fatal(err)
			}
			var reason, failure, ended, none, best any
			switch r.status {
			case packet.StatusClosed:
				reason, ended, none, best = string(packet.CloseSoldOut), r.created.Add(time.Hour), 0, 0
			case packet.StatusRejected:
				failure = "declined"
			}
			var claimed, last any
			if ended != nil {
				claimed, last = r.shares, r.shares-1
			}
			args = append(args, r.id, a.app, r.sender, int64(share)*int64(r.shares), r.shares, packet.Commitment(seed), sealed, string(r.status),
				reason, failure,
				r.created, r.created, r.created.Add(24*time.Hour), ended, none, claimed, best, last, ended, r.created)
		}
		a.exec(tb, `INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting,
			metadata, body_hash, commitment, sealed_seed, charge_provider, payout_provider,
			status, close_reason, failure_code, created_at, opens_at, expires_at, books_closed_at, remainder, claimed_count, best_share, last_share,
			closed_at, updated_at) VALUES `+
			strings.Repeat(", (?, ?, ?, 'CNY', ?, ?, 'equal', 1, 0, '', '{}', 'body', ?, ?, 'sandbox', 'sandbox'"+strings.Repeat(", ?", 13)+")",
				len(some))[2:],
			args...)
	}
}

// grabAll makes users grab from a packet until it is sold out.
func (a *archive) grabAll(tb testing.TB) {
	tb.Helper()
	a.live = openPackets(tb, a.pool, a.app, 1, a.rows)[0]
	view, err := a.pool.View(tb.Context(), a.live)
	if err != nil {
		tb.Fatal(err)
	}
	a.addPackets(tb, []row{{a.live, view.Packet.SenderID, packet.StatusOpen, a.rows, view.Packet.CreatedAt}})
	ctx, cancel := context.WithCancelCause(tb.Context())
	defer cancel(nil)
	var callers sync.WaitGroup
	var last atomic.Int64
	for range 512 {
		callers.Go(func() {
			for ctx.Err() == nil {
				n := last.Add(1) - 1
				if n >= int64(a.rows) {
					return
				}
				got, err := a.pool.Grab(ctx, a.live, crowdUser+strconv.FormatInt(n, 10), packet.Profile{})
				if err == nil && got.Result != packet.GrabWon {
					err = errors.New(got.Result.String())
				}
				if err != nil {
					cancel(fmt.Errorf("grab %d: %w", n, err))
				}
			}
		})
	}
	callers.Wait()
	if err := context.Cause(ctx); err != nil {
		tb.Fatal(err)
	}
	a.exec(tb, "ANALYZE TABLE packets, shares, claims, payments")
}

func (a *archive) exec(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	if _, err := a.db.ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%.60s...: %v", statement, err)
	}
}
