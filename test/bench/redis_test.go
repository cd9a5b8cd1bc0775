package bench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

//go:embed s0.lua
var s0Script string

// enginePerSecond exceeds the grabs a second of pool.Grab on two cores.
const enginePerSecond = 500_000

// engine is pool.Grab, called as the API calls it.
func engine(redisAddr string, packets int) subject {
	return engineWithLanes(redisAddr, packets, pool.DefaultLanes)
}

func engineWithLanes(redisAddr string, packets, lanes int) subject {
	return subject{"pool.Grab", func(tb testing.TB, callers int, length time.Duration) attempt {
		p, err := pool.Open(tb.Context(), pool.Config{Addr: redisAddr, Lanes: lanes, Timeout: patience})
		if err != nil {
			tb.Fatal(err)
		}
		ids := openPackets(tb, p, "bench", packets, sharesAt(enginePerSecond, length, callers, packets))
		receipts := make([][]receipt, callers)
		a := attempt{finish: func(tb testing.TB, done int) {
			answered := collectClaims(packets, receipts)
			answered.total(tb, done)
			settle(tb, p, ids, answered)
			if err := p.Close(); err != nil {
				tb.Error(err)
			}
		}}
		for i := range callers {
			users, turn := newUser(i), i
			a.callers = append(a.callers, func() error {
				name, n := users.next(), turn%packets
				turn++
				got, err := p.Grab(tb.Context(), ids[n], name, packet.Profile{})
				if err != nil {
					return err
				}
				if got.Result == packet.GrabSoldOut {
					return errSoldOut
				}
				if got.Result != packet.GrabWon {
					return fmt.Errorf("%s: %v", name, got.Result)
				}
				receipts[i] = append(receipts[i], receipt{n, name, got.Claim.ShareIndex})
				return nil
			})
		}
		return a
	}}
}

// envelope is what s0.lua hands out.
type envelope struct {
	ID     int    `json:"id"`
	Money  int64  `json:"money"`
	UserID string `json:"userId,omitempty"`
}

// s0Packet are the keys of one packet of the baseline.
type s0Packet struct{ untaken, taken, users string }

// s0 is the baseline: EVAL with the script's text on every call, and a connection
// for each caller.
func s0(redisAddr string, packets int) subject {
	return subject{"S0 script", func(tb testing.TB, callers int, length time.Duration) attempt {
		// Retries off: a script that is not repeatable must not be sent twice.
		rdb := redis.NewClient(&redis.Options{Addr: redisAddr, PoolSize: callers + 2, MaxRetries: -1, ReadTimeout: patience,
			DisableIdentity: true})
		keys := make([]s0Packet, packets)
		for i := range keys {
			keys[i] = s0Keys(strconv.FormatInt(packetSerial.Add(1), 10))
			loadS0(tb, rdb, keys[i], sharesFor(length, callers, packets))
		}
		type answer struct {
			packet int
			record string
		}
		answers := make([][]answer, callers)
		conns := make([]*redis.Conn, callers)
		a := attempt{finish: func(tb testing.TB, done int) {
			receipts := make([][]receipt, callers)
			for i, of := range answers {
				for _, got := range of {
					e := decodeEnvelope(tb, got.record)
					receipts[i] = append(receipts[i], receipt{got.packet, e.UserID, e.ID})
				}
			}
			answered := collectClaims(packets, receipts)
			answered.total(tb, done)
			for i := range keys {
				answered.agree(tb, i, takenS0(tb, rdb, keys[i]))
			}
			for _, c := range conns {
				_ = c.Close()
			}
			_ = rdb.Close()
		}}
		for i := range callers {
			users, turn, ctx := newUser(i), i, tb.Context()
			conns[i] = rdb.Conn()
			a.callers = append(a.callers, func() error {
				name, n := users.next(), turn%packets
				turn++
				k := keys[n]
				record, err := conns[i].Eval(ctx, s0Script, []string{k.untaken, k.taken, k.users, name}).Text()
				if errors.Is(err, redis.Nil) { // sold out: every user is new
					return errSoldOut
				}
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				answers[i] = append(answers[i], answer{n, record})
				return nil
			})
		}
		return a
	}}
}

// s0Keys are the keys of the packet of the baseline that has that name.
func s0Keys(name string) s0Packet {
	name = "s0:" + name
	return s0Packet{name + ":untaken", name + ":taken", name + ":users"}
}

// loadS0 makes a packet of the baseline.
func loadS0(tb testing.TB, rdb *redis.Client, k s0Packet, shares int) {
	tb.Helper()
	const chunk = 5_000
	for from := 0; from < shares; from += chunk {
		var envelopes []any
		for id := from; id < min(shares, from+chunk); id++ {
			text, err := json.Marshal(envelope{ID: id, Money: int64(share)})
			if err != nil {
				tb.Fatal(err)
			}
			envelopes = append(envelopes, text)
		}
		if err := rdb.LPush(tb.Context(), k.untaken, envelopes...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
}

// takenS0 returns the shares that the baseline has handed out, by user. It fails the test unless the map of users agrees.
func takenS0(tb testing.TB, rdb *redis.Client, k s0Packet) map[string]int {
	tb.Helper()
	records, err := rdb.LRange(tb.Context(), k.taken, 0, -1).Result()
	if err != nil {
		tb.Fatal(err)
	}
	stored := make(map[string]int, len(records))
	for _, r := range records {
		e := decodeEnvelope(tb, r)
		stored[e.UserID] = e.ID
	}
	users, err := rdb.HLen(tb.Context(), k.users).Result()
	if err != nil {
		tb.Fatal(err)
	}
	if len(stored) != len(records) || int(users) != len(records) {
		tb.Fatalf("%d envelopes taken, by %d users; %d in the map", len(records), len(stored), users)
	}
	return stored
}

func decodeEnvelope(tb testing.TB, text string) envelope {
	tb.Helper()
	var e envelope
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		tb.Fatal(err)
	}
	return e
}

// redisVersion returns the version of the server.
func redisVersion(ctx context.Context, addr string) (string, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	info, err := rdb.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	return info["Server"]["redis_version"], nil
}
