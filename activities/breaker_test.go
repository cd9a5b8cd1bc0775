package activities

import (
	"fmt"
	"testing"
	"time"

	"hongbao/internal/payout"
)

var lowBalance = payout.Observation{Kind: payout.ObsRetryAfter, Code: payout.CodeLowBalance}

// at returns an observation of a send that began now.
func at(o payout.Observation, now time.Time) payout.Observation {
	o.StartedAt = now
	return o
}

// troubled returns a breaker opened by observations of this kind.
func troubled(t *testing.T, o payout.Observation, now time.Time) *Breaker {
	t.Helper()
	b := new(Breaker)
	for i := 0; b.Cause() == payout.TroubleNone; i++ {
		if i > outagePayments*outageCalls {
			t.Fatal("the breaker does not open")
		}
		if _, ok := b.Admit(now); !ok {
			t.Fatal("a closed breaker refuses")
		}
		b.Report(fmt.Sprint("p", i%outagePayments), at(o, now), now)
	}
	return b
}

// TestBreakerOpens: failures of different payments open it, those of one payment never do, and a
// good answer resets the count.
func TestBreakerOpens(t *testing.T) {
	now := time.Unix(1e9, 0)
	silent := payout.Observation{Kind: payout.ObsNoAnswer}
	good := payout.Observation{Kind: payout.ObsSucceeded}
	limited := payout.Observation{Kind: payout.ObsRetryAfter, Code: payout.CodeRateLimited}
	type said struct {
		payment string
		o       payout.Observation
		after   time.Duration
	}
	row := func(o payout.Observation, payments ...string) (out []said) {
		for _, p := range payments {
			out = append(out, said{p, o, 0})
		}
		return out
	}
	join := func(parts ...[]said) (out []said) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	thrice := func(o payout.Observation, payments ...string) (out []said) {
		return join(row(o, payments...), row(o, payments...), row(o, payments...))
	}
	for name, tc := range map[string]struct {
		said []said
		want payout.Trouble
	}{
		"low balance of three":         {row(lowBalance, "a", "b", "c"), payout.TroubleLowBalance},
		"low balance of two":           {row(lowBalance, "a", "b", "a", "b"), payout.TroubleNone},
		"silence of five, thrice each": {thrice(silent, "a", "b", "c", "d", "e"), payout.TroubleOutage},
		"silence of many, twice each": {join(row(silent, "a", "b", "c", "d", "e", "f", "g"),
			row(silent, "a", "b", "c", "d", "e", "f", "g")), payout.TroubleNone},
		"silence of four":         {join(thrice(silent, "a", "b", "c", "d"), row(silent, "d", "c")), payout.TroubleNone},
		"one payment, many times": {row(silent, "a", "a", "a", "a", "a", "a", "a"), payout.TroubleNone},
		"a good answer between":   {join(thrice(silent, "a", "b", "c"), row(good, "z"), thrice(silent, "d", "e")), payout.TroubleNone},
		"a refusal between": {join(row(lowBalance, "a", "b"), row(payout.Observation{Kind: payout.ObsDeclined}, "z"), row(lowBalance, "c")),
			payout.TroubleNone},
		"a rate limit between says nothing": {join(thrice(silent, "a", "b", "c", "d"), row(limited, "z"), thrice(silent, "e")),
			payout.TroubleOutage},
		"too long ago": {join(thrice(silent, "a", "b", "c", "d"), row(silent, "e", "e"),
			[]said{{"e", silent, failureWindow + time.Second}}), payout.TroubleNone},
		"two kinds": {join(row(lowBalance, "a", "b"), row(silent, "c"), row(lowBalance, "d")), payout.TroubleNone},
	} {
		t.Run(name, func(t *testing.T) {
			b := new(Breaker)
			now := now
			for _, s := range tc.said {
				now = now.Add(s.after)
				b.Report(s.payment, at(s.o, now), now)
			}
			if b.Cause() != tc.want {
				t.Errorf("%q, want %q", b.Cause(), tc.want)
			}
			if _, ok := b.Admit(now); ok != (tc.want == payout.TroubleNone) {
				t.Errorf("admitted: %v", ok)
			}
		})
	}
}

