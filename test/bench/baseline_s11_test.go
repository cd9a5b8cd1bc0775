package bench

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// s11Kind is a distributed lock per packet, after the first of six published ways (Java, Spring,
// MySQL): the remaining count is read and written under the packet's lock in Redis. Only one
// waiting user of a process at a time requests the lock, which costs less than if all did.
//
// Its known failures: everything is serial; after a crash of the holder all users wait for the end
// of the lock's lease; when the holder is slower than the lease, two are in the critical section.
var s11Kind = kind{
	number: "S1.1", name: "distributed lock a packet", open: openS11, rate: 10_000,
	loses:  "nothing, but no grab succeeds until the lock's lease ends",
	kills:  []trouble{{"counted", []violation{waits}}},
	stalls: []trouble{{"counted", []violation{waits, twice}}},
}

const (
	// s11Lease is longer than any test: leases end when a test says so.
	s11Lease = time.Hour
	// s11Poll is the interval at which a released lock of another process is noticed.
	s11Poll = time.Millisecond
)

//go:embed s11.lua
var s11Unlock string

type s11Design struct {
	ledger
	count, less *sql.Stmt
	turn        chan struct{} // full while a user of this process has or requests the lock; one packet is measured
}

func openS11(ctx context.Context, p place) (design, error) {
	d := &s11Design{turn: make(chan struct{}, 1)}
	var err error
	d.ledger, err = openLedger(ctx, p, map[**sql.Stmt]string{
		&d.count: "SELECT total, surplus FROM activity WHERE id = ?",
		&d.less:  "UPDATE activity SET surplus = surplus - 1 WHERE id = ?",
	})
	return d, err
}

func (d *s11Design) load(tb testing.TB, packet string, shares int) {
	d.addActivity(tb, packet, shares)
}

func s11Key(packet string) string { return "s11:" + packet + ":lock" }

func (d *s11Design) grab(ctx context.Context, packet, user string) (got answer, err error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	holder := rand.Text()
	locked, err := d.lock(ctx, packet, holder)
	if err != nil || !locked {
		return answer{busy, -1}, err
	}
	defer func() { err = errors.Join(err, d.rdb.Eval(ctx, s11Unlock, []string{s11Key(packet)}, holder).Err()) }()
	var total, surplus int
	if err := d.count.QueryRowContext(ctx, packet).Scan(&total, &surplus); err != nil {
		return answer{}, err
	}
	d.step("counted")
	if surplus <= 0 {
		return d.late(ctx, packet, user)
	}
	got = answer{won, total - surplus}
	err = d.inTx(ctx, func(tx *sql.Tx) (bool, error) {
		fresh, err := d.take(ctx, tx, packet, user, got.share)
		if err != nil || !fresh {
			got.outcome = had
			return false, err
		}
		return changed(tx.StmtContext(ctx, d.less).ExecContext(ctx, packet))
	})
	if err == nil && got.outcome == had {
		return d.late(ctx, packet, user)
	}
	return got, err
}

// lock waits for the packet's lock; false: it gave up, which only tests request.
func (d *s11Design) lock(ctx context.Context, packet, holder string) (bool, error) {
	for try := 1; ; try++ {
		err := d.rdb.SetArgs(ctx, s11Key(packet), holder, redis.SetArgs{Mode: "NX", TTL: s11Lease}).Err()
		if err == nil || !errors.Is(err, redis.Nil) {
			return err == nil, err
		}
		if try == d.tries {
			return false, nil
		}
		poll := time.NewTimer(s11Poll)
		select {
		case <-poll.C:
		case <-ctx.Done():
			poll.Stop()
			return false, context.Cause(ctx)
		}
	}
}

// lapse ends the lease.
func (d *s11Design) lapse(ctx context.Context, packet string) error {
	return d.rdb.Del(ctx, s11Key(packet)).Err()
}
