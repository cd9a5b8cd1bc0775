package bench

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
)

// s14Kind is pre-split rows with an optimistic lock, after the fourth of six
// published ways: a random free row is chosen and taken if it is still free; else
// another one is chosen, up to a cap. The row is found by index from a random
// place on.
//
// Its known failure is collisions: the fewer rows are left, the more users choose the same one, and
// leave with nothing while shares remain.
var s14Kind = kind{
	number: "S1.4", name: "pre-split rows, a random free one", open: openS14, rate: 10_000, contended: "chosen",
	loses:   "nothing",
	kills:   []trouble{{"chosen", nil}},
	stalls:  []trouble{{"chosen", nil}},
	crowded: []violation{refused},
}

type s14Design struct {
	ledger
	total, free, occupy *sql.Stmt
	totals              sync.Map // of packets seen; it never changes
}

func openS14(ctx context.Context, p place) (design, error) {
	d := &s14Design{}
	var err error
	d.ledger, err = openLedger(ctx, p, map[**sql.Stmt]string{
		&d.total:  "SELECT total FROM activity WHERE id = ?",
		&d.free:   "SELECT seq, version FROM redpack WHERE activity = ? AND status = 0 AND seq >= ? ORDER BY seq LIMIT 1",
		&d.occupy: "UPDATE redpack SET status = 1, version = version + 1 WHERE activity = ? AND seq = ? AND version = ? AND status = 0",
	})
	return d, err
}

func (d *s14Design) load(tb testing.TB, packet string, shares int) {
	d.addActivity(tb, packet, shares)
	d.addRows(tb, "redpack", packet, shares)
}

func (d *s14Design) totalOf(ctx context.Context, packet string) (int, error) {
	if n, ok := d.totals.Load(packet); ok {
		return n.(int), nil
	}
	var n int
	if err := d.total.QueryRowContext(ctx, packet).Scan(&n); err != nil {
		return 0, err
	}
	d.totals.Store(packet, n)
	return n, nil
}

func (d *s14Design) grab(ctx context.Context, packet, user string) (answer, error) {
	total, err := d.totalOf(ctx, packet)
	if err != nil {
		return answer{}, err
	}
	for range baselineRetries {
		var seq, version int
		from := d.draw(total)
		err := d.free.QueryRowContext(ctx, packet, from).Scan(&seq, &version)
		if errors.Is(err, sql.ErrNoRows) && from > 0 { // none after it; continue from the beginning
			err = d.free.QueryRowContext(ctx, packet, 0).Scan(&seq, &version)
		}
		if errors.Is(err, sql.ErrNoRows) {
			return d.late(ctx, packet, user)
		}
		if err != nil {
			return answer{}, err
		}
		d.step("chosen")
		occupied, fresh := false, false
		err = d.inTx(ctx, func(tx *sql.Tx) (_ bool, err error) {
			if occupied, err = changed(tx.StmtContext(ctx, d.occupy).ExecContext(ctx, packet, seq, version)); err != nil || !occupied {
				return false, err
			}
			fresh, err = d.take(ctx, tx, packet, user, seq)
			return fresh, err
		})
		switch {
		case refusal(err) == deadlock: // rolled back: another user took it
		case err != nil:
			return answer{}, err
		case occupied && !fresh:
			return d.late(ctx, packet, user)
		case occupied:
			return answer{won, seq}, nil
		}
	}
	return answer{busy, -1}, nil
}
