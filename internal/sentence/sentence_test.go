package sentence_test

import (
	"slices"
	"testing"

	"hongbao/internal/sentence"
)

// TestFill: arguments are taken as they are, and a part in brackets needs all of its arguments.
func TestFill(t *testing.T) {
	const text = "sent {order_no}: {outcome}[ ({code})][, {a} of {b}]"
	for want, args := range map[string]map[string]string{
		"sent t1: declined":              {"order_no": "t1", "outcome": "declined"},
		"sent t1: declined (x)":          {"order_no": "t1", "outcome": "declined", "code": "x", "a": "1"},
		"sent {code}: [b] (]), 1 of {a}": {"order_no": "{code}", "outcome": "[b]", "code": "]", "a": "1", "b": "{a}"},
		"sent {order_no}: {outcome}":     nil,
	} {
		if got := sentence.Fill(text, args); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := sentence.Names(text); !slices.Equal(got, []string{"order_no", "outcome", "code", "a", "b"}) {
		t.Errorf("%q", got)
	}
}
