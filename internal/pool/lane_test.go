package pool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// batchOf returns grabs as a lane would have queued them.
func batchOf(ctx context.Context, who ...[2]string) *batch {
	b := &batch{of: map[string]*grabBatch{}}
	for _, w := range who {
		q := b.of[w[0]]
		if q == nil {
			q = newGrabBatch(w[0], 0)
			b.of[w[0]] = q
			b.batches = append(b.batches, q)
		}
		n := len(q.grabs)
		b.at = append(b.at, func() (packet.GrabAnswer, error) { <-q.done; return q.result(n) })
		q.grabs = append(q.grabs, grab{ctx: ctx, user: w[1]})
	}
	return b
}

// batch is the batches of one call, with the results in the order of the grabs.
type batch struct {
	of      map[string]*grabBatch
	batches []*grabBatch
	at      []func() (packet.GrabAnswer, error)
}

func (b *batch) answer(i int) (packet.GrabAnswer, error) { return b.at[i]() }

// flush sends a batch at once, as the call of a lane.
func flush(p *Pool, lane int, b *batch) {
	p.serveCalls([]*call{{lane: p.lanes[lane], batches: b.batches}})
}

func results(t *testing.T, b *batch) []packet.GrabAnswer {
	t.Helper()
	var got []packet.GrabAnswer
	for i := range b.at {
		grabbed, err := b.answer(i)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, grabbed)
	}
	return got
}

func TestBatch(t *testing.T) { onEach(t, testBatch) }

func testBatch(t *testing.T, on setup) {
	p := on.open(t)
	mates := laneMates(t, p, 4, 2)
	open1, open2, funding, missing := mates[0], mates[1], mates[2], mates[3]
	openPacket(t, p, open1)
	openPacket(t, p, open2)
	stage(t, p, funding)
	before1, before2, beforeF := dump(t, p, open1.ID), dump(t, p, open2.ID), dump(t, p, funding.ID)

	batch := batchOf(t.Context(),
		[2]string{open1.ID, "a"},
		[2]string{open2.ID, "a"},
		[2]string{open1.ID, "a"}, // repeated: merged
		[2]string{funding.ID, "a"},
		[2]string{missing.ID, "a"},
		[2]string{open1.ID, "b"},
		[2]string{open1.ID, "c"},
		[2]string{open1.ID, "c"},
		[2]string{open1.ID, "b"},
	)
	flush(p, packet.Lane(open1.ID, p.Lanes()), batch)
	got := results(t, batch)
	for i, want := range []struct {
		result packet.GrabResult
		share  int
	}{
		{packet.GrabWon, 0}, {packet.GrabWon, 0}, {packet.GrabReplayed, 0}, {packet.GrabNotOpenYet, 0}, {packet.GrabNotFound, 0},
		{packet.GrabWon, 1}, {packet.GrabSoldOut, 0}, {packet.GrabSoldOut, 0}, {packet.GrabReplayed, 1},
	} {
		if got[i].Result != want.result || got[i].Claim.ShareIndex != want.share {
			t.Errorf("grab %d: %+v, want %+v", i, got[i], want)
		}
	}
	at := strconv.FormatInt(got[0].Claim.ClaimedAt.UnixMilli(), 10)
	changed(t, p, open1.ID, before1, map[string]string{"claimed": "2:200:0:100:" + at})
	changed(t, p, open2.ID, before2, map[string]string{"claimed": "1:100:0:100:" + at})
	unchanged(t, p, funding.ID, beforeF)
	// One entry for all winners of the call.
	entries := dump(t, p, open1.ID).HandOffs
	parts := map[string]claimsPart{}
	for _, field := range entries[len(entries)-1] {
		if id, value, _ := strings.Cut(field, "="); id != fieldKind {
			part, err := decodePart(id, value)
			must(t, err)
			parts[id] = part
		}
	}
	first, second := parts[open1.ID], parts[open2.ID]
	if len(entries) != 2 || len(parts) != 2 || !slices.Equal(first.users, []string{"a", "b"}) || !first.last || second.last ||
		second.seq != first.seq+2 {
		t.Errorf("hand-offs %+v", parts)
	}
}

