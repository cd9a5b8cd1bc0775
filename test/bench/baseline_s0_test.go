package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// s0Kind is the grab in one Lua script, after the published design of a Java program: s0.lua by
// EVAL, and one thread that takes consumed envelopes off their list and updates the database in
// batches.
//
// Its known failures: nil means both "you have one" and "none left", so a lost reply cannot be
// recovered; the thread's batch is lost with its process.
var s0Kind = kind{
	number: "S0", name: "Redis + Lua, drained by a thread", open: openS0, rate: sharesPerSecond,
	loses: "the batch of the drainer; and a lost answer stays lost",
	kills: []trouble{
		{"decided", []violation{noAmount}},
		{"drained", []violation{noAmount, lostShare}},
	},
	stalls:   []trouble{{"decided", nil}, {"drained", nil}},
	repeated: []violation{noAmount, sameAnswer},
}

type s0Design struct {
	stores
	update *sql.Stmt
}

func openS0(ctx context.Context, p place) (design, error) {
	s, err := openStores(p)
	if err != nil {
		return nil, err
	}
	d := &s0Design{stores: s}
	if err := s.prepare(ctx, map[**sql.Stmt]string{&d.update: "UPDATE envelope SET user = ? WHERE activity = ? AND seq = ?"}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return d, nil
}

func (d *s0Design) load(tb testing.TB, packet string, shares int) {
	loadS0(tb, d.rdb, s0Keys(packet), shares)
	if d.rows {
		d.addRows(tb, "envelope", packet, shares)
	}
}

func (d *s0Design) grab(ctx context.Context, packet, user string) (answer, error) {
	k := s0Keys(packet)
	record, err := d.rdb.Eval(ctx, s0Script, []string{k.untaken, k.taken, k.users, user}).Text()
	if errors.Is(err, redis.Nil) {
		return answer{nothing, -1}, nil
	}
	if err != nil {
		return answer{}, err
	}
	d.step("decided")
	var e envelope
	if err := json.Unmarshal([]byte(record), &e); err != nil {
		return answer{}, fmt.Errorf("envelope %q: %w", record, err)
	}
	return answer{won, e.ID}, nil
}

// work is the drainer. A batch is one transaction with one update per row, like the batches of
// JDBC.
func (d *s0Design) work(ctx context.Context, packet string) error {
	const batch = 1_000
	for {
		records, err := d.rdb.RPopCount(ctx, s0Keys(packet).taken, batch).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
		d.step("drained")
		err = d.inTx(ctx, func(tx *sql.Tx) (bool, error) {
			update := tx.StmtContext(ctx, d.update)
			for _, r := range records {
				var e envelope
				if err := json.Unmarshal([]byte(r), &e); err != nil {
					return false, fmt.Errorf("envelope %q: %w", r, err)
				}
				if _, err := update.ExecContext(ctx, e.UserID, packet, e.ID); err != nil {
					return false, err
				}
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
}

func (d *s0Design) lapse(context.Context, string) error { return nil }

func (d *s0Design) acknowledged(tb testing.TB, packet string) map[string]int {
	return takenS0(tb, d.rdb, s0Keys(packet))
}

func (d *s0Design) booked(tb testing.TB, packet string) map[string]int {
	return d.holders(tb, "SELECT user, seq FROM envelope WHERE activity = ? AND user IS NOT NULL", packet)
}
