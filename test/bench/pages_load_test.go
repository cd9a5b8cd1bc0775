package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// pagesPerSecond is how many pages are read beside grabs, and pageReaders by how many readers.
const (
	pagesPerSecond = 500
	pageReaders    = 20
)

// grabsBesidePages is httpGrabs during reads of the pages that users open after many packets. A
// page that is not answered with 200 fails the run.
func (h *installation) grabsBesidePages() subject {
	name := fmt.Sprintf("POST grabs beside %d pages/s", pagesPerSecond)
	return subject{name, func(tb testing.TB, callers int, length time.Duration) attempt {
		a := h.httpGrabs().begin(tb, callers, length)
		ctx, stop := context.WithCancel(tb.Context())
		tb.Cleanup(stop) // of a run that fails
		var group sync.WaitGroup
		failed := make(chan error, pageReaders)
		for i := range pageReaders {
			group.Go(func() {
				if err := h.readPages(ctx, i); err != nil {
					failed <- err
				}
			})
		}
		settled := a.finish
		a.finish = func(tb testing.TB, done int) {
			stop()
			group.Wait()
			close(failed)
			for err := range failed {
				tb.Error(err)
			}
			settled(tb, done)
		}
		return a
	}}
}

// readPages reads the pages of one reader until ctx ends. It skips the turns that pass during a slow page.
func (h *installation) readPages(ctx context.Context, reader int) error {
	from, base := newCaller(h.addr, h.token), "http://"+h.addr
	defer from.close()
	pages := []string{"/v1/users/u0-1/claims", "/v1/users/unknown/claims", "/v1/users/sender/packets", "/v1/packets?status=open"}
	turn := time.NewTicker(time.Second * pageReaders / pagesPerSecond)
	defer turn.Stop()
	for n := reader; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
		if err := from.get(base + pages[n%len(pages)]); err != nil {
			return err
		}
	}
}