// TestBatchWithDamagedPacket: a damaged packet does not affect others of its lane.
func TestBatchWithDamagedPacket(t *testing.T) { onEach(t, testBatchWithDamagedPacket) }

func testBatchWithDamagedPacket(t *testing.T, on setup) {
	p := on.open(t)
	mates := laneMates(t, p, 2, 2)
	good, bad := mates[0], mates[1]
	openPacket(t, p, good)
	openPacket(t, p, bad)
	setField(t, p, bad.ID, "share_count", 5)
	before := dump(t, p, bad.ID)
	batch := batchOf(t.Context(), [2]string{bad.ID, "u"}, [2]string{good.ID, "u"})
	flush(p, packet.Lane(good.ID, p.Lanes()), batch)
	_, err := batch.answer(0)
	wantErr(t, err, ErrInconsistent)
	if got, err := batch.answer(1); err != nil || got.Result != packet.GrabWon {
		t.Errorf("good packet: %+v, %v", got, err)
	}
	unchanged(t, p, bad.ID, before)
}

func TestBatchScriptRefusesOneUserTwice(t *testing.T) { onEach(t, testBatchScriptRefusesOneUserTwice) }

func testBatchScriptRefusesOneUserTwice(t *testing.T, on setup) {
	p := on.open(t)
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	before := dump(t, p, pk.ID)
	k := p.keys.of(pk.ID)
	if err := runScript(t, p, grabScript, pk.ID, []string{k.handoff, k.packet, k.shares, k.winners, k.eligible, k.order}, "mark",
		"\x92\xa1u\xa1u", "").Err(); err == nil {
		t.Error("no error")
	}
	unchanged(t, p, pk.ID, before)
}

func TestBatchPanicReachesEveryCaller(t *testing.T) {
	broken := &Pool{cfg: Config{Timeout: time.Second, Logger: quiet}, base: t.Context()} // no client
	b := batchOf(t.Context(), [2]string{newPacket(t, 1).ID, "u"}, [2]string{newPacket(t, 1).ID, "v"})
	broken.keys = newKeyspace(DefaultLanes)
	broken.serveCalls([]*call{{lane: &lane{}, batches: b.batches}})
	for i := range b.at {
		_, err := b.answer(i)
		wantErr(t, err, errPanicked)
	}
}

// TestGrabCrowd: a crowd on several packets of one lane and of other lanes, on a Cluster of
// other masters: callers, counters, winners and hand-offs agree on exactly as many winners
// as shares, and exactly the sum.
func TestGrabCrowd(t *testing.T) { onEach(t, testGrabCrowd) }

func testGrabCrowd(t *testing.T, on setup) {
	p := on.openFresh(t)
	const users, shares = 1000, 100
	mates := laneMates(t, p, 3, shares)
	for lane := packet.Lane(mates[0].ID, p.Lanes()); len(mates) < 5; {
		// A third of the lanes further is the next master.
		if pk := newPacket(t, shares); packet.Lane(pk.ID, p.Lanes()) == (lane+p.Lanes()/3)%p.Lanes() {
			mates = append(mates, pk)
			lane = packet.Lane(pk.ID, p.Lanes())
		}
	}
	amounts := make([]money.Fen, shares)
	var sum money.Fen
	for i := range amounts {
		amounts[i] = money.Fen(i + 1)
		sum += amounts[i]
	}
	for _, pk := range mates {
		stage(t, p, pk)
		if err := p.OpenPool(t.Context(), pk.ID, amounts, nil); err != nil {
			t.Fatal(err)
		}
	}

	var mu sync.Mutex
	won := map[string]map[string]money.Fen{}
	var wins int // results with a claim
	var wg sync.WaitGroup
	for i := range users {
		for _, pk := range mates {
			for range 2 { // each user grabs twice
				wg.Go(func() {
					user := strconv.Itoa(i)
					g, err := p.Grab(t.Context(), pk.ID, user, packet.Profile{})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					switch g.Result {
					case packet.GrabWon:
						if won[pk.ID] == nil {
							won[pk.ID] = map[string]money.Fen{}
						}
						if _, twice := won[pk.ID][user]; twice {
							t.Errorf("user %s won packet %s twice", user, pk.ID)
						}
						won[pk.ID][user] = g.Claim.Amount
						wins++
					case packet.GrabReplayed:
						wins++
					case packet.GrabSoldOut:
					default:
						t.Errorf("outcome %v", g.Result)
					}
				})
			}
		}
	}
	wg.Wait()
	if want := 2 * shares * len(mates); wins != want {
		t.Errorf("%d results with a claim, want %d: each winner twice", wins, want)
	}

	h := handoffs(t, p)
	var b Batch
	for _, pk := range mates[2:] {
		b.HandOffs = append(b.HandOffs, readAll(t, h, packet.Lane(pk.ID, p.Lanes())).HandOffs...)
	}
	for _, pk := range mates {
		checkCrowd(t, p, pk.ID, won[pk.ID], sum, b)
	}
	if len(b.HandOffs) >= shares*len(mates) {
		t.Errorf("%d hand-offs: nothing was batched", len(b.HandOffs))
	}
}

