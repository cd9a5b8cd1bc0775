package payout

import (
	"testing"
	"time"
)

const month = 30 * 24 * time.Hour

func sentNow(t *testing.T, b *books) string {
	t.Helper()
	no, err := b.send()
	if err != nil || no == "" {
		t.Fatalf("sent %q, %v", no, err)
	}
	return no
}

// TestRewind: what was noted by a clock that was ahead for a month counts as of now once it is
// set right, and what was noted before stays as it is.
func TestRewind(t *testing.T) {
	b := newBooks(KindPayout)
	no := sentNow(t, b)
	if err := b.settle(1, Observation{Source: SourceSend, Kind: ObsUnknown, OrderNo: no}); err != nil {
		t.Fatal(err)
	}
	until := b.attempt(1).QueryUntil
	b.now = b.now.Add(month)
	if err := b.settle(1, Observation{Source: SourceQuery, Kind: ObsNoAnswer, OrderNo: no}); err != nil {
		t.Fatal(err)
	}
	if ClampFutureTimes(&b.p, b.attempts, b.now) {
		t.Fatal("something was rewound while the clock was ahead")
	}
	b.now = t0.Add(time.Minute)
	if !ClampFutureTimes(&b.p, b.attempts, b.now) {
		t.Fatal("nothing was rewound")
	}
	a := b.attempt(1)
	if at := b.step().At; at.After(b.now) || b.p.UpdatedAt.After(b.now) || !a.StartedAt.Equal(t0) || !a.QueryUntil.Equal(until) {
		t.Errorf("next at %v, updated at %v, %+v", at, b.p.UpdatedAt, a)
	}
	if ClampFutureTimes(&b.p, b.attempts, b.now) {
		t.Error("it was rewound twice")
	}
}

// TestRewindLeavesLegalDelays: nothing that is put off by the rules is pulled back.
func TestRewindLeavesLegalDelays(t *testing.T) {
	b := newBooks(KindPayout)
	no := sentNow(t, b)
	for range 200 {
		if err := b.settle(1, Observation{Source: SourceQuery, Kind: ObsNoAnswer, OrderNo: no, RetryAfter: LongestPause}); err != nil {
			t.Fatal(err)
		}
		if ClampFutureTimes(&b.p, b.attempts, b.now.Add(-time.Second)) { // read before a transaction that waited
			t.Fatalf("at %v: rewound from %+v", b.now, b.attempt(1))
		}
		b.now = b.step().At
	}
}

// TestR5_RewindKeepsTheProvidersMemory: a number that was sent by a clock ahead is sent on for
// a day at most, and one of a payment at its end not at all: when it was sent in truth nobody
// knows, and the provider may have forgotten it.
func TestR5_RewindKeepsTheProvidersMemory(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer ObservationKind
		most   time.Duration
	}{
		{"open", ObsUnknown, 24 * time.Hour},
		{"failed", ObsDeclined, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBooks(KindPayout)
			b.now = t0.Add(month)
			no := sentNow(t, b)
			for _, source := range []Source{SourceSend, SourceQuery} {
				b.now = b.now.Add(time.Second)
				kind := tc.answer
				if source == SourceQuery && kind == ObsUnknown {
					kind = ObsNeverReceived
				}
				if err := b.settle(1, Observation{Source: source, Kind: kind, OrderNo: no}); err != nil {
					t.Fatal(err)
				}
			}
			b.now = t0
			ClampFutureTimes(&b.p, b.attempts, b.now)
			if got := b.attempt(1).QueryUntil.Sub(b.now); got != tc.most {
				t.Errorf("may be sent on for %v, want %v", got, tc.most)
			}
			if tc.answer != ObsUnknown {
				return
			}
			if ChooseOrderNo(b.p, b.attempts, b.now) != SameOrderNo || ChooseOrderNo(b.p, b.attempts, b.now.Add(tc.most)) != NoOrderNo {
				t.Error("it is not sent on, or after a day still")
			}
		})
	}
}

// TestR4_RewindKeepsTheLandingWindow: a send that was noted by a clock ahead may land for as
// long as it had left when the row was noted last.
func TestR4_RewindKeepsTheLandingWindow(t *testing.T) {
	b := newBooks(KindPayout)
	b.now = t0.Add(month)
	sentNow(t, b)
	b.now = t0
	ClampFutureTimes(&b.p, b.attempts, b.now)
	window := LeaveWithin + limits.LandingWindow
	if a := *b.attempt(1); !a.open(t0.Add(window-time.Millisecond)) || a.open(t0.Add(window)) {
		t.Errorf("it may land until %v, want %v", a.NotedUntil, t0.Add(window))
	}
}
