package bench

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

//go:embed grab_before.lua
var beforeSource string

// scriptPackets are the numbers of packets of one lane that get one grab each at the same time.
var scriptPackets = []int{1, 5, 20}

// scriptSubject is a grab script. grab makes one grab of each packet, with that user.
type scriptSubject struct {
	name string
	open func(tb testing.TB, addr string, packets, shares int) (grab func(user string) error)
}

var scriptSubjects = []scriptSubject{{"S0 script", openScriptS0}, {"the script before", openScriptBefore}, {"the script", openScriptNow},
	{"pool.Grab", openScriptOurs}}

// scriptCost is what Redis itself counted for the script calls of a run.
type scriptCost struct{ perCall, perGrab, grabs, commands float64 } // microseconds, microseconds, in a call, in a call

// measureScript measures the time of Redis' only thread in the grab scripts, and the commands that they run.
func measureScript(t *testing.T, p plan, say func(string, ...any)) []result {
	calls := p.sized(2_000, 20)
	r := result{title: "the time of Redis in one script call",
		columns: []string{"grabs at once", "who", "grabs a call", "us a call", "us a grab", "least", "most", "commands a call"},
		plot:    &plot{title: "Time of Redis for a grab in its script", unit: "us"},
		notes: []string{"As many packets of one lane as grabs, one caller; microseconds of Redis' only thread, from its own `INFO commandstats`, " +
			"without network and disk. S0 has one call for each grab.",
			"The script before is that of this project before shares were packed (`test/bench/grab_before.lua`). The script is the present " +
				"one, called in the same way with as small a packet.",
			fmt.Sprintf("Medians of %s of %d rounds, in turn on the same Redis.", runs(p.rounds), calls)}}
	for _, packets := range scriptPackets {
		costs := make([][]scriptCost, len(scriptSubjects))
		for round := range p.rounds {
			say("script with %d packets, round %d of %d", packets, round+1, p.rounds)
			addr := stacktest.FreshRedis(t, noRewrite...).Addr
			for i, s := range scriptSubjects {
				costs[i] = append(costs[i], s.measure(t, addr, packets, calls))
			}
		}
		for i, s := range scriptSubjects {
			of := func(part func(scriptCost) float64) rate {
				values := make([]sample, len(costs[i]))
				for n, c := range costs[i] {
					values[n] = sample{perSecond: part(c)}
				}
				return spread(values, perSecond)
			}
			grab := of(func(c scriptCost) float64 { return c.perGrab })
			group := fmt.Sprintf("%d at once", packets)
			r.rows = append(r.rows, []string{strconv.Itoa(packets), s.name, figure(of(func(c scriptCost) float64 { return c.grabs }).Median),
				figure(of(func(c scriptCost) float64 { return c.perCall }).Median), figure(grab.Median), figure(grab.Min), figure(grab.Max),
				figure(of(func(c scriptCost) float64 { return c.commands }).Median)})
			r.plot.bars = append(r.plot.bars, grab.bar(group, s.name))
			r.numbers = append(r.numbers, map[string]any{"what": "script", "who": s.name, "packets": packets, "us_per_grab": grab})
		}
	}
	return []result{r}
}

