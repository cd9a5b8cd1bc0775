package pool

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestKilledRedisKeepsClaims: acknowledged claims exist after a kill and restart of Redis.
func TestKilledRedisKeepsClaims(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr, Timeout: time.Second})
	pk := newPacket(t, 2000)
	openPacket(t, p, pk)

	var mu sync.Mutex
	acked := map[string]packet.Claim{}
	var wg sync.WaitGroup
	crowd, stop := context.WithCancel(t.Context())
	for n := range 8 {
		wg.Go(func() {
			for i := 0; crowd.Err() == nil && i < 200; i++ {
				user := strconv.Itoa(n) + "-" + strconv.Itoa(i)
				g, err := p.Grab(t.Context(), pk.ID, user, packet.Profile{})
				if err != nil {
					if !errors.Is(err, ErrUnavailable) {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				acked[user] = g.Claim
				mu.Unlock()
			}
		})
	}
	wait.Until(t, "some have won", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acked) >= 100
	})
	server.Kill()
	stop()
	wg.Wait()
	server.Restart(t)

	wait.Until(t, "Redis replies again", func() bool { return p.Ping(t.Context()) == nil })
	for user, want := range acked {
		if c, ok, err := p.Claim(t.Context(), pk.ID, user); err != nil || !ok || !reflect.DeepEqual(c, want) {
			t.Errorf("claim of %s: %+v %v %v; acknowledged %+v", user, c, ok, err, want)
		}
	}
	claims, err := p.Claims(t.Context(), pk.ID)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.View(t.Context(), pk.ID)
	if err != nil || v.ClaimedCount != len(claims) || v.ClaimedAmount != money.Fen(100*len(claims)) ||
		v.RemainingCount != pk.ShareCount-len(claims) {
		t.Errorf("%d claims, %+v, %v", len(claims), v, err)
	}
	handed := 0
	for _, h := range readAll(t, handoffs(t, p), packet.Lane(pk.ID, p.Lanes())).HandOffs {
		handed += len(h.Claims)
	}
	if handed != len(claims) {
		t.Errorf("%d claims, %d handed off", len(claims), handed)
	}
	// The restart lost the scripts; calls reload them.
	for user, want := range acked {
		if g := mustGrab(t, p, pk.ID, user); g.Result != packet.GrabReplayed || !reflect.DeepEqual(g.Claim, want) {
			t.Errorf("%s grabs again: %+v", user, g)
		}
		break
	}
	if g := mustGrab(t, p, pk.ID, "new"); g.Result != packet.GrabWon {
		t.Errorf("new user: %v", g.Result)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p, patient := openAt(t, Config{Addr: server.Addr, Timeout: DefaultTimeout}), openAt(t, Config{Addr: server.Addr})
	pk := newPacket(t, 2)
	openPacket(t, patient, pk)
	ctx := t.Context()
	quickly := func(t *testing.T, what string, call func() error) {
		t.Helper()
		start := time.Now()
		wantErr(t, call(), ErrUnavailable)
		if took := time.Since(start); took > wait.Bound(5*time.Second) {
			t.Errorf("%s took %v", what, took)
		}
	}
	everything := map[string]func() error{
		"ping":     func() error { return p.Ping(ctx) },
		"durable":  func() error { return p.Durable(ctx) },
		"create":   func() error { _, err := p.Create(ctx, newPacket(t, 1), nil, nil, time.Hour, busy); return err },
		"answered": func() error { _, err := p.StoreFirstAnswer(ctx, pk.ID, packet.FirstAnswer{}); return err },
		"open":     func() error { return p.OpenPool(ctx, pk.ID, hundreds(2), nil) },
		"reject":   func() error { return p.Reject(ctx, pk.ID, packet.Failure{}) },
		"grab":     func() error { _, err := p.Grab(ctx, pk.ID, "u", packet.Profile{}); return err },
		"recall":   func() error { _, err := p.Recall(ctx, pk.ID); return err },
		"close":    func() error { _, err := p.ClosePool(ctx, pk.ID, packet.CloseRecalled); return err },
		"retire":   func() error { return p.Retire(ctx, pk.ID) },
		"view":     func() error { _, err := p.View(ctx, pk.ID); return err },
		"claim":    func() error { _, _, err := p.Claim(ctx, pk.ID, "u"); return err },
		"claims":   func() error { _, err := p.Claims(ctx, pk.ID); return err },
		"count":    func() error { _, err := p.ClaimedCount(ctx, pk.ID); return err },
		"winners":  func() error { _, err := p.WinnersCount(ctx, pk.ID); return err },
		"eligible": func() error { _, err := p.Eligible(ctx, pk.ID); return err },
		"live":     func() error { _, err := p.LivePage(ctx, 0, time.Time{}, 10); return err },
		"save":     func() error { return p.SaveApps(ctx, nil) },
		"load":     func() error { _, err := p.LoadApps(ctx); return err },
	}
	before := dump(t, patient, pk.ID)
	server.Kill()
	for name, call := range everything {
		t.Run(name, func(t *testing.T) { quickly(t, name, call) })
	}
	server.Restart(t)
	wait.Until(t, "Redis replies again", func() bool { return patient.Ping(ctx) == nil })
	unchanged(t, patient, pk.ID, before)

	t.Run("hanging", func(t *testing.T) {
		server.Pause(t)
		quickly(t, "grab", everything["grab"])
		server.Resume(t)
		// The hanging call may have reached Redis: then this is a repeat.
		g := mustGrab(t, patient, pk.ID, "u")
		if g.Result != packet.GrabWon && g.Result != packet.GrabReplayed {
			t.Errorf("after resuming: %v", g.Result)
		}
		if claims, err := patient.Claims(ctx, pk.ID); err != nil || len(claims) != 1 {
			t.Errorf("claims %v, %v", claims, err)
		}
	})
}

