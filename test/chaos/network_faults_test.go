package chaos

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hongbao/internal/devstack"
)

// TestLinkFaults checks that each link fault has its effect on a caller, and that mending it
// restores the connection.
func TestLinkFaults(t *testing.T) {
	heard := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard <- struct{}{}
		_, _ = w.Write(make([]byte, 1000))
	}))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	ports, err := devstack.FreePorts(len(links) + len(wechatLinks))
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]int{}
	for _, part := range parts {
		direct[part] = port
	}
	n, err := newNetwork(direct, ports)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	const link = "worker-provider"
	ask := func(patience time.Duration) (bytes int, arrived bool, err error) {
		for len(heard) > 0 {
			<-heard
		}
		conn, err := net.Dial("tcp", n.proxies[link].listen)
		if err != nil {
			return 0, false, err
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			var body []byte
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			bytes = len(body)
		}
		select {
		case <-heard:
			arrived = true
		case <-time.After(100 * time.Millisecond):
		}
		return bytes, arrived, err
	}
	for how, wants := range map[action]struct{ answered, arrived bool }{
		latency:     {true, true},
		reset:       {false, true},
		lostReplies: {false, true},
		cutReplies:  {false, true},
		refuse:      {false, false},
		silence:     {false, false},
	} {
		mend, err := n.breaks(fault{action: how, target: link, delay: 300 * time.Millisecond, bytes: 200})
		if err != nil {
			t.Fatal(err)
		}
		patience := 20 * time.Second
		if how == silence { // only a timeout ends that
			patience = 500 * time.Millisecond
		}
		began := time.Now()
		_, arrived, err := ask(patience)
		if (err == nil) != wants.answered || arrived != wants.arrived {
			t.Errorf("%s: arrived %v, %v", how, arrived, err)
		}
		if took := time.Since(began); how == latency && took < 150*time.Millisecond {
			t.Errorf("late by 300 ms: answered after %v", took)
		}
		if err := mend(); err != nil {
			t.Fatal(err)
		}
		if bytes, _, err := ask(20 * time.Second); bytes != 1000 || err != nil {
			t.Errorf("%s, mended: %d bytes, %v", how, bytes, err)
		}
	}
}
