package bench

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// s3Kind is the script of a published Java program with a payment API: pre-split list, task queue,
// draw hash and a counter of attempts per user. Workers take tasks off the queue and pay; a failed
// payment returns to the queue. The worker here writes the row that is paid from, once by its key.
//
// Its known failures: an empty packet counts as an attempt, so that a user with nine failed
// attempts is locked out of the next packet too; a crash of a worker loses its task, which is
// acknowledged and not paid; the doubled mean of s3Split yields shares below the minimum.
var s3Kind = kind{
	number: "S3", name: "Redis + Lua, task queue, counted tries", open: openS3, rate: sharesPerSecond,
	loses: "the task of each worker: acknowledged, and not paid",
	kills: []trouble{
		{"decided", nil},
		{"popped", []violation{unrecorded}},
	},
	stalls:  []trouble{{"decided", nil}, {"popped", nil}},
	emptied: []violation{lockedOut},
}

// s3Limit is the number of attempts of a user.
const s3Limit = 9

//go:embed s3.lua
var s3Source string

var s3Script = redis.NewScript(s3Source)

type s3Design struct {
	ledger
	pay *sql.Stmt
}

func openS3(ctx context.Context, p place) (design, error) {
	d := &s3Design{}
	var err error
	d.ledger, err = openLedger(ctx, p,
		map[**sql.Stmt]string{&d.pay: "INSERT IGNORE INTO detail (activity, user, seq, amount) VALUES (?, ?, ?, ?)"})
	return d, err
}

type s3Packet struct{ shares, tasks, drawn string }

func s3Keys(packet string) s3Packet {
	p := "s3:" + packet
	return s3Packet{p + ":shares", p + ":tasks", p + ":drawn"}
}

func (d *s3Design) load(tb testing.TB, packet string, shares int) {
	d.fillList(tb, s3Keys(packet).shares, shares)
}

func (d *s3Design) grab(ctx context.Context, packet, user string) (answer, error) {
	k := s3Keys(packet)
	reply, err := s3Script.Run(ctx, d.rdb, []string{k.shares, k.tasks, k.drawn, "s3:" + d.space + ":tries"}, user, s3Limit).Slice()
	if err != nil {
		return answer{}, err
	}
	d.step("decided")
	return readReply(reply)
}

// work is a payment worker.
func (d *s3Design) work(ctx context.Context, packet string) error {
	k := s3Keys(packet)
	for {
		task, err := d.rdb.RPop(ctx, k.tasks).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
		d.step("popped")
		number, user, _ := strings.Cut(task, ":")
		seq, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("task %q: %w", task, err)
		}
		if _, err := d.pay.ExecContext(ctx, packet, user, seq, int64(share)); err != nil {
			return errors.Join(err, d.rdb.LPush(ctx, k.tasks, task).Err())
		}
	}
}

func (d *s3Design) acknowledged(tb testing.TB, packet string) map[string]int {
	return d.hash(tb, s3Keys(packet).drawn)
}

// s3Split divides a total by the published formula: each share is a random number from 1 to the
// doubled mean of the remainder, the last share is the rest.
func s3Split(seed uint64, total int64, shares int) []int64 {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]int64, shares)
	for i := range out {
		left := int64(shares - i)
		if left == 1 {
			out[i] = total
			break
		}
		// When the doubled mean is less than 1, nothing can be drawn.
		out[i] = 1 + r.Int64N(max(2*total/left, 1))
		total -= out[i]
	}
	return out
}
