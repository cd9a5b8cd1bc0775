package pool

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// costs returns how often Redis ran the commands that a client sent while do ran, and their
// us. The time of a script includes its commands.
func costs(t *testing.T, p *Pool, do func()) (calls map[string]int, usec int) {
	t.Helper()
	if err := p.rdb.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	do()
	info, err := p.rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls = map[string]int{}
	scripts := 0
	for _, m := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+),usec=(\d+)`).FindAllStringSubmatch(info, -1) {
		if slices.Contains([]string{"config|resetstat", "info"}, m[1]) {
			continue
		}
		calls[m[1]], _ = strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		if usec += n; m[1] == "evalsha" {
			scripts = n
		}
	}
	if scripts > 0 { // includes the commands of scripts
		usec = scripts
	}
	return calls, usec
}

// TestListsCost: a page of claims costs Redis two commands for all lanes, for any user, once the process
// has read the claims that there are; new hand-offs cost nothing more. Staged packets cost one command,
// and listed packets one each. No page writes or runs a script.
func TestListsCost(t *testing.T) {
	t.Parallel()
	p := openAt(t, Config{Addr: stacktest.FreshRedis(t).Addr, Lanes: DefaultClusterLanes})
	lanes := map[int]packet.Packet{}
	for len(lanes) < p.Lanes() { // u has claims in every lane
		pk := newPacket(t, 3)
		if lane := packet.Lane(pk.ID, p.Lanes()); lanes[lane].ID == "" {
			lanes[lane] = pk
			openPacket(t, p, pk)
			mustGrab(t, p, pk.ID, "u")
		}
	}
	page := func(user string, most, want int) {
		if places, err := p.ClaimPlaces(t.Context(), "shop", user, packet.Cursor{}, most); err != nil || len(places) != want {
			t.Errorf("%s: %d places, %v", user, len(places), err)
		}
	}
	check := func(what string, want map[string]int, do func()) {
		t.Helper()
		if calls, _ := costs(t, p, do); !maps.Equal(calls, want) {
			t.Errorf("%s: %v, want %v", what, calls, want)
		}
	}
	two := map[string]int{"xread": 1, "mget": 1}
	known := func(when string) {
		t.Helper()
		check("a user without claims "+when, two, func() { page("nobody", 51, 0) })
		check("a user with claims in every lane "+when, two, func() { page("u", 51, 51) })
		check("the rest of them "+when, two, func() { page("u", p.Lanes()+1, p.Lanes()) })
	}
	p.epochWatch.stop()  // it reads lanes
	page("first", 51, 0) // finds empty indexes
	known("before the relay")
	ackAll(t, p)
	known("after the relay")
	mustGrab(t, p, lanes[0].ID, "v")
	check("after a grab", two, func() { page("v", 51, 1) })

	other := openAt(t, Config{Addr: p.cfg.Addr, Lanes: DefaultClusterLanes})
	other.epochWatch.stop()
	read := func(p *Pool) {
		if _, err := p.ClaimPlaces(t.Context(), "shop", "first", packet.Cursor{}, 51); err != nil {
			t.Error(err)
		}
	}
	for range 2 { // searches the indexes, then reads them
		read(other)
	}
	p = other
	known("in another process")

	var ids []string
	for lane := range 50 {
		ids = append(ids, lanes[lane].ID)
	}
	check("50 open packets", map[string]int{"hmget": 50}, func() {
		if seen, err := p.Progress(t.Context(), ids); err != nil || len(seen) != 50 {
			t.Errorf("%d packets, %v", len(seen), err)
		}
	})
	check("50 claims that MySQL does not have", map[string]int{"hget": 50}, func() {
		if claims, err := p.ClaimsOf(t.Context(), "u", ids); err != nil || len(claims) != 50 {
			t.Errorf("%d claims, %v", len(claims), err)
		}
	})
	check("staged packets", map[string]int{"exists": 1}, func() {
		if some, err := p.Staged(t.Context(), []string{"shop", "another"}, "", packet.Cursor{}, 51); err != nil || len(some) != 0 {
			t.Errorf("%v, %v", some, err)
		}
	})
}

// ackAll acknowledges all hand-offs.
func ackAll(t *testing.T, p *Pool) {
	t.Helper()
	h := handoffs(t, p)
	for lane := range p.Lanes() {
		entries, err := p.rdb.XRange(t.Context(), p.keys.handoff(lane), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			must(t, h.Ack(t.Context(), lane, entry.ID))
		}
	}
}

// TestListsShared: readers that wait for the same read share it, and no reader gets a read
// that began before its call.
func TestListsShared(t *testing.T) {
	t.Parallel()
	type batchRead struct {
		keys []string
		end  chan struct{}
	}
	reads := make(chan batchRead)
	c := &coalescer[string, string]{base: t.Context(), read: func(_ context.Context, keys []string) (map[string]string, error) {
		f := batchRead{keys, make(chan struct{})}
		reads <- f
		<-f.end
		values := map[string]string{}
		for _, q := range keys {
			values[q] = "of " + q
		}
		return values, nil
	}}
	var readers sync.WaitGroup
	read := func(q string) {
		f := c.join([]string{q}) // at once: the next reader comes later
		readers.Go(func() {
			if <-f.done; f.err != nil || f.values[q] != "of "+q {
				t.Errorf("%s: %v, %v", q, f.values, f.err)
			}
		})
	}
	read("a")
	first := <-reads
	for _, q := range []string{"a", "b", "b", "c"} {
		read(q)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.get(left, "d"); err == nil {
		t.Error("a cancelled reader got a result")
	}
	close(first.end)
	second := <-reads
	slices.Sort(second.keys)
	if !slices.Equal(first.keys, []string{"a"}) || !slices.Equal(second.keys, []string{"a", "b", "c", "d"}) {
		t.Errorf("keys %q, then %q", first.keys, second.keys)
	}
	close(second.end)
	readers.Wait()
	read("e")
	third := <-reads
	close(third.end)
	readers.Wait()
}

// TestPauseOfACrowd: a single caller is served at once after its last read; more callers leave Redis as
// much time as the read took for each of them, at most three times and at most the maximum.
func TestPauseOfACrowd(t *testing.T) {
	t.Parallel()
	c := &coalescer[string, string]{pause: 10 * time.Minute}
	for _, tt := range []struct {
		took    time.Duration
		callers int
		want    time.Duration
	}{
		{time.Minute, 1, 0}, {time.Minute, 2, time.Minute}, {time.Minute, 4, 3 * time.Minute}, {time.Minute, 500, 3 * time.Minute},
		{time.Hour, 1, 0}, {time.Hour, 2, 10 * time.Minute},
	} {
		began := time.Now()
		c.schedulePause(tt.took, tt.callers)
		if early, late := c.next.Before(began.Add(tt.want)), c.next.After(time.Now().Add(tt.want)); early || late {
			t.Errorf("%d callers of a read of %v: next read in %v, want %v", tt.callers, tt.took, c.next.Sub(began), tt.want)
		}
	}
}

// TestListsWhileGrabbing: a read after an acknowledged grab contains it, whatever reads are
// running.
func TestListsWhileGrabbing(t *testing.T) { onEach(t, testListsWhileGrabbing) }

func testListsWhileGrabbing(t *testing.T, on setup) {
	grabbing, reading := on.openFresh(t), on.open(t) // two processes
	const packets, each = 6, 40
	var all []packet.Packet
	for range packets {
		pk := newPacket(t, each)
		openPacket(t, grabbing, pk)
		all = append(all, pk)
	}
	var users sync.WaitGroup
	for u := range each {
		users.Go(func() {
			user := fmt.Sprint("u", u)
			for n, pk := range all {
				if got, err := grabbing.Grab(t.Context(), pk.ID, user, packet.Profile{}); err != nil || got.Result != packet.GrabWon {
					t.Errorf("%s: %v, %v", user, got.Result, err)
					return
				}
				claims, err := userClaims(t.Context(), reading, "shop", user, packet.Cursor{}, 2*packets)
				if err != nil || len(claims) != n+1 {
					t.Errorf("%s: %d claims after %d grabs, %v", user, len(claims), n+1, err)
					return
				}
			}
		})
	}
	users.Wait()
	if claims, err := userClaims(t.Context(), reading, "shop", "nobody", packet.Cursor{}, 1); err != nil || len(claims) != 0 {
		t.Errorf("%v, %v", claims, err)
	}
}

// TestListsCostOfACrowd: concurrent pages share the reads of all lanes, and users without
// claims cost nothing more: together less time of Redis than as many grabs, sent one by one.
func TestListsCostOfACrowd(t *testing.T) {
	t.Parallel()
	p := openAt(t, Config{Addr: stacktest.FreshRedis(t).Addr})
	lanes := map[int]packet.Packet{}
	for len(lanes) < p.Lanes() {
		pk := newPacket(t, 100)
		if lane := packet.Lane(pk.ID, p.Lanes()); lanes[lane].ID == "" {
			lanes[lane] = pk
			openPacket(t, p, pk)
			mustGrab(t, p, pk.ID, "u")
		}
	}
	const many = 200
	calls, grabs := costs(t, p, func() {
		for i := range many {
			mustGrab(t, p, lanes[i%p.Lanes()].ID, fmt.Sprint("v", i))
		}
	})
	if calls["evalsha"] != many {
		t.Errorf("grabs: %v", calls)
	}
	page := func(user string) {
		if _, err := p.ClaimPlaces(t.Context(), "shop", user, packet.Cursor{}, 51); err != nil {
			t.Error(err)
		}
	}
	ackAll(t, p)
	p.epochWatch.stop()
	for range 3 { // reads the claims
		page("u")
	}
	_, alone := costs(t, p, func() {
		for i := range many {
			page(fmt.Sprint("nobody", i))
		}
	})
	calls, together := costs(t, p, func() {
		var readers sync.WaitGroup
		for i := range many {
			readers.Go(func() { page(fmt.Sprint("nobody", i)) })
		}
		readers.Wait()
	})
	t.Logf("us of Redis: a grab %d, a page alone %d, of a crowd %.1f", grabs/many, alone/many, float64(together)/many)
	if n := calls["xread"]; n == 0 || n > many/4 || calls["zrevrangebylex"] != 0 {
		t.Errorf("a crowd of %d: %v", many, calls)
	}
	if together > grabs {
		t.Errorf("%d pages cost Redis %d us, as many grabs %d", many, together, grabs)
	}
}
