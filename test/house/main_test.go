package house

import (
	"os"
	"testing"
)

// TestMain runs the tests in the repository's root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
