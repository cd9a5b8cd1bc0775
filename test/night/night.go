// Package night marks the tests that `make night` runs and `make test` skips: what takes
// long and shows again, in greater number, what shorter tests show.
package night

import (
	"os"
	"testing"
)

// Variable names the environment variable that `make night` sets to 1. Its name does not begin
// with HONGBAO_: the product's processes inherit it and refuse unknown settings.
const Variable = "TEST_NIGHT"

// Only skips the test unless TEST_NIGHT is 1. why says what `make test` has in its place.
func Only(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(Variable) != "1" {
		t.Skipf("runs in `make night` (%s=1): %s", Variable, why)
	}
}

// Volume skips a test under -short, as `make race` runs: it proves by many cases, which
// `make test` goes through without the race detector, and fewer show a race as well.
func Volume(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("many cases: `make test` goes through them without the race detector")
	}
}
