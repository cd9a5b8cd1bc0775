package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/pool"
	"hongbao/internal/store"
)

// oursKind is pool.Grab. Its background work is that of relay and payout workflow until the claim is recorded: it reads the hand-offs,
// records each claim by store.RecordClaim and acknowledges.
var oursKind = kind{
	number: "ours", name: "pool.Grab", open: openOurs, rate: 2 * sharesPerSecond,
	loses:  "nothing",
	kills:  []trouble{{"decided", nil}, {"read", nil}, {"recorded", nil}},
	stalls: []trouble{{"decided", nil}, {"read", nil}, {"recorded", nil}},
}

type oursDesign struct {
	place
	pool  *pool.Pool
	queue *pool.Handoffs
	store *store.Store
	db    *sql.DB
}

func openOurs(ctx context.Context, p place) (design, error) {
	d := &oursDesign{place: p}
	var err error
	if d.store, err = store.Open(store.Config{DSN: p.dsn, MaxOpenConns: sqlConns}); err != nil {
		return nil, err
	}
	if d.db, err = store.OpenSQL(p.dsn); err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	if d.pool, err = pool.Open(ctx, pool.Config{Addr: p.redis, Timeout: patience}); err != nil {
		return nil, errors.Join(err, d.db.Close(), d.store.Close())
	}
	if d.queue, err = pool.NewHandoffs(ctx, d.pool); err != nil {
		return nil, errors.Join(err, d.pool.Close(), d.db.Close(), d.store.Close())
	}
	return d, nil
}

func (d *oursDesign) close() error {
	return errors.Join(d.queue.Close(), d.pool.Close(), d.db.Close(), d.store.Close())
}

func (d *oursDesign) load(tb testing.TB, id string, shares int) {
	tb.Helper()
	openPacket(tb, d.pool, id, "bench", shares)
	if !d.rows {
		return
	}
	a := &archive{installation: &installation{app: "bench", dsn: d.dsn}, db: d.db}
	a.addPackets(tb, []row{{id, "sender", packet.StatusOpen, shares, time.Now().UTC()}})
	a.exec(tb, "INSERT INTO shares (packet_id, share_index, amount) SELECT ?, seq, ? FROM seq_0_to_"+strconv.Itoa(shares-1), id, int64(share))
}

func (d *oursDesign) grab(ctx context.Context, id, user string) (answer, error) {
	got, err := d.pool.Grab(ctx, id, user, packet.Profile{})
	if err != nil {
		return answer{}, err
	}
	d.step("decided")
	switch got.Result {
	case packet.GrabWon:
		return answer{won, got.Claim.ShareIndex}, nil
	case packet.GrabReplayed:
		return answer{had, got.Claim.ShareIndex}, nil
	case packet.GrabSoldOut:
		return answer{none, -1}, nil
	}
	return answer{}, fmt.Errorf("%s: %v", user, got.Result)
}

// handOffs is the number of hand-offs that one call reads.
const handOffs = 50

// work is the relay of one lane: first the entries that this consumer has read before, then new
// ones.
func (d *oursDesign) work(ctx context.Context, id string) error {
	lane := packet.Lane(id, d.pool.Lanes())
	for after := "0"; ; {
		b, err := d.queue.ReadOwnPending(ctx, lane, d.process, after, handOffs)
		if err != nil {
			return err
		}
		if b.Empty() {
			break
		}
		after = b.Last
		if err := d.record(ctx, lane, b); err != nil {
			return err
		}
	}
	for {
		b, err := d.queue.Read(ctx, lane, d.process, handOffs, time.Millisecond)
		if err != nil || b.Empty() {
			return err
		}
		if err := d.record(ctx, lane, b); err != nil {
			return err
		}
	}
}

// lapse ends the leases of all other consumers, and takes over what they have read.
func (d *oursDesign) lapse(ctx context.Context, id string) error {
	lane := packet.Lane(id, d.pool.Lanes())
	others, err := d.queue.Consumers(ctx, lane)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Name == d.process {
			continue
		}
		for {
			b, err := d.queue.TakeOver(ctx, lane, other.Name, d.process, handOffs)
			if err != nil {
				return err
			}
			if b.Empty() {
				break
			}
			if err := d.record(ctx, lane, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *oursDesign) record(ctx context.Context, lane int, b pool.Batch) error {
	if len(b.Undecodable) > 0 {
		return fmt.Errorf("hand-offs that cannot be decoded: %+v", b.Undecodable)
	}
	d.step("read")
	entries := make([]string, len(b.HandOffs))
	claims := 0
	for i, h := range b.HandOffs {
		entries[i] = h.EntryID
		claims += len(h.Claims)
		for _, c := range h.Claims {
			if _, err := d.store.RecordClaim(ctx, c); err != nil {
				return err
			}
		}
	}
	if claims > 0 {
		d.step("recorded")
	}
	return d.queue.Ack(ctx, lane, entries...)
}

func (d *oursDesign) acknowledged(tb testing.TB, id string) map[string]int {
	tb.Helper()
	claims, err := d.pool.Claims(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	out := make(map[string]int, len(claims))
	for _, c := range claims {
		out[c.UserID] = c.ShareIndex
	}
	return out
}

func (d *oursDesign) booked(tb testing.TB, id string) map[string]int {
	tb.Helper()
	return holders(tb, d.db, "SELECT user_id, share_index FROM shares WHERE packet_id = ? AND user_id IS NOT NULL", id)
}
