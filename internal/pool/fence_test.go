package pool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// crowd grabs until it ends; after is set once the harm is done.
type crowd struct {
	acked, ackedAfter, refused atomic.Int64
	after                      atomic.Bool
	all                        sync.WaitGroup
}

func newCrowd(t testing.TB, p *Pool, id string, end context.Context) *crowd {
	c := &crowd{}
	for n := range 20 {
		c.all.Go(func() {
			for i := 0; end.Err() == nil; i++ {
				late := c.after.Load() // before the grab begins
				_, err := p.Grab(t.Context(), id, fmt.Sprintf("%d-%d", n, i), packet.Profile{})
				switch {
				case err == nil && late:
					c.ackedAfter.Add(1)
				case err == nil:
					c.acked.Add(1)
				case errors.Is(err, ErrFenced):
					c.refused.Add(1)
				case !errors.Is(err, ErrUnavailable):
					t.Error(err)
				}
			}
		})
	}
	return c
}

// TestR9_LostGrabsCloseTheFence: after Redis lost acknowledged grabs, for whatever reason,
// no grab of the crowd succeeds and nothing is created, until the lane opens in a later
// epoch.
func TestR9_LostGrabsCloseTheFence(t *testing.T) {
	t.Parallel()
	for name, prepare := range stacktest.RedisDataLosses {
		t.Run(name, func(t *testing.T) {
			server := stacktest.FreshRedis(t)
			p := openAt(t, Config{Addr: server.Addr, Timeout: time.Second})
			ctx := t.Context()
			mates := laneMates(t, p, 2, 20_000)
			pk, other := mates[0], mates[1]
			lane := packet.Lane(pk.ID, p.Lanes())
			openPacket(t, p, pk)
			end, stop := context.WithCancel(ctx)
			defer stop()
			users := newCrowd(t, p, pk.ID, end)
			wait.Until(t, "some have won", func() bool { return users.acked.Load() >= 300 })
			harm := prepare(t, server)
			before := users.acked.Load()
			wait.Until(t, "more have won", func() bool { return users.acked.Load() >= before+300 })
			harm()
			users.after.Store(true)
			wait.Until(t, "the crowd is refused", func() bool { return users.refused.Load() >= 100 })
			stop()
			users.all.Wait()
			if n := users.ackedAfter.Load(); n > 0 {
				t.Errorf("%d grabs succeeded after the harm", n)
			}
			checkClosed(t, p, pk, other)
			wait.Until(t, "every process is refused", func() bool {
				e := epochOf(t, p, lane)
				return e.Number == 0 || e.Fence == fence.Halted
			})

			// A rebuild would restore from MySQL, which is empty here.
			must(t, p.rdb.Del(ctx, p.keys.of(pk.ID).packet, p.keys.of(pk.ID).shares, p.keys.of(pk.ID).winners, p.keys.of(pk.ID).order).Err())
			must(t, p.CloseFence(ctx, lane, 2))
			checkClosed(t, p, pk, other)
			must(t, p.OpenFence(ctx, lane, 2, 0))
			wait.Until(t, "the fence is open", func() bool { _, open := p.Fence(pk.ID); return open })
			openPacket(t, p, other)
			if g := mustGrab(t, p, other.ID, "u"); g.Result != packet.GrabWon {
				t.Errorf("in the new epoch: %v", g.Result)
			}
		})
	}
}