func checkCrowd(t *testing.T, p *Pool, id string, won map[string]money.Fen, sum money.Fen, b Batch) {
	t.Helper()
	v, err := p.View(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := p.Claims(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	handed, last := map[string]money.Fen{}, 0
	for _, h := range b.HandOffs {
		for _, c := range h.Claims {
			if c.PacketID == id {
				handed[c.UserID] += c.Amount
			}
		}
		for _, s := range h.SoldOut {
			if s == id {
				last++
			}
		}
	}
	var total money.Fen
	for i, c := range claims {
		if c.ShareIndex != i || won[c.UserID] != c.Amount || handed[c.UserID] != c.Amount {
			t.Errorf("claim %d: %+v, answered %d, handed off %d", i, c, won[c.UserID], handed[c.UserID])
		}
		total += c.Amount
	}
	if n := v.Packet.ShareCount; len(won) != n || len(claims) != n || len(handed) != n || v.ClaimedCount != n || v.RemainingCount != 0 ||
		last != 1 {
		t.Errorf("%d won, %d claims, %d handed off, %d times sold out, %+v", len(won), len(claims), len(handed), last, v)
	}
	if total != sum || v.ClaimedAmount != sum {
		t.Errorf("sum %d, counter %d, want %d", total, v.ClaimedAmount, sum)
	}
}

// TestQueue: while Redis hangs, grabs queue up to the bound. Each caller returns at its own
// deadline, and the remaining queue is served when Redis replies again.
func TestQueue(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr, MaxQueued: 3, Timeout: patience})
	pk := newPacket(t, 10)
	openPacket(t, p, pk)
	l := p.lanes[packet.Lane(pk.ID, p.Lanes())]
	queued := func() int {
		l.flusher.mu.Lock()
		defer l.flusher.mu.Unlock()
		return l.queued
	}

	server.Pause(t)
	type answer struct {
		grabbed packet.GrabAnswer
		err     error
	}
	press := func(ctx context.Context, user string) chan answer {
		c := make(chan answer, 1)
		go func() {
			g, err := p.Grab(ctx, pk.ID, user, packet.Profile{})
			c <- answer{g, err}
		}()
		return c
	}
	first := press(t.Context(), "first")
	wait.Until(t, "the first grab runs", func() bool {
		l.flusher.mu.Lock()
		defer l.flusher.mu.Unlock()
		return l.flusher.pipelines > 0 && l.queued == 0
	})
	second := press(t.Context(), "second")
	third := press(t.Context(), "third")
	impatient, leave := context.WithCancelCause(t.Context())
	left := press(impatient, "left")
	wait.Until(t, "three are queued", func() bool { return queued() == 3 })
	_, err := p.Grab(t.Context(), pk.ID, "too many", packet.Profile{})
	wantErr(t, err, ErrOverloaded, ErrUnavailable)
	gone := errors.New("went home")
	leave(gone)
	wantErr(t, (<-left).err, ErrUnavailable, gone)

	server.Resume(t)
	for name, c := range map[string]chan answer{"first": first, "second": second, "third": third} {
		if a := <-c; a.err != nil || a.grabbed.Result != packet.GrabWon {
			t.Errorf("%s: %+v", name, a)
		}
	}
	claims, err := p.Claims(t.Context(), pk.ID)
	if err != nil || len(claims) != 3 {
		t.Errorf("claims %v, %v: want those of the three who waited", claims, err)
	}
}

