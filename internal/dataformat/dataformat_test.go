package dataformat

import (
	"strings"
	"testing"
)

// TestCheck: only the own number passes, and the error names the next step.
func TestCheck(t *testing.T) {
	if err := Check("MySQL", Number); err != nil {
		t.Error(err)
	}
	for found, says := range map[int]string{0: "an older build (MySQL has data format 0,", Number + 1: "a newer build (MySQL has"} {
		err := Check("MySQL", found)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "make reset") {
			t.Errorf("%d: %v", found, err)
		}
	}
}
