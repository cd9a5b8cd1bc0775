// Package wait lets tests wait for a condition or a value, with a generous deadline. Only a defect
// reaches a deadline; TEST_PATIENCE multiplies all of them for a slower machine.
package wait

import (
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	// usual is the deadline of work that takes seconds on an idle machine.
	usual = 2 * time.Minute
	// least is the shortest deadline that a caller may set.
	least = 30 * time.Second
	// Factor names the environment variable that multiplies all deadlines; 1 when it is not set.
	// Not HONGBAO_: processes that tests start would refuse it as an unknown setting.
	Factor = "TEST_PATIENCE"

	firstPause, longestPause = time.Millisecond, 100 * time.Millisecond
)

// Limit is the usual deadline, multiplied by TEST_PATIENCE.
func Limit() time.Duration { return Scaled(usual) }

// Scaled returns a deadline of at least 30 s, multiplied by TEST_PATIENCE. It panics as Bound does.
func Scaled(limit time.Duration) time.Duration { return Bound(max(limit, least)) }

// Bound returns the longest that something may take, multiplied by TEST_PATIENCE. It panics when
// the variable is set and not a positive number.
func Bound(limit time.Duration) time.Duration {
	text := os.Getenv(Factor)
	if text == "" {
		return limit
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || factor <= 0 {
		panic(Factor + "=" + text + " is not a positive number")
	}
	return time.Duration(float64(limit) * factor)
}

// Until polls until done returns true. It fails the test at the usual deadline.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	Within(t, usual, func() string { return what }, done)
}

// Within polls until done returns true. At the deadline, which Scaled multiplies, it fails
// the test with what the second function returns then.
func Within(t testing.TB, limit time.Duration, what func() string, done func() bool) {
	t.Helper()
	limit = Scaled(limit)
	if !Reached(limit, done) {
		t.Fatalf("not within %v: %s", limit, what())
	}
}

// Reached polls until done returns true, and returns false at the deadline.
func Reached(limit time.Duration, done func() bool) bool {
	deadline := time.Now().Add(limit)
	for pause := firstPause; !done(); pause = min(2*pause, longestPause) {
		if time.Now().After(deadline) {
			return done()
		}
		time.Sleep(pause)
	}
	return true
}

// For returns the next value of a channel, or the zero value when it is closed. It fails
// the test at the usual deadline.
func For[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(Limit())
	defer deadline.Stop()
	select {
	case v := <-from:
		return v
	case <-deadline.C:
		t.Fatalf("not within %v: %s", Limit(), what)
		panic("not reached")
	}
}

// Holds fails the test when ok returns false within the given time. It proves little: use it only
// beside a proof by order, count or signal.
func Holds(t testing.TB, during time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !ok() {
			t.Fatalf("no longer: %s", what)
		}
	}
}