// TestRedisRefusesWrites: when Redis refuses writes, nothing is taken, and reads succeed.
func TestRedisRefusesWrites(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer admin.Close()
	ctx := t.Context()
	for _, c := range []struct {
		name     string
		off, on  func() error
		isReason func(error) bool
		ends     bool // calls that end packets succeed (TestFullRedis)
	}{
		{"out of memory",
			func() error { return admin.ConfigSet(ctx, "maxmemory", "1").Err() },
			func() error { return admin.ConfigSet(ctx, "maxmemory", "0").Err() },
			redis.IsOOMError, true},
		{"replica",
			func() error { return admin.ReplicaOf(ctx, "127.0.0.1", "1").Err() },
			func() error { return admin.ReplicaOf(ctx, "NO", "ONE").Err() },
			redis.IsReadOnlyError, false},
		{"too few replicas",
			func() error { return admin.ConfigSet(ctx, "min-replicas-to-write", "1").Err() },
			func() error { return admin.ConfigSet(ctx, "min-replicas-to-write", "0").Err() },
			redis.IsNoReplicasError, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pk, other := newPacket(t, 2), newPacket(t, 1)
			openPacket(t, p, pk)
			stage(t, p, other)
			before, beforeOther := dump(t, p, pk.ID), dump(t, p, other.ID)
			if err := c.off(); err != nil {
				t.Fatal(err)
			}
			refused := map[string]func() error{
				"grab":   func() error { _, err := p.Grab(ctx, pk.ID, "u", packet.Profile{}); return err },
				"create": func() error { _, err := p.Create(ctx, newPacket(t, 1), nil, nil, time.Hour, busy); return err },
				"open":   func() error { return p.OpenPool(ctx, other.ID, hundreds(1), nil) },
			}
			if !c.ends {
				refused["recall"] = func() error { _, err := p.Recall(ctx, pk.ID); return err }
			}
			for name, call := range refused {
				err := call()
				wantErr(t, err, ErrUnavailable)
				if !c.isReason(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if v, err := p.View(ctx, pk.ID); err != nil || v.State != packet.PoolOpen {
				t.Errorf("view %+v, %v", v, err)
			}
			if err := c.on(); err != nil {
				t.Fatal(err)
			}
			unchanged(t, p, pk.ID, before)
			unchanged(t, p, other.ID, beforeOther)
			if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabWon {
				t.Errorf("afterwards: %v", g.Result)
			}
		})
	}
}
