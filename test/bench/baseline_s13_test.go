package bench

import (
	"context"
	"database/sql"
	"testing"
)

// s13Kind is the pessimistic lock, after the third of six published ways: SELECT
// ... FOR UPDATE on the packet's row, then the change, in one transaction.
//
// Its known failures: everything is serial; a holder that is stopped or disconnected keeps the row
// locked until the server drops its connection. The server notices a killed process at once.
var s13Kind = kind{
	number: "S1.3", name: "SELECT ... FOR UPDATE on the packet row", open: openS13, rate: 10_000, released: true,
	loses:  "nothing; but the lock of a disconnected machine stays",
	kills:  []trouble{{"locked", nil}},
	stalls: []trouble{{"locked", []violation{waits}}},
}

type s13Design struct {
	ledger
	count, less *sql.Stmt
}

func openS13(ctx context.Context, p place) (design, error) {
	d := &s13Design{}
	lock := "SELECT total, surplus FROM activity WHERE id = ? FOR UPDATE"
	if p.tries > 0 {
		lock += " NOWAIT"
	}
	var err error
	d.ledger, err = openLedger(ctx, p,
		map[**sql.Stmt]string{&d.count: lock, &d.less: "UPDATE activity SET surplus = surplus - 1 WHERE id = ?"})
	return d, err
}

func (d *s13Design) load(tb testing.TB, packet string, shares int) {
	d.addActivity(tb, packet, shares)
}

func (d *s13Design) grab(ctx context.Context, packet, user string) (answer, error) {
	got := answer{none, -1}
	err := d.inTx(ctx, func(tx *sql.Tx) (bool, error) {
		var total, surplus int
		if err := tx.StmtContext(ctx, d.count).QueryRowContext(ctx, packet).Scan(&total, &surplus); err != nil {
			return false, err
		}
		d.step("locked")
		if surplus <= 0 {
			return false, nil
		}
		fresh, err := d.take(ctx, tx, packet, user, total-surplus)
		if err != nil || !fresh {
			return false, err
		}
		got = answer{won, total - surplus}
		return changed(tx.StmtContext(ctx, d.less).ExecContext(ctx, packet))
	})
	if n := refusal(err); n == lockWait || n == lockedNowait {
		return answer{busy, -1}, nil
	}
	if err == nil && got.outcome == none {
		return d.late(ctx, packet, user)
	}
	return got, err
}
