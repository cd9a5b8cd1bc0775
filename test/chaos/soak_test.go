package chaos

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

var soaking = flag.Bool("soak", false, "run TestSoak, for -length (30m by default) at -rate grabs a second")

const (
	soakLength = 30 * time.Minute
	soakShares = 12
	soakLife   = 10 * time.Second
	sampleTime = 2 * time.Second
	// keysForAll is the most keys that belong to no packet: some per lane, and those that lanes share.
	keysForAll = 64*6 + 16
	// bytesEach is the most that Redis may keep of a settled packet.
	bytesEach = 1 << 10
)

// TestSoak puts a steady load on an unbroken stack, and fails when memory, connections or keys grow
// after the warm-up.
func TestSoak(t *testing.T) {
	if !*soaking {
		t.Skip("`make soak` runs it")
	}
	if *length == 0 {
		*length = soakLength
	}
	program, err := filepath.Abs(*binary)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "hongbao-soak-")
	if err != nil {
		t.Fatal(err)
	}
	s, err := startStack(program, home, "sandbox")
	defer func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if !t.Failed() && !*keep {
			_ = os.RemoveAll(home)
		} else {
			t.Log("the home folder is kept:", home)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	i, err := newInspector(ctx, s)
	if i != nil {
		defer i.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	(&soak{inspector: i, t: t}).run(ctx)
}

// soak is one run.
type soak struct {
	*inspector
	t       *testing.T
	packets atomic.Int64
	won     atomic.Int64
	failed  atomic.Int64
	samples []sample
}

// sample is a measurement at one moment, by name.
type sample map[string]float64

func (k *soak) run(ctx context.Context) {
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		k.load(ctx)
	}()
	tick := time.NewTicker(sampleTime)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-loaded:
			running = false
		case <-tick.C:
			s, err := k.sample(ctx)
			if err != nil {
				k.t.Errorf("sample: %v", err)
				continue
			}
			k.samples = append(k.samples, s)
		}
	}
	if k.failed.Load() > 0 || k.won.Load() == 0 || ctx.Err() != nil {
		k.t.Errorf("%d calls failed, %d grabs won, %v", k.failed.Load(), k.won.Load(), ctx.Err())
	}
	fmt.Printf("soak: %v, %d packets, %d grabs won, %d samples\n", *length, k.packets.Load(), k.won.Load(), len(k.samples))
	for _, g := range growth(k.samples) {
		fmt.Println("soak:", g)
		if g.tooMuch() {
			k.t.Errorf("has grown: %s", g)
		}
	}
	k.settle(ctx)
}

// load creates packets at a steady rate and makes users grab from them. In half of the packets
// shares are left over and refunded.
func (k *soak) load(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	every := time.NewTicker(time.Second * (soakShares + 1) / time.Duration(max(1, *rate)))
	defer every.Stop()
	for end := time.After(*length); ; {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-every.C:
		}
		n := k.packets.Add(1)
		all.Go(func() { k.live(ctx, n) })
	}
}

// live runs one packet.
func (k *soak) live(ctx context.Context, n int64) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p, err := k.app.CreateAndWait(ctx, wire.CreatePacket{SenderID: fmt.Sprintf("sender%d", n%100), TotalAmount: 10_000,
		ShareCount:       soakShares,
		ExpiresInSeconds: int(soakLife / time.Second)})
	if err != nil {
		k.wrong("create: %v", err)
		return
	}
	grabs := soakShares + 1
	if n%2 == 0 {
		grabs = soakShares - 3
	}
	for u := range grabs {
		if !wait(ctx, time.Duration(rand.Int64N(int64(soakLife)/int64(3*grabs)))) {
			return
		}
		var amounts []money.Fen
		for range 2 { // the repeat returns the same
			c, err := k.app.Grab(ctx, p.ID, wire.Grab{UserID: fmt.Sprintf("u%d-%d", n, u)})
			if client.IsCode(err, wire.CodeSoldOut) && u >= soakShares {
				break
			}
			if err != nil {
				k.wrong("grab %d of packet %s: %v", u, p.ID, err)
				return
			}
			amounts = append(amounts, c.Amount)
		}
		if len(amounts) == 2 && amounts[0] != amounts[1] {
			k.wrong("packet %s: user %d got the amounts %v", p.ID, u, amounts)
		}
		k.won.Add(int64(min(1, len(amounts))))
	}
}

