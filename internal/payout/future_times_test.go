package payout

import (
	"testing"
	"time"
)

const month = 30 * 24 * time.Hour

func sentNow(t *testing.T, b *paymentStore) string {
	t.Helper()
	no, err := b.send()
	if err != nil || no == "" {
		t.Fatalf("sent %q, %v", no, err)
	}
	return no
}

// TestClampFutureTimes: times from a clock that was a month ahead become now once it is set back,
// and earlier times stay.
func TestClampFutureTimes(t *testing.T) {
	b := newPaymentStore(KindPayout)
	no := sentNow(t, b)
	if err := b.settle(1, Observation{Source: SourceSend, Kind: ObsNoAnswer, OrderNo: no}); err != nil {
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

// TestClampKeepsLegalDelays: legal delays are not changed.
func TestClampKeepsLegalDelays(t *testing.T) {
	b := newPaymentStore(KindPayout)
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

// TestR5_ClampLimitsResend: a number sent by a clock ahead is sent again for a day at most, and one
// of a final payment not at all: its true time is unknown, and the provider may have forgotten it.
func TestR5_ClampLimitsResend(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer ObservationKind
		most   time.Duration
	}{
		{"open", ObsNoAnswer, 24 * time.Hour},
		{"failed", ObsDeclined, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newPaymentStore(KindPayout)
			b.now = t0.Add(month)
			no := sentNow(t, b)
			for _, source := range []Source{SourceSend, SourceQuery} {
				b.now = b.now.Add(time.Second)
				kind := tc.answer
				if source == SourceQuery && kind == ObsNoAnswer {
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
			if tc.answer != ObsNoAnswer {
				return
			}
			if ChooseOrderNo(b.p, b.attempts, b.now) != SameOrderNo || ChooseOrderNo(b.p, b.attempts, b.now.Add(tc.most)) != NoOrderNo {
				t.Error("it is not sent on, or after a day still")
			}
		})
	}
}

// TestR4_ClampKeepsLandingWindow: a send recorded by a clock ahead may land for as long as it could
// when the row was last written.
func TestR4_ClampKeepsLandingWindow(t *testing.T) {
	b := newPaymentStore(KindPayout)
	b.now = t0.Add(month)
	sentNow(t, b)
	b.now = t0
	ClampFutureTimes(&b.p, b.attempts, b.now)
	window := LeaveWithin + limits.LandingWindow
	if a := *b.attempt(1); !a.open(t0.Add(window-time.Millisecond)) || a.open(t0.Add(window)) {
		t.Errorf("it may land until %v, want %v", a.CurrentSendUntil, t0.Add(window))
	}
}
