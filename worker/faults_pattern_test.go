package worker_test

import "testing"

// TestCallPattern: the table's comparison can fail.
func TestCallPattern(t *testing.T) {
	for _, tc := range []struct {
		calls, seen string
		want        bool
	}{
		{"", "", true},
		{"", "send succeeded; ", false},
		{"send internal; ask succeeded", "send internal; ask succeeded; ", true},
		{"send internal; ask succeeded", "send internal; ask succeeded; ask succeeded; ", false},
		{"send internal; ask succeeded", "send internal; send internal; ask succeeded; ", false},
		{"send internal; ask succeeded+", "send internal; ask succeeded; ask succeeded; ", true},
		{"send internal; ask succeeded+", "send internal; ", false},
		{"send processing; ask processing*; ask succeeded", "send processing; ask succeeded; ", true},
		{"send internal; send succeeded", "send internal; ask order_not_found; send succeeded; ", true},
		{"send declined; #2 send succeeded", "send declined; #2 ask order_not_found; #2 send succeeded; ", true},
		{"send declined; #2 send succeeded", "send declined; send succeeded; ", false},
		{"send internal; ...; ask order_not_found", "send internal; send internal; ask internal; ask order_not_found; ", true},
		{"send succeeded", "send succeeded of another amount; ", false},
	} {
		if got := callPattern(tc.calls).MatchString(tc.seen); got != tc.want {
			t.Errorf("%q matches %q: %t", tc.calls, tc.seen, got)
		}
	}
}
