package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// s15Kind is a Redis list, after the fifth of six published ways: a share is popped off the list
// and the winner's row is written to MySQL. When the user has a row already, the share is pushed
// back.
//
// Its known failure: a crash between the pop and the row loses the share, which is in no store
// then.
var s15Kind = kind{
	number: "S1.5", name: "Redis list, then a row", open: openS15, rate: 60_000,
	loses:  "every share that was popped and is not yet a row",
	kills:  []trouble{{"popped", []violation{lostShare}}},
	stalls: []trouble{{"popped", nil}},
}

type s15Design struct{ ledger }

func openS15(ctx context.Context, p place) (design, error) {
	l, err := openLedger(ctx, p, nil)
	return &s15Design{l}, err
}

func s15Key(packet string) string { return "s15:" + packet + ":shares" }

func (d *s15Design) load(tb testing.TB, packet string, shares int) {
	d.fillList(tb, s15Key(packet), shares)
}

func (d *s15Design) grab(ctx context.Context, packet, user string) (answer, error) {
	seq, err := d.rdb.RPop(ctx, s15Key(packet)).Int()
	if errors.Is(err, redis.Nil) {
		return d.late(ctx, packet, user)
	}
	if err != nil {
		return answer{}, err
	}
	d.step("popped")
	_, err = d.insert.ExecContext(ctx, packet, user, seq, int64(share))
	if refusal(err) == duplicateKey {
		if err := d.rdb.RPush(ctx, s15Key(packet), seq).Err(); err != nil {
			return answer{}, err
		}
		return d.late(ctx, packet, user)
	}
	return answer{won, seq}, err
}
