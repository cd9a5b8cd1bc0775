package access

import (
	"testing"
	"time"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"0": {}, "1/1s": {N: 1, Span: time.Second}, "20/1m": {N: 20, Span: time.Minute}, "1000000/24h": {N: 1_000_000, Span: 24 * time.Hour},
		"5/1m30s": {N: 5, Span: 90 * time.Second},
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "/1s", "5/", "0/1s", "-1/1s", "+1/1s", "05/1s", "5/1", "5/s", "5/0s", "5/999ms", "5/25h", "5/-1s",
		"1000001/1s", "5 / 1s", "5/1s/1s", "1.5/1s", "none", "off"} {
		if got, err := ParseLimit(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
