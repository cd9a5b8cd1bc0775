package observe

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"testing"
)

// TestLogHandler: a line has the ids of its context, each once, and its own attributes win.
func TestLogHandler(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(NewLogHandler(slog.NewJSONHandler(&out, nil))).With(slog.String("program", "api"))
	ctx := WithLogAttrs(WithLogAttrs(t.Context(), slog.String(LogRequest, "r1"), slog.String(LogPacket, "p1")), slog.String(LogPayment, "y1"),
		slog.String(LogPacket, "above counts"))
	for _, tc := range []struct {
		log  func()
		want map[string]any
	}{
		{func() { logger.InfoContext(t.Context(), "m") }, nil},
		{func() { logger.InfoContext(ctx, "m") }, map[string]any{LogRequest: "r1", LogPacket: "p1", LogPayment: "y1"}},
		{func() { logger.InfoContext(ctx, "m", slog.String(LogPacket, "p2")) },
			map[string]any{LogRequest: "r1", LogPacket: "p2", LogPayment: "y1"}},
		{func() {
			logger.InfoContext(WithTraceparent(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), "m")
		}, map[string]any{LogTrace: "0af7651916cd43dd8448eb211c80319c"}},
		{func() {
			logger.InfoContext(WithTraceparent(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"), "m")
		}, nil},
	} {
		out.Reset()
		tc.log()
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if got["program"] != "api" {
			t.Errorf("%s", &out)
		}
		for _, name := range []string{"time", "level", "msg", "program"} {
			delete(got, name)
		}
		if !maps.Equal(got, tc.want) || bytes.Count(out.Bytes(), []byte(LogPacket)) > 1 {
			t.Errorf("%s, want %v", &out, tc.want)
		}
	}
}