// measure makes that many rounds of grabs with new users.
func (s scriptSubject) measure(tb testing.TB, addr string, packets, rounds int) scriptCost {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	grab := s.open(tb, addr, packets, rounds+1)
	users := newUser(packets)
	round := func() {
		if err := grab(users.next()); err != nil {
			tb.Fatalf("%s: %v", s.name, err)
		}
	}
	round() // loads the script
	if err := rdb.ConfigResetStat(tb.Context()).Err(); err != nil {
		tb.Fatal(err)
	}
	for range rounds {
		round()
	}
	stats, err := rdb.InfoMap(tb.Context(), "commandstats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	var calls, us, commands float64
	for name, line := range stats["Commandstats"] {
		n, took := commandStat(tb, line)
		switch strings.TrimPrefix(name, "cmdstat_") {
		case "eval", "evalsha":
			calls, us = calls+n, us+took
		case "config|resetstat", "hello", "client|setinfo", "ping", "info":
		default:
			commands += n
		}
	}
	if calls == 0 {
		tb.Fatalf("%s: no script call", s.name)
	}
	grabs := float64(packets * rounds)
	return scriptCost{us / calls, us / grabs, grabs / calls, commands / calls}
}

// commandStat reads "calls=1,usec=2,...".
func commandStat(tb testing.TB, line string) (calls, us float64) {
	tb.Helper()
	for part := range strings.SplitSeq(line, ",") {
		name, value, _ := strings.Cut(part, "=")
		to := map[string]*float64{"calls": &calls, "usec": &us}[name]
		if to == nil {
			continue
		}
		var err error
		if *to, err = strconv.ParseFloat(value, 64); err != nil {
			tb.Fatal(err)
		}
	}
	return calls, us
}

func openScriptS0(tb testing.TB, addr string, packets, shares int) func(string) error {
	rdb := newScriptClient(tb, addr)
	keys := make([]s0Packet, packets)
	for i := range keys {
		keys[i] = s0Keys(strconv.FormatInt(packetSerial.Add(1), 10))
		loadS0(tb, rdb, keys[i], shares)
	}
	return func(user string) error {
		for _, k := range keys {
			if err := rdb.Eval(tb.Context(), s0Script, []string{k.untaken, k.taken, k.users, user}).Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

// openScriptBefore loads packets as grab_before.lua needs them, and sends all grabs of a round in one call.
func openScriptBefore(tb testing.TB, addr string, packets, shares int) func(string) error {
	return openLaneScript(tb, addr, packets, redis.NewScript(beforeSource), "before", func(rdb *redis.Client, base, id string) error {
		ctx := tb.Context()
		if err := rdb.HSet(ctx, base, "id", id, "app", "bench", "state", "open", "opens_at", 1, "expires_at", "9007199254740991", "restricted",
			"0", "remaining", shares, "claimed_count", 0).Err(); err != nil {
			return err
		}
		texts := make([]any, shares)
		for i := range texts {
			texts[i] = fmt.Sprintf("%d:%d:%d:0", i, int64(share), int64(share)*int64(i+1))
		}
		return rdb.RPush(ctx, base+":shares", texts...).Err()
	}, ":shares", ":winners", ":eligible", ":order")
}

// openScriptNow does the same with the pool's script, without the pool.
func openScriptNow(tb testing.TB, addr string, packets, shares int) func(string) error {
	source, err := os.ReadFile(filepath.Join("..", "..", "internal", "pool", "grab.lua"))
	if err != nil {
		tb.Fatal(err)
	}
	return openLaneScript(tb, addr, packets, redis.NewScript(string(source)), "now", func(rdb *redis.Client, base, id string) error {
		ctx := tb.Context()
		if err := rdb.HSet(ctx, base, "id", id, "app", "bench", "state", "open", "opens_at", 1, "expires_at", "9007199254740991", "restricted",
			"0", "share_count", shares, "claimed", "0:0:0:0:0").Err(); err != nil {
			return err
		}
		var packed []byte
		for i := range shares {
			packed = packet.AppendShare(packed, i, share)
		}
		return rdb.Append(ctx, base+":shares", string(packed)).Err()
	}, ":shares", ":winners", ":eligible", ":order", ":wins")
}

// openLaneScript loads packets of one lane, and sends all grabs of a round in one call of a script, whose keys of a packet
// have these endings.
func openLaneScript(tb testing.TB, addr string, packets int, script *redis.Script, name string,
	load func(rdb *redis.Client, base, id string) error, endings ...string) func(string) error {
	rdb, ctx := newScriptClient(tb, addr), tb.Context()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	lane := name + ":{l00}:"
	must(rdb.HSet(ctx, lane+"epoch", "epoch", 1, "gate", "open", "seq", 0, "grabs", 0).Err())
	keys := []string{lane + "epoch", lane + "handoff"}
	for range packets {
		id := newPacketID(tb)
		base := lane + "packet:" + id
		must(load(rdb, base, id))
		keys = append(keys, base)
		for _, ending := range endings {
			keys = append(keys, base+ending)
		}
	}
	seq := 0
	return func(user string) error {
		users := msgp.AppendString(msgp.AppendArrayHeader(nil, 1), user)
		args := []any{fmt.Sprintf("1:%d:7:%d", seq, seq), fmt.Sprintf("%08d", seq)}
		for range packets {
			args = append(args, users, "")
		}
		seq += packets
		reply, err := script.Run(ctx, rdb, keys, args...).Slice()
		if err == nil && len(reply) <= 5*packets {
			err = fmt.Errorf("%d elements for %d packets", len(reply), packets)
		}
		for i := 0; err == nil && i < packets; i++ {
			if reply[5*i+2] == "" {
				err = fmt.Errorf("no share: %v", reply[5*i])
			}
		}
		return err
	}
}

// openScriptOurs grabs through the pool, all packets of a round at the same time.
func openScriptOurs(tb testing.TB, addr string, packets, shares int) func(string) error {
	p, err := pool.Open(tb.Context(), pool.Config{Addr: addr, Timeout: patience})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	f := &packetGroup{pool: p}
	for range packets {
		f.add(tb, shares, 0)
	}
	return func(user string) error {
		errs := make([]error, packets)
		var all sync.WaitGroup
		for i, id := range f.ids {
			all.Go(func() {
				got, err := p.Grab(tb.Context(), id, user, packet.Profile{})
				if err == nil && got.Result != packet.GrabWon {
					err = fmt.Errorf("packet %s: %v", id, got.Result)
				}
				errs[i] = err
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
}

func newScriptClient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: patience, DisableIdentity: true})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