// checkClosed: every call that changes a packet, or reports what is missing, returns
// ErrFenced and changes nothing.
func checkClosed(t *testing.T, p *Pool, pk, other packet.Packet) {
	t.Helper()
	ctx := t.Context()
	before := dump(t, p, pk.ID)
	lane := packet.Lane(pk.ID, p.Lanes())
	for name, call := range map[string]func() error{
		"create":   func() error { _, err := p.Create(ctx, other, nil, nil, time.Hour, busy); return err },
		"answered": func() error { _, err := p.StoreFirstAnswer(ctx, pk.ID, packet.FirstAnswer{}); return err },
		"open":     func() error { return p.OpenPool(ctx, pk.ID, hundreds(pk.ShareCount), nil) },
		"reject":   func() error { return p.Reject(ctx, pk.ID, packet.Failure{}) },
		"grab":     func() error { _, err := p.Grab(ctx, pk.ID, "u", packet.Profile{}); return err },
		"recall":   func() error { _, err := p.Recall(ctx, pk.ID); return err },
		"close":    func() error { _, err := p.ClosePool(ctx, pk.ID, packet.CloseRecalled); return err },
		"retire":   func() error { return p.Retire(ctx, pk.ID) },
		"view":     func() error { _, err := p.View(ctx, pk.ID); return err },
		"views":    func() error { _, err := p.Views(ctx, []string{pk.ID}); return err },
		"page":     func() error { _, _, err := p.ClaimsPage(ctx, pk.ID, -1, 1); return err },
		"claim":    func() error { _, _, err := p.Claim(ctx, pk.ID, "u"); return err },
		"claims":   func() error { _, err := p.Claims(ctx, pk.ID); return err },
		"count":    func() error { _, err := p.ClaimedCount(ctx, pk.ID); return err },
		"winners":  func() error { _, err := p.WinnersCount(ctx, pk.ID); return err },
		"eligible": func() error { _, err := p.Eligible(ctx, pk.ID); return err },
		"live":     func() error { _, err := p.LivePage(ctx, lane, time.Time{}, 10); return err },
		"user":     func() error { _, err := userClaims(ctx, p, pk.App, "u", packet.Cursor{}, 10); return err },
		"staged":   func() error { _, err := p.Staged(ctx, []string{pk.App}, "", packet.Cursor{}, 10); return err },
		"open?":    func() error { return p.CheckFences(ctx) },
	} {
		if err := call(); !errors.Is(err, ErrFenced) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !reflect.DeepEqual(dump(t, p, pk.ID), before) { // too much to print
		t.Error("the packet was changed")
	}
}

// TestR9_EveryCallIsRefused: the scripts refuse, not the process: each call is the first
// after the loss.
func TestR9_EveryCallIsRefused(t *testing.T) { onEach(t, testEveryCallIsRefused) }

func testEveryCallIsRefused(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	mates := laneMates(t, p, 2, 2)
	pk, other := mates[0], mates[1]
	lane := packet.Lane(pk.ID, p.Lanes())
	openPacket(t, p, pk)
	mustGrab(t, p, pk.ID, "u")
	at, err := p.checkFence(lane)
	must(t, err)
	acked := at.position()
	key := p.keys.epoch(lane)
	p.epochWatch.stop() // else it halts the corrected lane
	for what, harm := range map[string]func() error{
		"no epoch":      func() error { return p.rdb.Del(ctx, key).Err() },
		"another epoch": func() error { return p.rdb.HSet(ctx, key, "epoch", 2).Err() },
		"seq behind":    func() error { return p.rdb.HSet(ctx, key, "seq", acked.Seq-1).Err() },
		// other processes caught up
		"own grab lost": func() error {
			return p.rdb.HSet(ctx, key, "seq", acked.Seq+5, fmt.Sprint(p.process), acked.Changes-1).Err()
		},
		"own field lost": func() error {
			return errors.Join(p.rdb.HSet(ctx, key, "seq", acked.Seq+5).Err(), p.rdb.HDel(ctx, key, fmt.Sprint(p.process)).Err())
		},
		"closed": func() error { return p.rdb.HSet(ctx, key, "gate", "closed").Err() },
		"halted": func() error { return p.rdb.HSet(ctx, key, "gate", "halted").Err() },
	} {
		t.Run(what, func(t *testing.T) {
			was, err := p.rdb.HGetAll(ctx, key).Result()
			must(t, err)
			must(t, harm())
			before := dump(t, p, pk.ID)
			keys, k := []string{key}, p.keys.of(pk.ID)
			all := []string{k.packet, k.shares, k.winners, k.eligible, k.live, k.order, k.claimed, k.staged}
			for name, call := range map[string]func(pass string) error{
				"grab": func(pass string) error {
					return grabScript.Run(ctx, p.rdb, append(keys, k.handoff, k.packet, k.shares, k.winners, k.eligible, k.order), pass, "mark",
						"\x91\xa1v", "").Err()
				},
				"create": func(pass string) error {
					o := p.keys.of(other.ID)
					return createScript.Run(ctx, p.rdb, append(keys, o.packet, o.eligible, o.live, o.handoff, o.staged), pass, other.ID, "{}", "", 2, "",
						1000, 1000, 1000, "token", "shop", "sender", "").Err()
				},
				"answer": func(pass string) error { return answerScript.Run(ctx, p.rdb, append(keys, k.packet), pass, "{}").Err() },
				"open": func(pass string) error {
					return openScript.Run(ctx, p.rdb, append(keys, k.packet, k.shares, k.staged), pass, 0, packedHundreds(1)).Err()
				},
				"reject": func(pass string) error {
					return rejectScript.Run(ctx, p.rdb, append(keys, k.packet, k.staged), pass, "{}").Err()
				},
				"recall": func(pass string) error {
					return recallScript.Run(ctx, p.rdb, append(keys, k.packet, k.handoff), pass).Err()
				},
				"close": func(pass string) error {
					return closeScript.Run(ctx, p.rdb, append(keys, k.packet, k.shares), pass, "recalled").Err()
				},
				"keep": func(pass string) error {
					return keepScript.Run(ctx, p.rdb, append(keys, k.packet, k.winners), pass, "v", "0:100:0:conflict:").Err()
				},
				"retire": func(pass string) error {
					return retireScript.Run(ctx, p.rdb, append(keys, all...), pass, pk.ID, 1000, 1000).Err()
				},
				"view": func(pass string) error { return viewScript.Run(ctx, p.rdb, append(keys, k.packet), pass).Err() },
				"page": func(pass string) error {
					return pageScript.Run(ctx, p.rdb, append(keys, k.packet, k.order, k.winners), pass, "", 10).Err()
				},
			} {
				err := call(token(acked, p.process))
				if !strings.HasPrefix(fmt.Sprint(err), fencedCode) {
					t.Errorf("%s: %v", name, err)
				}
				wantErr(t, redisError(name, err), ErrFenced, ErrUnavailable)
			}
			unchanged(t, p, pk.ID, before)
			if n, err := p.rdb.Exists(ctx, p.keys.of(other.ID).packet).Result(); err != nil || n != 0 {
				t.Errorf("created: %v", err)
			}
			for name, call := range map[string]func() error{
				"claim":  func() error { _, _, err := p.Claim(ctx, pk.ID, "u"); return err },
				"claims": func() error { _, err := p.Claims(ctx, pk.ID); return err },
				"grab":   func() error { _, err := p.Grab(ctx, pk.ID, "w", packet.Profile{}); return err },
			} {
				p.fences[lane].open.Store(at) // it has not found the loss
				if err := call(); !errors.Is(err, ErrFenced) {
					t.Errorf("%s: %v", name, err)
				}
			}
			must(t, p.rdb.Del(ctx, key).Err())
			must(t, p.rdb.HSet(ctx, key, was).Err())
			p.fences[lane].open.Store(at)
			if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabReplayed {
				t.Errorf("corrected: %v", g.Result)
			}
		})
	}
}

// TestR9_OtherProcessCaughtUp: the grab of one process is lost, and another process, which
// never saw it, raised seq again. The first process still finds the loss.
func TestR9_OtherProcessCaughtUp(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	ann := openAt(t, Config{Addr: server.Addr})
	pk := newPacket(t, 100)
	openPacket(t, ann, pk)
	mustGrab(t, ann, pk.ID, "first")
	harm := stacktest.RedisDataLosses["older copy restored"](t, server)
	lost := mustGrab(t, ann, pk.ID, "lost")
	ann.epochWatch.stop() // no background comparison
	harm()

	bob := openAt(t, Config{Addr: server.Addr})
	for bob.process == ann.process { // by chance one of a thousand
		bob = openAt(t, Config{Addr: server.Addr})
	}
	wait.Until(t, "the other process is admitted", func() bool { _, open := bob.Fence(pk.ID); return open })
	if g := mustGrab(t, bob, pk.ID, "bob"); g.Result != packet.GrabWon || g.Claim.ShareIndex != lost.Claim.ShareIndex {
		t.Fatalf("the share of the lost grab is not free: %+v", g)
	}
	mustGrab(t, bob, pk.ID, "another")
	if was, e := ann.fences[packet.Lane(pk.ID, ann.Lanes())].open.Load().position(),
		epochOf(t, bob, packet.Lane(pk.ID, ann.Lanes())); e.Seq <= was.Seq {
		t.Fatalf("the lane has come to %d, was at %d", e.Seq, was.Seq)
	}
	if _, open := ann.Fence(pk.ID); !open {
		t.Fatal("the loss was found before a call")
	}
	_, err := ann.Grab(t.Context(), pk.ID, "late", packet.Profile{})
	wantErr(t, err, ErrFenced)
	ann.epochWatch.round(t.Context())
	if e := epochOf(t, bob, packet.Lane(pk.ID, ann.Lanes())); e.Fence != fence.Halted || e.Reason != fence.LaneSeqBehind {
		t.Errorf("the lane is not halted for all: %+v", e)
	}
	_, err = bob.Grab(t.Context(), pk.ID, "late", packet.Profile{})
	wantErr(t, err, ErrFenced)
}

// TestR9_LossFoundWithoutACall: without any grab the process finds the loss.
func TestR9_LossFoundWithoutACall(t *testing.T) { onEach(t, testLossFoundWithoutACall) }

func testLossFoundWithoutACall(t *testing.T, on setup) {
	p := on.openFresh(t)
	if n := p.LanesFenced(); n != 0 {
		t.Fatalf("%d lanes are closed at first", n)
	}
	hurt := on.addrs[0]
	must(t, admin(t, hurt).Do(t.Context(), "FLUSHALL").Err())
	want := p.Lanes()
	if on.mode == ModeCluster {
		want = 0
		for _, tag := range p.keys.tags {
			if hashSlot(tag) < slots/3 {
				want++
			}
		}
	}
	wait.Until(t, "the loss is found", func() bool { return p.LanesFenced() == want })
	for lane, tag := range p.keys.tags {
		pk := packetIn(t, p, lane)
		_, err := p.Create(t.Context(), pk, nil, nil, time.Hour, busy)
		lost := on.mode == ModeSingle || hashSlot(tag) < slots/3
		if errors.Is(err, ErrFenced) != lost || !lost && err != nil {
			t.Errorf("lane %d, lost %v: %v", lane, lost, err)
		}
	}
	if n := p.LanesFenced(); n != want {
		t.Errorf("%d lanes are closed, %d were lost", n, want)
	}
}

// packetIn returns a packet of a lane.
func packetIn(t testing.TB, p *Pool, lane int) packet.Packet {
	t.Helper()
	pk := newPacket(t, 1)
	for packet.Lane(pk.ID, p.Lanes()) != lane {
		pk = newPacket(t, 1)
	}
	return pk
}

// TestR9_ChangesCounted: the counts of each call in its lane: one for a change, one for each
// winner, none without a change. The process has the same counts as Redis.
func TestR9_ChangesCounted(t *testing.T) { onEach(t, testChangesCounted) }

func testChangesCounted(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	mates := laneMates(t, p, 5, 3)
	a, b, rejected, unopened, big := mates[0], mates[1], mates[2], mates[3], mates[4]
	big.ShareCount = 2*openChunk + 1
	lane := packet.Lane(a.ID, p.Lanes())
	create := func(pk packet.Packet) func() error {
		return func() error { _, err := p.Create(ctx, pk, nil, nil, time.Hour, busy); return err }
	}
	open := func(pk packet.Packet) func() error {
		return func() error { return p.OpenPool(ctx, pk.ID, hundreds(pk.ShareCount), nil) }
	}
	grab := func(pk packet.Packet, users ...string) func() error {
		return func() error {
			var all [][2]string
			for _, user := range users {
				all = append(all, [2]string{pk.ID, user})
			}
			batch := batchOf(ctx, all...)
			flush(p, lane, batch)
			results(t, batch)
			return nil
		}
	}
	answer := func() error {
		_, err := p.StoreFirstAnswer(ctx, a.ID, packet.FirstAnswer{HTTPStatus: 201})
		return err
	}
	closing := func(pk packet.Packet, reason packet.CloseReason) func() error {
		return func() error { _, err := p.ClosePool(ctx, pk.ID, reason); return err }
	}
	recall := func() error { _, err := p.Recall(ctx, b.ID); return err }
	for _, step := range []struct {
		what       string
		do         func() error
		seq, grabs int64
	}{
		{"create", create(a), 1, 0},
		{"create again", create(a), 0, 0},
		{"answer", answer, 1, 0},
		{"answer again", answer, 0, 0},
		{"open", open(a), 1, 0},
		{"open again", open(a), 0, 0},
		{"two win", grab(a, "u", "v"), 2, 2},
		{"one wins, two have won", grab(a, "u", "w", "v"), 1, 1},
		{"sold out", grab(a, "x", "u"), 0, 0},
		{"not yet", closing(b, packet.CloseExpired), 0, 0},
		{"close", closing(a, packet.CloseSoldOut), 1, 0},
		{"close again", closing(a, packet.CloseSoldOut), 0, 0},
		{"retire", func() error { return p.Retire(ctx, a.ID) }, 1, 0},
		{"retire again", func() error { return p.Retire(ctx, a.ID) }, 0, 0},
		{"view", func() error { _, err := p.View(ctx, a.ID); return err }, 0, 0},
		{"create and open", func() error { return errors.Join(create(b)(), open(b)()) }, 2, 0},
		{"recall", recall, 1, 0},
		{"recall again", recall, 0, 0},
		{"create what is declined", create(rejected), 1, 0},
		{"reject", func() error { return p.Reject(ctx, rejected.ID, packet.Failure{}) }, 1, 0},
		{"reject again", func() error { return p.Reject(ctx, rejected.ID, packet.Failure{}) }, 0, 0},
		{"create and close unopened", func() error { return errors.Join(create(unopened)(), closing(unopened, packet.CloseUnopened)()) }, 2, 0},
		{"open in three parts", func() error { return errors.Join(create(big)(), open(big)()) }, 4, 0},
	} {
		before := epochOf(t, p, lane)
		must(t, step.do())
		after := epochOf(t, p, lane)
		if after.Seq-before.Seq != step.seq || after.Grabs-before.Grabs != step.grabs {
			t.Errorf("%s: counted %d, of them %d grabs; want %d, %d", step.what, after.Seq-before.Seq, after.Grabs-before.Grabs, step.seq,
				step.grabs)
		}
		if at := p.fences[lane].open.Load().position(); at.Seq != after.Seq || at.Changes != after.Seq || at.Grabs != after.Grabs ||
			at.Epoch != after.Number {
			t.Errorf("%s: seen %+v, Redis has %+v", step.what, at, after)
		}
	}
}

// unfenced are the scripts that do not check the fence of a lane, and why.
var unfenced = map[string]string{
	"index":   "indexes by user the claims of hand-offs, whose payouts go on while the fence is closed",
	"dismiss": "consumers of hand-offs, which are read while the fence is closed",
	"orphans": "reads hand-offs, which are read while the fence is closed",
	"group":   "consumers of hand-offs, which are read while the fence is closed",
	"ack":     "removes hand-offs, which are relayed while the fence is closed",
	"acquire": "of no lane", "renew": "of no lane", "release": "of no lane", "throttle": "of no lane",
	"limit": "of no lane", "raise": "of no lane", "acl": "of no lane", "fence_close": "sets the fence", "fence_open": "sets the fence",
	"fence_halt": "sets the fence", "restore": "only while it is closed", "clear": "only while it is closed",
}

// TestR9_EveryScriptChecksTheFence: all scripts of packets begin with the same check.
func TestR9_EveryScriptChecksTheFence(t *testing.T) {
	const check = `
-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
`
	for name, s := range scripts {
		source := strings.ReplaceAll(sources[s], "'seq', process, 'grabs')", "'seq', process)") // grab.lua counts these too
		first := source[strings.Index(source, "\n\n")+1:]                                       // behind the header
		if checks := strings.HasPrefix(first, check); checks == (unfenced[name] != "") {
			t.Errorf("%s.lua checks the fence first: %v", name, checks)
		}
	}
}
