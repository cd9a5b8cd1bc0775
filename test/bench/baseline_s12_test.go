package bench

import (
	"context"
	"database/sql"
	"testing"
)

// s12Kind is an optimistic version on the packet's row, after the second of six published ways: a
// user whose version is still current wins, the others retry, up to a cap.
//
// Its known failure: one user wins per round; those who exhaust the cap leave with nothing while
// shares remain.
var s12Kind = kind{
	number: "S1.2", name: "optimistic version on the packet row", open: openS12, rate: 10_000, contended: "counted",
	loses:   "nothing",
	kills:   []trouble{{"counted", nil}},
	stalls:  []trouble{{"counted", nil}},
	crowded: []violation{refused},
}

type s12Design struct {
	ledger
	count, swap *sql.Stmt
}

func openS12(ctx context.Context, p place) (design, error) {
	d := &s12Design{}
	var err error
	d.ledger, err = openLedger(ctx, p, map[**sql.Stmt]string{
		&d.count: "SELECT total, surplus, version FROM activity WHERE id = ?",
		&d.swap:  "UPDATE activity SET surplus = surplus - 1, version = version + 1 WHERE id = ? AND version = ?",
	})
	return d, err
}

func (d *s12Design) load(tb testing.TB, packet string, shares int) {
	d.addActivity(tb, packet, shares)
}

func (d *s12Design) grab(ctx context.Context, packet, user string) (answer, error) {
	for range baselineRetries {
		var total, surplus, version int
		if err := d.count.QueryRowContext(ctx, packet).Scan(&total, &surplus, &version); err != nil {
			return answer{}, err
		}
		if surplus <= 0 {
			return d.late(ctx, packet, user)
		}
		d.step("counted")
		swapped, fresh := false, false
		err := d.inTx(ctx, func(tx *sql.Tx) (_ bool, err error) {
			if swapped, err = changed(tx.StmtContext(ctx, d.swap).ExecContext(ctx, packet, version)); err != nil || !swapped {
				return false, err
			}
			fresh, err = d.take(ctx, tx, packet, user, total-surplus)
			return fresh, err
		})
		switch {
		case err != nil:
			return answer{}, err
		case swapped && !fresh:
			return d.late(ctx, packet, user)
		case swapped:
			return answer{won, total - surplus}, nil
		}
	}
	return answer{busy, -1}, nil
}
