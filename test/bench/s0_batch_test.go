package bench

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed s0_batch.lua
var s0BatchScript string

const (
	s0BatchUsers   = 100 // of one call
	s0BatchSenders = 2   // one batch is sent while the next one fills
)

// s0Waiting is a grab that waits for a place in a batch.
type s0Waiting struct {
	user   string
	record chan s0Record
}

type s0Record struct {
	text string
	err  error
}

// s0Batched is the baseline with the batching that its author proposes: waiting grabs of one packet are sent in one call.
func s0Batched(redisAddr string) subject {
	return subject{"S0 in batches", func(tb testing.TB, callers int, length time.Duration) attempt {
		rdb := redis.NewClient(&redis.Options{Addr: redisAddr, PoolSize: s0BatchSenders + 2, MaxRetries: -1, ReadTimeout: patience,
			DisableIdentity: true})
		k := s0Keys(strconv.FormatInt(packetSerial.Add(1), 10))
		loadS0(tb, rdb, k, sharesAt(enginePerSecond, length, callers, 1))
		waiting := make(chan s0Waiting, callers)
		for range s0BatchSenders {
			go sendS0(tb.Context(), rdb, k, waiting)
		}
		records := make([][]string, callers)
		a := attempt{finish: func(tb testing.TB, done int) {
			close(waiting)
			receipts := make([][]receipt, callers)
			for i, of := range records {
				for _, text := range of {
					e := decodeEnvelope(tb, text)
					receipts[i] = append(receipts[i], receipt{0, e.UserID, e.ID})
				}
			}
			answered := collectClaims(1, receipts)
			answered.total(tb, done)
			answered.agree(tb, 0, takenS0(tb, rdb, k))
			_ = rdb.Close()
		}}
		for i := range callers {
			users, answer := newUser(i), make(chan s0Record, 1)
			a.callers = append(a.callers, func() error {
				waiting <- s0Waiting{users.next(), answer}
				got := <-answer
				if got.err == nil && got.text == "" { // every user is new, so nothing is left
					return errSoldOut
				}
				if got.err == nil {
					records[i] = append(records[i], got.text)
				}
				return got.err
			})
		}
		return a
	}}
}

// sendS0 sends the waiting grabs, at most s0BatchUsers in one call, until waiting is closed.
func sendS0(ctx context.Context, rdb *redis.Client, k s0Packet, waiting <-chan s0Waiting) {
	for first := range waiting {
		batch := []s0Waiting{first}
		for more := true; more && len(batch) < s0BatchUsers; {
			select {
			case next, open := <-waiting:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		users := make([]any, len(batch))
		for i, w := range batch {
			users[i] = w.user
		}
		texts, err := rdb.Eval(ctx, s0BatchScript, []string{k.untaken, k.taken, k.users}, users...).StringSlice()
		if err == nil && len(texts) != len(batch) {
			err = fmt.Errorf("%d answers to %d grabs", len(texts), len(batch))
		}
		for i, w := range batch {
			if err != nil {
				w.record <- s0Record{err: err}
			} else {
				w.record <- s0Record{text: texts[i]}
			}
		}
	}
}