func (k *soak) wrong(format string, args ...any) {
	if k.failed.Add(1) <= mostShown {
		k.t.Errorf(format, args...)
	}
}

// settle waits until every packet is closed and every payout paid, and checks what Redis keeps: one
// key per packet, which expires.
func (k *soak) settle(ctx context.Context) {
	query := `SELECT (SELECT COUNT(*) FROM payments WHERE status <> 'paid') + (SELECT COUNT(*) FROM outbox) + (SELECT COUNT(*) FROM packets
		WHERE status <> 'closed')`
	left, parts, err := -1, -1, error(nil)
	for deadline := time.Now().Add(healing); left != 0 || parts != 0 || err != nil; {
		if time.Now().After(deadline) || !wait(ctx, time.Second/2) {
			k.t.Errorf("%d payments, packets and runs have not ended, %d keys of pools are left: %v", left, parts, err)
			return
		}
		if err = rows(ctx, k.db, query, func(scan func(...any) error) error { return scan(&left) }); err == nil {
			parts, err = k.poolKeys(ctx)
		}
	}
	last, err := k.sample(ctx)
	if err != nil {
		k.t.Error(err)
		return
	}
	packets := float64(k.packets.Load())
	bytes := last["redis tombstone bytes"] / packets
	fmt.Printf("soak: settled; Redis keeps %.0f keys, %.0f of them for %.0f packets, %.0f bytes a packet\n", last["redis keys"],
		last["redis tombstones"], packets, bytes)
	if last["redis tombstones"] > packets || last["redis keys"]-last["redis tombstones"] > keysForAll || bytes > bytesEach {
		k.t.Errorf("Redis keeps too much of %.0f settled packets: %v, %.0f bytes each", packets, last, bytes)
	}
}

// poolKeys counts keys of packets that are not retired, and tombstones that stay for ever.
func (k *soak) poolKeys(ctx context.Context) (n int, err error) {
	keys := k.redis.Scan(ctx, 0, "hb:{*}:packet:*", 1000).Iterator()
	for keys.Next(ctx) {
		ttl, err := k.redis.TTL(ctx, keys.Val()).Result()
		if err != nil {
			return n, err
		}
		if ttl < 0 {
			n++
		}
	}
	return n, keys.Err()
}

// sample measures everything.
func (k *soak) sample(ctx context.Context) (sample, error) {
	s := sample{}
	errs := []error{k.metrics(ctx, s, "api", k.stack.env("HONGBAO_STAFF_URL"))}
	listen, err := k.workerListens()
	errs = append(errs, err, k.metrics(ctx, s, "worker", "http://"+listen))
	errs = append(errs, rows(ctx, k.db, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = "+
		"'THREADS_CONNECTED'",
		func(scan func(...any) error) error {
			var n float64
			defer func() { s["mysql connections"] = n }()
			return scan(&n)
		}))
	info, err := k.redis.Info(ctx, "clients").Result()
	errs = append(errs, err)
	for line := range strings.SplitSeq(info, "\r\n") {
		if value, ok := strings.CutPrefix(line, "connected_clients:"); ok {
			s["redis connections"], err = strconv.ParseFloat(value, 64)
			errs = append(errs, err)
		}
	}
	size, err := k.redis.DBSize(ctx).Result()
	errs = append(errs, err)
	live, err := k.poolKeys(ctx)
	errs = append(errs, err)
	s["redis keys"], s["redis keys of living packets"] = float64(size), float64(live)
	all := k.redis.Scan(ctx, 0, "hb:{*}:packet:*", 1000).Iterator()
	for all.Next(ctx) {
		used, err := k.redis.MemoryUsage(ctx, all.Val()).Result()
		if errors.Is(err, redis.Nil) {
			continue // has just been retired
		}
		errs = append(errs, err)
		s["redis tombstones"]++
		s["redis tombstone bytes"] += float64(used)
	}
	s["redis tombstones"] -= s["redis keys of living packets"]
	return s, errors.Join(append(errs, all.Err())...)
}

// workerListens returns the address of the worker's metrics; the supervisor chooses the port.
func (k *soak) workerListens() (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", k.stack.pid("worker")))
	if err != nil {
		return "", err
	}
	for v := range strings.SplitSeq(string(b), "\x00") {
		if at, ok := strings.CutPrefix(v, "HONGBAO_WORKER_LISTEN="); ok {
			return at, nil
		}
	}
	return "", errors.New("the worker listens nowhere")
}

