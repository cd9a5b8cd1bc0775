package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// measureHTTP compares the API with a handler that does nothing: while shares are left, while pages are read, and when the
// packet is sold out.
func measureHTTP(t *testing.T, p plan, say func(string, ...any)) []result {
	h := newInstallation(t, stacktest.FreshRedis(t, noRewrite...).Addr)
	nothing := idle(t, h.token)
	all := []*comparison{
		{title: "everybody wins", callers: p.conns, baseline: nothing, ours: h.httpGrabs()},
		{title: "while pages are read", callers: p.conns, baseline: h.httpGrabs(), ours: h.grabsBesidePages()},
		{title: fmt.Sprintf("sold out, %d%% are winners", 100/winnerEvery), callers: p.conns, baseline: nothing, ours: h.soldOutGrabs()},
	}
	for round := range p.rounds {
		for _, c := range all {
			say("%s, %d connections, round %d of %d", c.title, p.conns, round+1, p.rounds)
			c.compare(t, p.length, 1)
		}
	}
	out := compared("grabs a second over HTTP beside a handler that does nothing", all, p)
	out[0].notes = append(out[0].notes,
		"The handler that does nothing returns 201 without a body, on a web server with the settings of the API, and gets the same "+
			"requests, including the key.",
		fmt.Sprintf("While pages are read: %d a second, in turn a user's claims, an unknown user's claims, a user's packets and the app's "+
			"open packets; the baseline is the same grabs without them.", pagesPerSecond),
		"Sold out: a repeated grab of a winner must return the share, every other grab 409. Afterwards Redis must hold exactly the "+
			"acknowledged claims.")
	return out
}

// winnerEvery: one of this number of grabs of a sold-out packet is by a winner.
const winnerEvery = 20

// soldOutGrabs is the API with a sold-out packet: grabs of late users, and repeated grabs of winners.
func (h *installation) soldOutGrabs() subject {
	return subject{"POST grabs, sold out", func(tb testing.TB, callers int, _ time.Duration) attempt {
		const shares = 200
		id := openPackets(tb, h.pool, h.app, 1, shares)[0]
		url := "http://" + h.addr + "/v1/packets/" + id + "/grabs"
		won := make(map[string]int, shares)
		names := make([]string, shares)
		for i := range names {
			names[i] = "winner-" + strconv.Itoa(i)
			got, err := h.pool.Grab(tb.Context(), id, names[i], packet.Profile{})
			if err != nil || got.Result != packet.GrabWon {
				tb.Fatalf("%s: %v, %v", names[i], got.Result, err)
			}
			won[names[i]] = got.Claim.ShareIndex
		}
		a := attempt{finish: func(tb testing.TB, _ int) {
			settle(tb, h.pool, []string{id}, answeredClaims{won})
		}}
		for i := range callers {
			users, from, turn := newUser(i), newCaller(h.addr, h.token), i
			a.callers = append(a.callers, func() error {
				if turn++; turn%winnerEvery != 0 {
					return from.postLate(url, users.next())
				}
				name := names[turn/winnerEvery%shares]
				return from.postAgain(url, name, won[name])
			})
			tb.Cleanup(from.close)
		}
		return a
	}}
}

// postLate grabs for a user who must be refused as sold out.
func (a *caller) postLate(url, user string) error {
	if err := a.send(url, user); err != nil {
		return err
	}
	if a.status != http.StatusConflict || !bytes.Contains(a.body, []byte(`"code":"sold_out"`)) {
		return fmt.Errorf("%s is too late: %d %s", user, a.status, a.body)
	}
	return nil
}

// postAgain grabs for a winner, who must get the same share.
func (a *caller) postAgain(url, user string, share int) error {
	if err := a.send(url, user); err != nil {
		return err
	}
	if index, err := shareIndex(a.body); a.status != http.StatusOK || err != nil || index != share {
		return fmt.Errorf("%s won share %d: %d %s", user, share, a.status, a.body)
	}
	return nil
}
