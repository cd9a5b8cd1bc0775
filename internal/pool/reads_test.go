package pool

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// monitored returns the commands of scripts on a server while do ran, from MONITOR.
func monitored(t *testing.T, p *Pool, addr string, do func()) (lines []string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprint(c, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	monitor := bufio.NewScanner(c)
	monitor.Buffer(nil, 1<<20)
	if !monitor.Scan() || monitor.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", monitor.Text(), monitor.Err())
	}
	do()
	end := rand.Text()
	if err := p.rdb.Echo(t.Context(), end).Err(); err != nil {
		t.Fatal(err)
	}
	for monitor.Scan() {
		if strings.Contains(monitor.Text(), end) {
			return lines
		}
		if strings.Contains(monitor.Text(), " lua] ") {
			lines = append(lines, monitor.Text())
		}
	}
	t.Fatalf("MONITOR ended: %v", monitor.Err())
	return nil
}

var (
	lrangeOf = regexp.MustCompile(`(?i)"LRANGE" "[^"]*" "(\d+)" "(\d+)"`)
	xrangeOf = regexp.MustCompile(`(?i)"XRANGE" .*"COUNT" "(\d+)"`)
)

// TestLargePartsAreReadOnce: with hundreds of wins a call, a page reads only its claims, and
// the index and the search for orphans read each hand-off about once: they block Redis.
func TestLargePartsAreReadOnce(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	const calls, each = 60, 50
	pk := newPacket(t, calls*each)
	openPacket(t, p, pk)
	lane := packet.Lane(pk.ID, p.Lanes())
	for n := range calls {
		asks := make([][2]string, each)
		for i := range asks {
			asks[i] = [2]string{pk.ID, fmt.Sprintf("u%d-%d", n, i)}
		}
		flush(p, lane, batchOf(t.Context(), asks...))
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	read := 0
	for _, line := range monitored(t, p, server.Addr, func() {
		if claims, made, err := p.ClaimsPage(t.Context(), pk.ID, 1234, 3*each); err != nil || made != 1234 || len(claims) != 3*each {
			t.Errorf("%d claims of %d: %v", len(claims), made, err)
		}
	}) {
		if found := lrangeOf.FindStringSubmatch(line); found != nil {
			read += number(found[2]) - number(found[1]) + 1
		}
	}
	if read != 3*each {
		t.Errorf("%d claims were read for %d", read, 3*each)
	}

	entries := func(do func()) (n int) {
		for _, line := range monitored(t, p, server.Addr, do) {
			if found := xrangeOf.FindStringSubmatch(line); found != nil {
				n += number(found[1])
			}
		}
		return n
	}
	if n := entries(func() {
		if err := p.indexClaims(t.Context(), lane, ""); err != nil {
			t.Error(err)
		}
	}); n > 3*calls {
		t.Errorf("up to %d hand-offs were read to list %d", n, calls)
	}
	if got := len(dump(t, p, pk.ID).Claimed); got != calls*each {
		t.Errorf("%d claims listed of %d", got, calls*each)
	}

	h := handoffs(t, p)
	readAll(t, h, lane)
	if n := entries(func() {
		if b, err := h.TakeOrphans(t.Context(), lane, "w1", maxTakeOver); err != nil || !b.Empty() {
			t.Errorf("orphans: %+v, %v", b, err)
		}
	}); n > 1 {
		t.Errorf("up to %d hand-offs were read to see that a reader has the first", n)
	}
}
