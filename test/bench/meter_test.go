package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
)

// usage holds the resources that runs have used.
type usage struct {
	wall  time.Duration
	self  time.Duration // processor time of this process: load generator and measured code
	busy  time.Duration // of all cores, by all processes
	cores int           // of the machine

	main    time.Duration // processor time of Redis' main thread
	waiting time.Duration // time in which it was runnable and no core was free
	others  time.Duration // processor time of Redis' other threads
	looks   map[byte]int  // samples of the main thread's state, by state
	calls   int           // of scripts
}

// onDisk returns the part of the time in which Redis' main thread waited for the disk: with appendfsync always, for the fsync before
// the responses of a loop are sent.
func (u usage) onDisk() float64 {
	all := 0
	for _, n := range u.looks {
		all += n
	}
	if all == 0 {
		return 0
	}
	return float64(u.looks['D']) / float64(all)
}

// add adds the usage of a further run.
func (u *usage) add(v usage) {
	if u.looks == nil {
		u.looks = map[byte]int{}
	}
	for state, n := range v.looks {
		u.looks[state] += n
	}
	u.wall, u.self, u.busy, u.cores = u.wall+v.wall, u.self+v.self, u.busy+v.busy, v.cores
	u.main, u.waiting, u.others, u.calls = u.main+v.main, u.waiting+v.waiting, u.others+v.others, u.calls+v.calls
}

// reading is one reading of the counters of Linux and of Redis.
type reading struct {
	at                          time.Time
	self, busy                  time.Duration
	cores, calls                int
	main, waiting, allOfProcess time.Duration
}

// lookEvery is the interval at which the state of Redis' main thread is sampled: long enough for the sampling to cost nothing.
const lookEvery = 2 * time.Millisecond

// tick is the unit of times in /proc/stat and /proc/<pid>/stat: 1/USER_HZ, where USER_HZ is 100 on all common architectures.
const tick = 10 * time.Millisecond

func read(ctx context.Context, rdb *redis.Client, pid int) (r reading, err error) {
	r.at = time.Now()
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return r, err
	}
	r.self = time.Duration(self.Utime.Nano() + self.Stime.Nano())
	if r.busy, r.cores, err = machineBusy(); err != nil {
		return r, err
	}
	process, err := statFields(pid)
	if err != nil {
		return r, err
	}
	for _, i := range []int{11, 12} { // utime and stime
		n, err := strconv.Atoi(process[i])
		if err != nil {
			return r, fmt.Errorf("process %d: %w", pid, err)
		}
		r.allOfProcess += time.Duration(n) * tick
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err != nil {
		return r, err
	}
	if _, err := fmt.Sscan(string(text), &r.main, &r.waiting); err != nil {
		return r, fmt.Errorf("schedstat of %d: %w", pid, err)
	}
	info, err := rdb.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return r, err
	}
	for _, command := range []string{"eval", "evalsha", "fcall"} {
		var calls int
		if _, err := fmt.Sscanf(info["Commandstats"]["cmdstat_"+command], "calls=%d,", &calls); err == nil {
			r.calls += calls
		}
	}
	return r, nil
}

// machineBusy reads the busy time of all cores, and their number, from /proc/stat.
func machineBusy() (busy time.Duration, cores int, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	for l := range strings.Lines(string(text)) {
		fields := strings.Fields(l)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		if fields[0] != "cpu" {
			cores++
			continue
		}
		for i, field := range fields[1:9] {
			n, err := strconv.Atoi(field)
			if err != nil {
				return 0, 0, fmt.Errorf("/proc/stat: %w", err)
			}
			if i != 3 && i != 4 { // idle, and idle with a disk at work
				busy += time.Duration(n) * tick
			}
		}
	}
	return busy, cores, nil
}

// statFields returns the fields of /proc/<pid>/stat from the third on, the state. The second field, the name, may hold any
// character.
func statFields(pid int) ([]string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return nil, fmt.Errorf("process %d: %q", pid, text)
	}
	return fields, nil
}

// meter starts to measure this process, the machine and one Redis. The returned function ends it and returns the usage.
func meter(tb testing.TB, server *stacktest.Server) func() usage {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	pid := server.PID()
	before, err := read(tb.Context(), rdb, pid)
	if err != nil {
		tb.Fatal(err)
	}
	looks, stop := map[byte]int{}, make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		every := time.NewTicker(lookEvery)
		defer every.Stop()
		for {
			select {
			case <-stop:
				return
			case <-every.C:
				if fields, err := statFields(pid); err == nil {
					looks[fields[0][0]]++
				}
			}
		}
	})
	return func() usage {
		close(stop)
		looking.Wait()
		after, err := read(tb.Context(), rdb, pid)
		if err != nil {
			tb.Fatal(err)
		}
		_ = rdb.Close()
		main := after.main - before.main
		return usage{
			wall: after.at.Sub(before.at), self: after.self - before.self, busy: after.busy - before.busy, cores: after.cores,
			main: main, waiting: after.waiting - before.waiting, others: max(0, after.allOfProcess-before.allOfProcess-main),
			looks: looks, calls: after.calls - before.calls,
		}
	}
}
