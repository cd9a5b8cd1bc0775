package bench

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// s16Kind is a Redis list with a backup list, after the sixth of six published ways. The winner's
// order goes to a list; a consumer moves it to the backup list (BRPOPLPUSH), writes it to MySQL and
// removes it from there. A recovery thread puts back what is still in the backup list; an order
// that MySQL then refuses goes to a repair log. Here one script takes the share and appends the
// order, which is safer than two commands: a crash between those would lose the share as in S1.5.
//
// Its known failure: an order that was written and not yet removed from the backup list is
// delivered again. MySQL refuses it, and the consumer cannot know that the row is its own: staff
// have to check the repair log. The same happens when the recovery thread takes a slow consumer for
// a dead one.
var s16Kind = kind{
	number: "S1.6", name: "Redis list, backup list, repair log", open: openS16, rate: sharesPerSecond,
	loses: "nothing, but an order that was written and not yet removed is left to staff",
	kills: []trouble{
		{"decided", nil},
		{"moved", nil},
		{"written", []violation{byHand}},
	},
	stalls: []trouble{{"decided", nil}, {"moved", []violation{byHand}}, {"written", []violation{byHand}}},
}

//go:embed s16.lua
var s16Source string

var s16Script = redis.NewScript(s16Source)

type s16Design struct {
	ledger
	occupy, repair *sql.Stmt
}

func openS16(ctx context.Context, p place) (design, error) {
	d := &s16Design{}
	var err error
	d.ledger, err = openLedger(ctx, p, map[**sql.Stmt]string{
		&d.occupy: "UPDATE redpack SET status = 1 WHERE activity = ? AND seq = ? AND status = 0",
		&d.repair: "INSERT INTO repair (activity, entry) VALUES (?, ?)",
	})
	return d, err
}

type s16Packet struct{ shares, users, orders, backup string }

func s16Keys(packet string) s16Packet {
	p := "s16:" + packet
	return s16Packet{p + ":shares", p + ":users", p + ":orders", p + ":backup"}
}

func (d *s16Design) load(tb testing.TB, packet string, shares int) {
	d.fillList(tb, s16Keys(packet).shares, shares)
	if d.rows {
		d.addRows(tb, "redpack", packet, shares)
	}
}

func (d *s16Design) grab(ctx context.Context, packet, user string) (answer, error) {
	k := s16Keys(packet)
	reply, err := s16Script.Run(ctx, d.rdb, []string{k.shares, k.users, k.orders}, user).Slice()
	if err != nil {
		return answer{}, err
	}
	d.step("decided")
	return readReply(reply)
}

// work is the consumer. LMOVE is BRPOPLPUSH without blocking, so that it ends.
func (d *s16Design) work(ctx context.Context, packet string) error {
	k := s16Keys(packet)
	for {
		order, err := d.rdb.LMove(ctx, k.orders, k.backup, "RIGHT", "LEFT").Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
		d.step("moved")
		if err := d.write(ctx, packet, order); err != nil {
			return err
		}
		d.step("written")
		if err := d.rdb.LRem(ctx, k.backup, 1, order).Err(); err != nil {
			return err
		}
	}
}

func (d *s16Design) write(ctx context.Context, packet, order string) error {
	number, user, _ := strings.Cut(order, ":")
	seq, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("order %q: %w", order, err)
	}
	written := false
	err = d.inTx(ctx, func(tx *sql.Tx) (_ bool, err error) {
		if written, err = changed(tx.StmtContext(ctx, d.occupy).ExecContext(ctx, packet, seq)); err != nil || !written {
			return false, err
		}
		written, err = d.take(ctx, tx, packet, user, seq)
		return written, err
	})
	if err == nil && !written {
		_, err = d.repair.ExecContext(ctx, packet, order)
	}
	return err
}

// lapse is the recovery thread.
func (d *s16Design) lapse(ctx context.Context, packet string) error {
	k := s16Keys(packet)
	for {
		err := d.rdb.LMove(ctx, k.backup, k.orders, "RIGHT", "LEFT").Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *s16Design) acknowledged(tb testing.TB, packet string) map[string]int {
	return d.hash(tb, s16Keys(packet).users)
}

// manualRepairs counts the orders that were left to staff.
func (d *s16Design) manualRepairs(tb testing.TB, packet string) (n int) {
	tb.Helper()
	if err := d.db.QueryRowContext(tb.Context(), "SELECT COUNT(*) FROM repair WHERE activity = ?", packet).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// readReply reads what s16.lua and s3.lua return: outcome, and the share or -1.
func readReply(reply []any) (answer, error) {
	if len(reply) == 2 {
		name, _ := reply[0].(string)
		text, _ := reply[1].(string)
		seq, err := strconv.Atoi(text)
		for _, o := range []outcome{won, had, none, barred} {
			if err == nil && o.String() == name {
				return answer{o, seq}, nil
			}
		}
	}
	return answer{}, fmt.Errorf("reply %q", reply)
}