// TestBreakerProbes: after the pause exactly one probe is admitted; its outcome closes the breaker,
// or opens it for twice the time, up to the cap.
func TestBreakerProbes(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := troubled(t, lowBalance, now)
	for i := range 10 {
		pause := min(breakerFirstPause<<i, breakerPauseCap)
		if wait, ok := b.Admit(now); ok || wait != pause {
			t.Fatalf("round %d: wait %v %v, want %v", i, wait, ok, pause)
		}
		now = now.Add(pause)
		if _, ok := b.Admit(now); !ok {
			t.Fatalf("round %d: no probe is admitted", i)
		}
		if wait, ok := b.Admit(now); ok || wait <= 0 || wait > probePoll {
			t.Fatalf("round %d: a second one tries: %v %v", i, wait, ok)
		}
		if b.Report("p", at(lowBalance, now), now) {
			t.Fatalf("round %d: a failed try changed the state", i)
		}
	}
	now = now.Add(breakerPauseCap)
	if _, ok := b.Admit(now); !ok {
		t.Fatal("no probe is admitted")
	}
	if !b.Report("p", at(payout.Observation{Kind: payout.ObsSucceeded}, now), now) || b.Cause() != payout.TroubleNone {
		t.Fatal("a good try does not close it")
	}
	for range 100 {
		if _, ok := b.Admit(now); !ok {
			t.Fatal("closed, but refuses")
		}
	}
}

// TestBreakerProbeIsALease: a probe without a result, of a crashed process, expires; a caller that
// sent nothing returns the probe at once.
func TestBreakerProbeIsALease(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := troubled(t, payout.Observation{Kind: payout.ObsNotSent}, now)
	now = now.Add(breakerFirstPause)
	if _, ok := b.Admit(now); !ok {
		t.Fatal("no probe is admitted")
	}
	b.Cancel()
	if _, ok := b.Admit(now); !ok {
		t.Fatal("a turn that was given back is lost")
	}
	if _, ok := b.Admit(now.Add(probeLease - time.Millisecond)); ok {
		t.Fatal("two try at once")
	}
	if _, ok := b.Admit(now.Add(probeLease)); !ok {
		t.Fatal("a try that was never reported blocks for ever")
	}
}

// TestBreakerIgnoresStaleAnswers: answers to sends from before it opened neither close it nor
// lengthen its pause.
func TestBreakerIgnoresStaleAnswers(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := troubled(t, lowBalance, now)
	for _, o := range []payout.Observation{{Kind: payout.ObsSucceeded}, lowBalance} {
		if b.Report("late", at(o, now.Add(-time.Millisecond)), now) || b.Cause() != payout.TroubleLowBalance {
			t.Errorf("an earlier %s changed it", o.Kind)
		}
	}
	if wait, ok := b.Admit(now); ok || wait != breakerFirstPause {
		t.Errorf("wait %v %v", wait, ok)
	}
}

// TestBreakerUsesQueries: a provider that has the orders works, even if its answers are lost; one
// that never answers does not.
func TestBreakerUsesQueries(t *testing.T) {
	now := time.Unix(1e9, 0)
	silent, has := payout.Observation{Kind: payout.ObsNoAnswer}, payout.Observation{Kind: payout.ObsSucceeded}
	b := new(Breaker)
	for i := range 100 { // replies are lost, one after the other
		p := fmt.Sprint("p", i)
		for range outageCalls {
			if b.Report(p, at(silent, now), now) || b.ReportQuery(p, has, now) {
				t.Fatal("lost replies open it")
			}
		}
	}
	b = new(Breaker)
	opened := false
	for i := range outagePayments {
		p := fmt.Sprint("p", i)
		b.Report(p, at(silent, now), now)
		for range outageCalls - 1 {
			if b.ReportQuery("another", silent, now) {
				t.Fatal("a query about another payment counts")
			}
			if b.ReportQuery(p, payout.Observation{Kind: payout.ObsNeverReceived}, now) {
				t.Fatal("never received says nothing")
			}
			opened = b.ReportQuery(p, silent, now) || opened
		}
	}
	if !opened || b.Cause() != payout.TroubleOutage {
		t.Fatalf("sends and queries in vain: %q", b.Cause())
	}
	now = now.Add(breakerFirstPause)
	if _, ok := b.Admit(now); !ok {
		t.Fatal("no probe is admitted")
	}
	b.Report("try", at(silent, now), now)
	if b.ReportQuery("p0", has, now) || b.Cause() == payout.TroubleNone {
		t.Fatal("an earlier order closed it")
	}
	if !b.ReportQuery("try", has, now) || b.Cause() != payout.TroubleNone {
		t.Fatal("the call that tried had worked, and it stays open")
	}
}
