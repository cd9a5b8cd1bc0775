package client_test

import (
	"testing"
	"time"

	"hongbao/wire"
)

// TestSpans: equal lines that follow each other are one, others stay apart.
func TestSpans(t *testing.T) {
	at := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	line := func(minute int, source, what string) wire.TimelineEntry {
		return wire.TimelineEntry{At: wire.At(at.Add(time.Duration(minute) * time.Minute)), Source: source, What: what}
	}
	got := wire.Spans([]wire.TimelineEntry{line(0, "provider", "asked"), line(1, "provider", "asked"), line(2, "provider", "asked"),
		line(3, "finance", "asked"), line(4, "provider", "asked")})
	if len(got) != 3 || got[0].Count != 3 || !got[0].At.Equal(at) || !got[0].LastAt.Equal(at.Add(2*time.Minute)) || got[1].Count != 1 ||
		!got[2].LastAt.Equal(got[2].At.Time) {
		t.Errorf("%+v", got)
	}
	if got := wire.Spans(nil); got != nil {
		t.Errorf("%+v", got)
	}
}