// metrics reads the metrics of a process.
func (k *soak) metrics(ctx context.Context, s sample, part, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return err
	}
	res, err := k.stack.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	wanted := map[string]string{"go_goroutines": "goroutines", "process_resident_memory_bytes": "resident bytes",
		"go_memstats_heap_alloc_bytes": "heap bytes", "process_open_fds": "files"}
	found := 0
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), " ")
		if as, ok := wanted[name]; ok {
			if s[part+" "+as], err = strconv.ParseFloat(value, 64); err != nil {
				return err
			}
			found++
		}
	}
	if found != len(wanted) {
		return fmt.Errorf("%s has %d of %d metrics", part, found, len(wanted))
	}
	return nil
}

// grown is one figure after the warm-up and at the end.
type grown struct {
	name          string
	before, after float64
}

// slack is the growth that is allowed in addition to a quarter: the noise of a small value.
func (g grown) slack() float64 {
	switch {
	case strings.HasSuffix(g.name, "bytes"):
		return 8 << 20
	case strings.HasPrefix(g.name, "redis keys"):
		return 20 * 4 // the pools of twenty packets
	}
	return 30
}

func (g grown) tooMuch() bool { return g.after > g.before*1.25+g.slack() }

// String formats bytes in MiB.
func (g grown) String() string {
	scale, unit := 1.0, ""
	if strings.HasSuffix(g.name, "bytes") {
		scale, unit = 1<<20, " MiB"
	}
	return fmt.Sprintf("%s: %.1f%s after the warm-up, %.1f%s at the end", g.name, g.before/scale, unit, g.after/scale, unit)
}

// growth compares the second third of the samples with the last: the lowest heap, which is what the
// collector left, and the median of the rest. What Redis keeps of settled packets grows with them
// and is checked separately.
func growth(samples []sample) []grown {
	if len(samples) < 9 {
		return []grown{{"samples, too few", 0, 1e9}}
	}
	third := len(samples) / 3
	at := func(name string, of []sample) float64 {
		var all []float64
		for _, s := range of {
			all = append(all, s[name])
		}
		slices.Sort(all)
		if strings.HasSuffix(name, "heap bytes") {
			return all[0]
		}
		return all[len(all)/2]
	}
	var out []grown
	for name := range samples[len(samples)-1] {
		if name == "redis keys" || strings.HasPrefix(name, "redis tombstone") {
			continue
		}
		out = append(out, grown{name, at(name, samples[third:2*third]), at(name, samples[2*third:])})
	}
	slices.SortFunc(out, func(a, b grown) int { return strings.Compare(a.name, b.name) })
	return out
}

// TestGrowthIsSeen checks that a growing value is reported and a fluctuating one is not.
func TestGrowthIsSeen(t *testing.T) {
	run := func(name string, at func(n int) float64) bool {
		var samples []sample
		for n := range 90 {
			samples = append(samples, sample{name: at(n)})
		}
		return growth(samples)[0].tooMuch()
	}
	saw := func(n int) float64 { return float64(20+n%10*8) * (1 << 20) }
	leak := func(n int) float64 { return float64(20+n) * (1 << 20) }
	for name, c := range map[string]struct {
		name string
		at   func(int) float64
		want bool
	}{
		"steady goroutines": {"api goroutines", func(n int) float64 { return 200 + float64(n%7) }, false},
		"leaked goroutines": {"api goroutines", func(n int) float64 { return 200 + float64(10*n) }, true},
		"collected heap":    {"worker heap bytes", saw, false},
		"leaked heap":       {"worker heap bytes", func(n int) float64 { return saw(n) + leak(n) }, true},
		"steady keys":       {"redis keys of living packets", func(n int) float64 { return 300 + float64(n%30) }, false},
		"pools that stay":   {"redis keys of living packets", func(n int) float64 { return 300 + float64(20*n) }, true},
		"connections":       {"mysql connections", func(n int) float64 { return 20 + float64(2*n) }, true},
		"warm-up":           {"api resident bytes", func(n int) float64 { return float64(min(n, 30)) * (4 << 20) }, false},
	} {
		if got := run(c.name, c.at); got != c.want {
			t.Errorf("%s: seen %v, want %v", name, got, c.want)
		}
	}
	if !growth(nil)[0].tooMuch() {
		t.Error("no samples are taken for no growth")
	}
}
