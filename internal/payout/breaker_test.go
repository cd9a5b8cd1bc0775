package payout

import (
	"fmt"
	"testing"
	"time"
)

var lowBalance = Observation{Kind: ObsRetryAfter, Code: CodeLowBalance}

// at returns an observation of a send that began now.
func at(o Observation, now time.Time) Observation {
	o.StartedAt = now
	return o
}

// troubled returns a breaker opened by observations of this kind.
func troubled(t *testing.T, o Observation, now time.Time) *Breaker {
	t.Helper()
	b := new(Breaker)
	for i := 0; b.Cause() == TroubleNone; i++ {
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

func TestTroubleOf(t *testing.T) {
	for _, tc := range []struct {
		o    Observation
		want Trouble
		says bool
	}{
		{Observation{Kind: ObsSucceeded}, TroubleNone, true},
		{Observation{Kind: ObsPending}, TroubleNone, true},
		{Observation{Kind: ObsNeedsRecipient}, TroubleNone, true},
		{Observation{Kind: ObsReturned}, TroubleNone, true},
		{Observation{Kind: ObsDeclined, Code: "account_frozen"}, TroubleNone, true},
		{lowBalance, TroubleLowBalance, true},
		{Observation{Kind: ObsRetryAfter, Code: CodeRateLimited}, TroubleNone, false},
		{Observation{Kind: ObsRetryAfter, Code: "unauthenticated"}, TroubleOutage, true},
		{Observation{Kind: ObsNoAnswer, Code: "http_500"}, TroubleOutage, true},
		{Observation{Kind: ObsNoAnswer, Code: "timeout"}, TroubleOutage, true},
		{Observation{Kind: ObsNotSent, Code: "connection"}, TroubleOutage, true},
	} {
		if got, says := TroubleOf(tc.o); got != tc.want || says != tc.says {
			t.Errorf("%s %s: %q %v, want %q %v", tc.o.Kind, tc.o.Code, got, says, tc.want, tc.says)
		}
	}
}

// TestBreakerOpens: failures of different payments open it, those of one payment never do, and a
// good answer resets the count.
func TestBreakerOpens(t *testing.T) {
	now := time.Unix(1e9, 0)
	silent := Observation{Kind: ObsNoAnswer}
	good := Observation{Kind: ObsSucceeded}
	limited := Observation{Kind: ObsRetryAfter, Code: CodeRateLimited}
	type said struct {
		payment string
		o       Observation
		after   time.Duration
	}
	row := func(o Observation, payments ...string) (out []said) {
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
	thrice := func(o Observation, payments ...string) (out []said) {
		return join(row(o, payments...), row(o, payments...), row(o, payments...))
	}
	for name, tc := range map[string]struct {
		said []said
		want Trouble
	}{
		"low balance of three":         {row(lowBalance, "a", "b", "c"), TroubleLowBalance},
		"low balance of two":           {row(lowBalance, "a", "b", "a", "b"), TroubleNone},
		"silence of five, thrice each": {thrice(silent, "a", "b", "c", "d", "e"), TroubleOutage},
		"silence of many, twice each": {join(row(silent, "a", "b", "c", "d", "e", "f", "g"),
			row(silent, "a", "b", "c", "d", "e", "f", "g")), TroubleNone},
		"silence of four":         {join(thrice(silent, "a", "b", "c", "d"), row(silent, "d", "c")), TroubleNone},
		"one payment, many times": {row(silent, "a", "a", "a", "a", "a", "a", "a"), TroubleNone},
		"a good answer between":   {join(thrice(silent, "a", "b", "c"), row(good, "z"), thrice(silent, "d", "e")), TroubleNone},
		"a refusal between": {join(row(lowBalance, "a", "b"), row(Observation{Kind: ObsDeclined}, "z"), row(lowBalance, "c")),
			TroubleNone},
		"a rate limit between says nothing": {join(thrice(silent, "a", "b", "c", "d"), row(limited, "z"), thrice(silent, "e")), TroubleOutage},
		"too long ago": {join(thrice(silent, "a", "b", "c", "d"), row(silent, "e", "e"),
			[]said{{"e", silent, failureWindow + time.Second}}), TroubleNone},
		"two kinds": {join(row(lowBalance, "a", "b"), row(silent, "c"), row(lowBalance, "d")), TroubleNone},
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
			if _, ok := b.Admit(now); ok != (tc.want == TroubleNone) {
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
	if !b.Report("p", at(Observation{Kind: ObsSucceeded}, now), now) || b.Cause() != TroubleNone {
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
	b := troubled(t, Observation{Kind: ObsNotSent}, now)
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
	for _, o := range []Observation{{Kind: ObsSucceeded}, lowBalance} {
		if b.Report("late", at(o, now.Add(-time.Millisecond)), now) || b.Cause() != TroubleLowBalance {
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
	silent, has := Observation{Kind: ObsNoAnswer}, Observation{Kind: ObsSucceeded}
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
			if b.ReportQuery(p, Observation{Kind: ObsNeverReceived}, now) {
				t.Fatal("never received says nothing")
			}
			opened = b.ReportQuery(p, silent, now) || opened
		}
	}
	if !opened || b.Cause() != TroubleOutage {
		t.Fatalf("sends and queries in vain: %q", b.Cause())
	}
	now = now.Add(breakerFirstPause)
	if _, ok := b.Admit(now); !ok {
		t.Fatal("no probe is admitted")
	}
	b.Report("try", at(silent, now), now)
	if b.ReportQuery("p0", has, now) || b.Cause() == TroubleNone {
		t.Fatal("an earlier order closed it")
	}
	if !b.ReportQuery("try", has, now) || b.Cause() != TroubleNone {
		t.Fatal("the call that tried had worked, and it stays open")
	}
}
