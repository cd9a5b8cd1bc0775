package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// View returns a packet in Redis at one moment, also the tombstone of a retired one.
//
// Errors: ErrNotFound, ErrUnavailable, ErrMalformed.
func (p *Pool) View(ctx context.Context, id string) (packet.PoolView, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return packet.PoolView{}, err
	}
	reply, err := p.runRead(ctx, viewScript, id, []string{keys.packet})
	if err != nil {
		return packet.PoolView{}, redisError("view packet "+id, err)
	}
	return decodeView(id, reply)
}

// decodeView decodes the reply of view.lua.
func decodeView(id string, reply []any) (packet.PoolView, error) {
	h, err := readHash(reply, 0)
	if err != nil {
		return packet.PoolView{}, fmt.Errorf("view packet %s: %w", id, err)
	}
	if len(h.fields) == 0 {
		return packet.PoolView{}, fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	return h.view(id)
}

// ViewsUnfenced is Views without the fence, for a rebuild and a recovery; unreadable packets
// are missing.
//
// Errors: ErrUnavailable.
func (p *Pool) ViewsUnfenced(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	found := make([]*redis.MapStringStringCmd, len(ids))
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, id := range ids {
			found[i] = pipe.HGetAll(ctx, p.keys.of(id).packet)
		}
		return nil
	})
	if err != nil && !isReply(err) {
		return nil, redisError("read packets without the fence", err)
	}
	views := make(map[string]packet.PoolView, len(ids))
	for i, id := range ids {
		h := &packetHash{now: time.Now(), fields: found[i].Val()}
		if view, err := h.view(id); err == nil && len(h.fields) > 0 {
			views[id] = view
		}
	}
	return views, nil
}

// ClaimedCount returns the number of claimed shares of a packet, from its counter.
//
// Errors: ErrNotFound (also for a retired packet), ErrUnavailable, ErrMalformed.
func (p *Pool) ClaimedCount(ctx context.Context, id string) (int, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return 0, err
	}
	var count *redis.StringCmd
	if _, err := p.readFenced(ctx, p.laneOf(id),
		func(pipe redis.Pipeliner) { count = pipe.HGet(ctx, keys.packet, "claimed") }); err != nil {
		return 0, fmt.Errorf("claimed count of packet %s: %w", id, err)
	}
	s, err := count.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return 0, fmt.Errorf("packet %s: %w", id, ErrNotFound)
	case err != nil:
		return 0, redisError("claimed count of packet "+id, err)
	}
	claimed, err := parseClaimed(s)
	if err != nil {
		return 0, fmt.Errorf("claimed count of packet %s: %w: %w", id, ErrMalformed, err)
	}
	return int(claimed.count), nil
}

// claimedField is the field claimed of a packet's key, as grab.lua describes it.
type claimedField struct{ count, amount, best, bestAmount, lastAt int64 }

// String returns the field as the scripts write it.
func (c claimedField) String() string {
	return fmt.Sprintf("%d:%d:%d:%d:%d", c.count, c.amount, c.best, c.bestAmount, c.lastAt)
}

func parseClaimed(s string) (c claimedField, err error) {
	parts := strings.Split(s, ":")
	to := []*int64{&c.count, &c.amount, &c.best, &c.bestAmount, &c.lastAt}
	if len(parts) != len(to) {
		return c, fmt.Errorf("claimed %q has %d parts", s, len(parts))
	}
	for i, part := range parts {
		if *to[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return c, fmt.Errorf("claimed %q: %w", s, err)
		}
	}
	return c, nil
}

// packetHash holds the fields of a packet's key, and the time of reading. Several scripts
// return it as {..., now in ms, flat list}.
type packetHash struct {
	now    time.Time
	fields map[string]string
	err    error // of the first unreadable field
}

// readHash decodes now and the flat list of a script's reply, from element i on.
func readHash(reply []any, i int) (*packetHash, error) {
	now, err := number(reply, i)
	if err != nil {
		return nil, err
	}
	flat, err := list(reply, i+1)
	if err != nil {
		return nil, err
	}
	h := &packetHash{now: fromMs(now), fields: make(map[string]string, len(flat)/2)}
	for j := 0; j+1 < len(flat); j += 2 {
		name, err := text(flat, j)
		if err != nil {
			return nil, err
		}
		if h.fields[name], err = text(flat, j+1); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// view decodes the hash of packet id.
func (h *packetHash) view(id string) (packet.PoolView, error) {
	v := h.progress(id)
	h.json("first", &v.First)
	if v.Retired {
		v.Packet.BodyHash = h.fields["body_hash"]
		return v, h.failed(id)
	}
	v.Packet = packet.Packet{}
	h.json("packet", &v.Packet)
	h.json("failure", &v.Failure)
	if _, ok := h.fields["kept"]; ok {
		v.KeptCount = int(h.int("kept"))
	}
	v.Packet.CreatedAt, v.Packet.OpensAt, v.Packet.ExpiresAt = h.time("created_at"), h.time("opens_at"), h.time("expires_at")
	v.BusyUntil = h.time("busy_until")
	v.Action = []byte(h.fields["action"])
	if h.err == nil && v.Packet.ID != id {
		h.err = fmt.Errorf("key holds packet %q", v.Packet.ID)
	}
	return v, h.failed(id)
}

// progress decodes progressFields.
func (h *packetHash) progress(id string) packet.PoolView {
	v := packet.PoolView{Packet: packet.Packet{ID: id}, State: packet.PoolState(h.fields["state"]),
		Retired: h.fields["retired"] == "1", Now: h.now}
	if v.Retired {
		return v
	}
	claimed, err := parseClaimed(h.fields["claimed"])
	if err != nil && h.err == nil {
		h.err = err
	}
	if claimed.count > 0 {
		best := int(claimed.best)
		v.BestShare = &best
	}
	v.RemainingCount = int(h.int("share_count") - claimed.count)
	v.ClaimedCount, v.ClaimedAmount = int(claimed.count), money.Fen(claimed.amount)
	v.Reason = packet.CloseReason(h.fields["reason"])
	return v
}

func (h *packetHash) failed(id string) error {
	if h.err != nil {
		return fmt.Errorf("packet %s: %w: %w", id, ErrMalformed, h.err)
	}
	return nil
}

func (h *packetHash) int(name string) int64 {
	n, err := strconv.ParseInt(h.fields[name], 10, 64)
	if err != nil && h.err == nil {
		h.err = fmt.Errorf("%s: %w", name, err)
	}
	return n
}

func (h *packetHash) time(name string) time.Time { return fromMs(h.int(name)) }

// json decodes an optional field; a missing one leaves `to` unchanged.
func (h *packetHash) json(name string, to any) {
	s, ok := h.fields[name]
	if !ok {
		return
	}
	if err := json.Unmarshal([]byte(s), to); err != nil && h.err == nil {
		h.err = fmt.Errorf("%s: %w", name, err)
	}
}

func fromMs(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