// TestLaneGoesIdle: an idle lane serves a single grab without waiting, and becomes idle
// again.
func TestLaneGoesIdle(t *testing.T) { onEach(t, testLaneGoesIdle) }

func testLaneGoesIdle(t *testing.T, on setup) {
	p := on.open(t)
	pk := newPacket(t, 3)
	openPacket(t, p, pk)
	for i := range 3 {
		if g := mustGrab(t, p, pk.ID, fmt.Sprint(i)); g.Result != packet.GrabWon {
			t.Errorf("grab %d: %v", i, g.Result)
		}
		l := p.lanes[packet.Lane(pk.ID, p.Lanes())]
		wait.Until(t, "lane is idle", func() bool {
			l.flusher.mu.Lock()
			defer l.flusher.mu.Unlock()
			return l.flusher.pipelines == 0 && l.queued == 0 && len(l.flusher.queues) == 0 && l.flusher.turns == nil
		})
	}
}

// TestTurns: packets take turns. A crowd on one packet delays no other, not even of the same
// lane, and each packet's grabs keep their order.
func TestTurns(t *testing.T) {
	p := &Pool{cfg: Config{MaxQueued: 10 * maxBatch}}
	f := &flusher{pool: p, queues: map[string]*packetQueue{}, pipelines: maxPipelines} // as if all were running
	a, b := &lane{flusher: f, number: 1}, &lane{flusher: f, number: 2}
	add := func(l *lane, id string, n int) {
		for i := range n {
			if _, _, err := l.enqueue(id, grab{ctx: t.Context(), user: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(a, "crowd", 3*maxBatch+1)
	add(a, "mate", 2)
	add(b, "other", 1)
	add(b, "other crowd", maxBatch+1)
	var turns [][]string
	for f.pipelines = 1; ; {
		calls := f.next()
		if calls == nil {
			break
		}
		var turn []string
		for _, c := range calls {
			for _, q := range c.batches {
				turn = append(turn, fmt.Sprint(c.lane.number, " ", q.id, " ", len(q.grabs), " from ", q.grabs[0].user))
			}
		}
		turns = append(turns, turn)
		f.pipelines = 1
	}
	want := [][]string{
		{"1 crowd 512 from 0", "1 mate 2 from 0", "2 other 1 from 0", "2 other crowd 512 from 0"},
		{"1 crowd 512 from 512", "2 other crowd 1 from 512"},
		{"1 crowd 512 from 1024"},
		{"1 crowd 1 from 1536"},
	}
	if !reflect.DeepEqual(turns, want) {
		t.Errorf("%q", turns)
	}
	if f.queued != 0 || a.queued != 0 || b.queued != 0 || len(f.queues) != 0 || f.turns != nil || f.pipelines != 0 {
		t.Errorf("%+v, %+v, %+v", f, a, b)
	}
}

// TestCallsAreBounded: the grabs of a lane that wait for many packets go in several calls, because all claims
// of a call share a hand-off.
func TestCallsAreBounded(t *testing.T) {
	f := &flusher{pool: &Pool{cfg: Config{MaxQueued: maxPipelineGrabs}}, queues: map[string]*packetQueue{}, pipelines: maxPipelines}
	l := &lane{flusher: f}
	const packets, each = 5, 2 * maxBatch / 5
	for n := range packets {
		for range each {
			_, _, err := l.enqueue(strconv.Itoa(n), grab{ctx: t.Context(), user: "u"})
			must(t, err)
		}
	}
	total := 0
	for _, c := range f.next() {
		sum := 0
		for _, q := range c.batches {
			sum += len(q.grabs)
		}
		if total += sum; sum != c.grabs || sum > maxBatch {
			t.Errorf("%d grabs in a call of %d", sum, c.grabs)
		}
	}
	if total != packets*each {
		t.Errorf("%d grabs of %d", total, packets*each)
	}
}
