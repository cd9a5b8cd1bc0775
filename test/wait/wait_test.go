package wait

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestScaled(t *testing.T) {
	t.Setenv(Factor, "")
	if got := Scaled(time.Second); got != least {
		t.Errorf("a second becomes %v, want %v", got, least)
	}
	t.Setenv(Factor, "2.5")
	if got := Scaled(time.Minute); got != 150*time.Second {
		t.Errorf("a minute becomes %v", got)
	}
	if got := Bound(2 * time.Second); got != 5*time.Second {
		t.Errorf("a bound of 2 s becomes %v", got)
	}
}

func TestReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if Reached(time.Minute, func() bool { return false }) {
			t.Error("never true, and yet reached")
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*longestPause {
			t.Errorf("gave up after %v", took)
		}
		if !Reached(time.Minute, func() bool { return time.Since(began) > 90*time.Second }) {
			t.Error("true after 30 s, and yet not reached")
		}
	})
}
