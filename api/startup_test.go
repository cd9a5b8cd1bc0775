package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"hongbao/api"
	"hongbao/internal/devstack"
)

// TestHandOver: who asks while the listeners are handed over to the server is answered by
// the one or the other. No connection is refused, and none is cut off.
func TestHandOver(t *testing.T) {
	t.Parallel()
	ports, err := devstack.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	public, staff := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	starting, err := api.NewStarting(t.Context(), public, staff)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(starting.Close)
	if second, err := api.NewStarting(t.Context(), public, staff); err == nil {
		second.Close()
		t.Error("a port was bound twice")
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for _, addr := range []string{public, staff, public, staff} {
		all.Go(func() {
			web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			defer web.CloseIdleConnections()
			for before := true; ; {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/livez", nil)
				res, err := web.Do(req)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("%s: %v", addr, err)
					return
				}
				_ = res.Body.Close()
				select {
				case <-done:
					if !before {
						return
					}
					before = false // once more, of the server for certain
				default:
				}
			}
		})
	}
	h := newFixture(t, parts{change: func(c *api.Config) { c.Starting = starting }})
	if h.public != "http://"+public || h.staff != "http://"+staff {
		t.Errorf("served at %s, %s", h.public, h.staff)
	}
	close(done)
	all.Wait()
}
