package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"hongbao/test/wait"
	"hongbao/wire"
)

// TestGrabStormAfterRestart: while many payouts are returned at once, which takes the
// notifications and the questions about them some seconds, the packet's proof is balanced at
// every look, and ends with all of it owed.
func TestGrabStormAfterRestart(t *testing.T) {
	const crowd = 120
	p := newPlatform(t)
	packet := p.packet(t, "crowd", crowd)
	var all sync.WaitGroup
	for worker := range 12 {
		all.Go(func() {
			for n := worker; n < crowd; n += 12 {
				if status, text := p.grab(t, packet, fmt.Sprintf("u%d~returned", n), nil); status != http.StatusCreated {
					t.Errorf("%d %s", status, text)
				}
			}
		})
	}
	looks, back := 0, 0
	wait.Until(t, "all payouts are returned and booked", func() bool {
		status, text := p.call(t, http.MethodGet, "http://"+p.public+"/v1/packets/"+packet+"/proof", p.keys.App, nil, nil)
		var proof wire.Proof
		if err := json.Unmarshal([]byte(text), &proof); status != http.StatusOK || err != nil || !proof.Balanced {
			t.Errorf("look %d: %d %s", looks, status, text)
		}
		looks++
		if ahead := proof.Sources.Provider.Returned - proof.Sources.Ledger.Returned; ahead > 0 {
			back++
		}
		return proof.Sources.Ledger.Returned == crowd*100 && proof.Owed == crowd*100
	})
	all.Wait()
	t.Logf("%d looks, %d of them while a return was not booked yet", looks, back)
	if back == 0 {
		t.Error("nothing was seen on its way back")
	}
}
