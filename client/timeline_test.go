package client_test

import (
	"testing"
	"time"

	"hongbao/client"
)

// TestSpans: equal lines that follow each other are one, others stay apart.
func TestSpans(t *testing.T) {
	at := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	line := func(minute int, source, what string) client.TimelineEntry {
		return client.TimelineEntry{At: at.Add(time.Duration(minute) * time.Minute), Source: source, What: what}
	}
	got := client.Spans([]client.TimelineEntry{line(0, "provider", "asked"), line(1, "provider", "asked"), line(2, "provider", "asked"),
		line(3, "finance", "asked"), line(4, "provider", "asked")})
	if len(got) != 3 || got[0].Count != 3 || !got[0].At.Equal(at) || !got[0].LastAt.Equal(at.Add(2*time.Minute)) || got[1].Count != 1 ||
		!got[2].LastAt.Equal(got[2].At) {
		t.Errorf("%+v", got)
	}
	if got := client.Spans(nil); got != nil {
		t.Errorf("%+v", got)
	}
}
