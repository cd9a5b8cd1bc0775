package recovery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestR13_RecoverySkipsUnanswered: a recovery goes on after an order without a usable answer, and ends
// when there are so many that the provider is away.
func TestR13_RecoverySkipsUnanswered(t *testing.T) {
	r := &Recovery{unanswered: map[string]bool{}}
	for i := range 2 * maxUnanswered { // each is queried twice
		no := fmt.Sprintf("order %d", i/2)
		if err := r.skipUnanswered(fmt.Errorf("packet: %w", unansweredOrder{no})); err != nil || !r.isUnanswered(no) {
			t.Fatalf("%s: %v", no, err)
		}
	}
	if err := r.skipUnanswered(unansweredOrder{"one more"}); !errors.Is(err, ErrProviderAway) || !strings.Contains(err.Error(), "one more") {
		t.Errorf("after %d orders: %v", maxUnanswered, err)
	}
	other := errors.New("other")
	if err := r.skipUnanswered(other); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
	if err := r.skipUnanswered(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}
