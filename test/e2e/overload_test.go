package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/wire"
)

const (
	keptOpen       = 5_000
	crowdSize      = 10_000
	memoryPerConn  = 64 << 10 // bytes; measured: 22 to 30 KiB, with what the collector has not collected yet
	dialsAtOnce    = 256
	answerPatience = 60 * time.Second
)

// line is the connection of one client.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialMany opens n connections, some at a time.
func (s *stack) dialMany(t *testing.T, n int) []*line {
	t.Helper()
	addr := strings.TrimPrefix(s.env("HONGBAO_URL"), "http://")
	out := make([]*line, n)
	places := make(chan struct{}, dialsAtOnce)
	var wg sync.WaitGroup
	for i := range out {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			c, err := net.DialTimeout("tcp", addr, answerPatience)
			if err != nil {
				t.Error(err)
				return
			}
			_ = c.(*net.TCPConn).SetLinger(0) // does not block a port for a minute
			_ = c.SetDeadline(time.Now().Add(answerPatience))
			out[i] = &line{c, bufio.NewReaderSize(c, 1<<10)}
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, w := range out {
			if w != nil {
				_ = w.conn.Close()
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// ask sends one raw request and reads its answer.
func (w *line) ask(request string) (status int, header http.Header, body []byte, err error) {
	if _, err = io.WriteString(w.conn, request); err != nil {
		return 0, nil, nil, err
	}
	res, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, res.Header, body, err
}

// each does the same on every connection at the same time.
func each(conns []*line, do func(n int, w *line)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for n, w := range conns {
		wg.Go(func() {
			<-start
			do(n, w)
		})
	}
	close(start)
	wg.Wait()
}

// resident returns the memory of the API in bytes.
func (s *stack) resident(t *testing.T) int64 {
	t.Helper()
	a := s.do(t, "GET", s.env("HONGBAO_STAFF_URL")+"/metrics", "", nil)
	for line := range strings.SplitSeq(string(a.raw), "\n") {
		if value, ok := strings.CutPrefix(line, "process_resident_memory_bytes "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(n)
		}
	}
	t.Fatal("the API's memory is not readable")
	return 0
}

// TestOverloadCrowd makes ten thousand users grab from one packet at the same instant, each on a
// connection of its own, while five thousand other connections stay open and Redis stands still
// until the first users are refused. Exactly the shares are claimed, refused users succeed later,
// repeated grabs return the same claim, and the API's memory is bounded by the number of connections.
func TestOverloadCrowd(t *testing.T) {
	const shares, total = 80, 1_000_000
	s := running
	id := s.create(t, wire.CreatePacket{SenderID: "boss", TotalAmount: total, ShareCount: shares}).ID
	before := s.resident(t)
	kept := s.dialMany(t, keptOpen)
	alive := func(when string) {
		t.Helper()
		each(kept, func(n int, w *line) {
			if status, _, body, err := w.ask("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil || status != http.StatusOK {
				t.Errorf("%s: kept connection %d: %d %s %v", when, n, status, body, err)
			}
		})
	}
	alive("before")
	won := s.rush(t, id)
	if len(won) != shares {
		t.Errorf("%d winners of %d shares", len(won), shares)
	}
	alive("afterwards")
	if grown := s.resident(t) - before; grown > (keptOpen+crowdSize)*memoryPerConn {
		t.Errorf("the API has grown by %d MiB: %d KiB a connection", grown>>20, grown/(keptOpen+crowdSize)>>10)
	} else {
		t.Logf("the API has grown by %d MiB: %d KiB a connection", grown>>20, grown/(keptOpen+crowdSize)>>10)
	}
	s.settled(t, id, total, won)
}

// rush makes the crowd grab at the same instant, twice. The first grabs reach a Redis that stands
// still: their answer is 503, and Redis takes their shares when it goes on.
func (s *stack) rush(t *testing.T, id string) map[string]claim {
	t.Helper()
	var mu sync.Mutex
	won := map[string]claim{}
	shed := 0
	crowd := s.dialMany(t, crowdSize)
	head := "POST /v1/packets/" + id + "/grabs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + s.env("HONGBAO_APP_KEY") +
		"\r\nContent-Type: application/json\r\n"
	redis := s.pid(t, "REDIS")
	goOn := sync.OnceFunc(func() { _ = syscall.Kill(redis, syscall.SIGCONT) })
	defer goOn()
	if err := syscall.Kill(redis, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		began := time.Now()
		each(crowd, func(n int, w *line) {
			user := fmt.Sprintf("rush%d", n)
			body := fmt.Sprintf(`{"user_id":%q}`, user)
			status, unavailable, c := s.insist(t, w, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body), goOn)
			mu.Lock()
			defer mu.Unlock()
			shed += unavailable
			old, had := won[user]
			claimed := had || round == 0 && unavailable > 0 // a 503 does not say whether there is a claim
			switch {
			case status == http.StatusConflict && !had:
			case status == http.StatusCreated && round == 0, status == http.StatusOK && claimed:
				c.user = user
				if had && old != c {
					t.Errorf("%s got %+v, then %+v", user, old, c)
				}
				won[user] = c
			default:
				t.Errorf("round %d: %s has %+v and got %d", round, user, old, status)
			}
		})
		t.Logf("round %d: %d answers after %v, %d with 503", round, len(crowd), time.Since(began), shed)
	}
	if shed == 0 {
		t.Error("no 503 while Redis stood still")
	}
	return won
}

// insist repeats a request until there is a final answer, and returns how many 503 came before
// it; a 503 has to name when to repeat it, and calls refused.
func (s *stack) insist(t *testing.T, w *line, request string, refused func()) (status, unavailable int, c claim) {
	for deadline := time.Now().Add(answerPatience); ; {
		status, header, body, err := w.ask(request)
		if err != nil {
			t.Errorf("no answer: %v", err)
			return 0, unavailable, c
		}
		var got struct {
			ShareIndex int       `json:"share_index"`
			Amount     money.Fen `json:"amount"`
			Code       string
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("%d %s: %v", status, body, err)
		}
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return status, unavailable, claim{index: got.ShareIndex, amount: got.Amount}
		}
		if got.Code != "unavailable" || header.Get("Retry-After") == "" {
			t.Errorf("%d %s %v", status, body, header)
		}
		unavailable++
		refused()
	}
}
