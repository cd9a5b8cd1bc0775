package chaos

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the schedules of testdata")

// TestSameSeedSameSchedule checks that the seed of a report can be run again. The committed
// schedules hold newer versions of Go and of this package to it.
func TestSameSeedSameSchedule(t *testing.T) {
	for name, make := range map[string]func(uint64) []fault{
		"short.txt": func(seed uint64) []fault { return shortSchedule(seed, shortLength) },
		"long.txt":  func(seed uint64) []fault { return chaosSchedule(seed, 2*time.Minute) },
		"wechat.txt": func(seed uint64) []fault {
			return merged(chaosSchedule(seed, 2*time.Minute), wechatSchedule(seed, 2*time.Minute))
		},
	} {
		text := printed(make(shortSeed))
		if printed(make(shortSeed)) != text {
			t.Errorf("%s: the same seed gives two schedules", name)
		}
		if printed(make(shortSeed+1)) == text {
			t.Errorf("%s: another seed gives the same schedule", name)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s differs from the schedule of the seed; -update rewrites it, but changes the meaning of seeds in old reports:\n%s", path,
				text)
		}
	}
}

// TestSameSeedSameLoad checks that a packet's script depends neither on the order nor on the number
// of packets.
func TestSameSeedSameLoad(t *testing.T) {
	a, b := newScript(7, 12, longestLife), newScript(7, 12, longestLife)
	if a.String() != b.String() {
		t.Errorf("the same seed gives two packets:\n%s\n%s", a, b)
	}
	if newScript(8, 12, longestLife).String() == a.String() || newScript(7, 13, longestLife).String() == a.String() {
		t.Error("another seed or number gives the same packet")
	}
}

// TestScheduleIsWhole checks that the short form kills every process once, and that two minutes
// meet every fault of every process and link. WeChat Pay is never killed: its state is in memory.
func TestScheduleIsWhole(t *testing.T) {
	for seed := range uint64(50) {
		short := count(shortSchedule(seed, shortLength))
		killed, broken := 0, 0
		for _, part := range parts {
			killed += min(short["alone kill "+part], 1)
		}
		for _, how := range linkFaults {
			broken += short[string(how)]
		}
		if killed != len(parts) || broken != 2 || short["pair"] != 1 {
			t.Fatalf("seed %d, short form: %v", seed, short)
		}
		long := count(chaosSchedule(seed, 2*time.Minute))
		for _, part := range parts {
			if long["alone kill "+part] == 0 || long["alone stop "+part] == 0 {
				t.Fatalf("seed %d: %s is not killed and stopped: %v", seed, part, long)
			}
		}
		for _, link := range links {
			if long["link "+link] == 0 {
				t.Fatalf("seed %d: %s is never broken: %v", seed, link, long)
			}
		}
		for _, how := range linkFaults {
			if long[string(how)] == 0 {
				t.Fatalf("seed %d: no %s: %v", seed, how, long)
			}
		}
		if long["pair"] < 4 {
			t.Fatalf("seed %d: pairs: %v", seed, long)
		}
		added := count(wechatSchedule(seed, 2*time.Minute))
		if added["alone stop wechat"] == 0 || added[string(misbehave)] < 2 || added[string(kill)] > 0 {
			t.Fatalf("seed %d: WeChat Pay: %v", seed, added)
		}
		for _, link := range wechatLinks {
			if added["link "+link] < len(linkFaults) {
				t.Fatalf("seed %d: %s is not broken in every way: %v", seed, link, added)
			}
		}
	}
}

func count(schedule []fault) map[string]int {
	n := map[string]int{}
	for i, f := range schedule {
		n[string(f.action)]++
		switch {
		case slices.Contains(linkFaults, f.action):
			n["link "+f.target]++
		case f.pair:
			n["pair"]++
		case i+1 == len(schedule) || !schedule[i+1].pair:
			n["alone "+strings.Join([]string{string(f.action), f.target}, " ")]++
		}
	}
	return n
}
