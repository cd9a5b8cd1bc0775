package pool

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
)

// TestPasswordRedacted: a server in place of Redis, or of its sentinels, may repeat what it
// was sent. No error or log then contains a password.
func TestPasswordRedacted(t *testing.T) {
	const sentinels = "only-for-tests-sentinel"
	for mode, access := range map[Mode]Access{ModeSingle: ours(stacktest.Lock{}), ModeCluster: ours(stacktest.Lock{}),
		ModeSentinel: {SentinelPassword: sentinels}} {
		t.Run(string(mode), func(t *testing.T) {
			var log capturedLog
			cfg := Config{Mode: mode, Addr: repeatingServer(t), Access: access, Timeout: patience,
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			if mode == ModeSentinel {
				cfg.Master = masterName
			}
			_, err := Open(t.Context(), cfg)
			if all := log.String() + fmt.Sprint(err); err == nil || strings.Contains(all, "only-for-tests") ||
				!strings.Contains(all, "unknown command") {
				t.Errorf("opened: %s", all)
			}
			seen, err := Examine(t.Context(), cfg)
			if all := fmt.Sprintf("%+v %v", seen, err); strings.Contains(all, "only-for-tests") {
				t.Errorf("examined: %s", all)
			}
		})
	}
}

// repeatingServer answers every command as Redis answers an unknown one.
func repeatingServer(t *testing.T) (addr string) {
	t.Helper()
	return serving(t, repeat)
}

func repeat(cn net.Conn) {
	in := bufio.NewReader(cn)
	for {
		var n, size int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
			return
		}
		var words []string
		for range n {
			if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
				return
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(in, word); err != nil {
				return
			}
			words = append(words, "'"+string(word[:size])+"'")
		}
		_, _ = fmt.Fprintf(cn, "-ERR unknown command %s, with args beginning with: %s\r\n", words[0], strings.Join(words[1:], " "))
	}
}
