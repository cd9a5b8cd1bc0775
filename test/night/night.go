// Package night marks the tests that `make night` runs and `make test` skips: long tests that
// repeat in greater number what shorter tests prove.
package night

import (
	"os"
	"testing"
)

// Variable names the environment variable that `make night` sets to 1. Its name does not begin
// with HONGBAO_: the product's processes inherit it and refuse unknown settings.
const Variable = "TEST_NIGHT"

// Only skips the test unless TEST_NIGHT is 1. why names the test that `make test` has instead.
func Only(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(Variable) != "1" {
		t.Skipf("runs in `make night` (%s=1): %s", Variable, why)
	}
}
