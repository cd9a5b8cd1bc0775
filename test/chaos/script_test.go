package chaos

import (
	"fmt"
	"strings"
	"time"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// script is the planned life of one packet.
type script struct {
	number      int
	request     wire.CreatePacket
	key         client.Key
	createAgain []time.Duration // further creates with the same key; 0: at the same moment
	grabbers    []grabber
	recallAfter time.Duration // 0: never
	payAfter    time.Duration // when the sender pays in an app, since the create; 0: never, or the charge needs nobody
}

// grabber is one user of one packet.
type grabber struct {
	user      string
	recipient string          // the account to pay; "": the user id
	at        []time.Duration // times of the grabs after the create; equal ones are concurrent
}

// account returns the account that the provider pays.
func (g grabber) account() string {
	if g.recipient != "" {
		return g.recipient
	}
	return g.user
}

// Suffixes of accounts that make the provider misbehave. Most accounts have none. Only recipients
// get ~returned: a returned charge is a chargeback, which needs staff.
var (
	recipientSuffixes = []string{"~declined", "~frozen", "~flaky", "~lost_reply", "~lost_request", "~pending", "~confirm", "~returned",
		"~broke"}
	senderSuffixes = []string{"~declined", "~frozen", "~flaky", "~lost_reply", "~lost_request", "~pending", "~confirm", "~broke"}
)

// notifiedLate is the prefix of accounts whose notification may be lost. Accounts with a return are
// excluded: of the return of a paid payout only a notification or the day's statement informs.
const notifiedLate = "u"

func named(account string) string {
	if suffix(account) == "~returned" {
		return "back-" + account
	}
	return account
}

// Packets expire after 10 s at the earliest, the least that the API allows.
const (
	shortestLife = 10 * time.Second
	longestLife  = 40 * time.Second
)

// newScript derives packet number n of a run from its seed. No packet of the run expires later than
// life, except those whose senders pay in an app.
func newScript(seed uint64, n int, life time.Duration) script {
	d := throw(seed, 1000+uint64(n))
	shares := 1 + d.IntN(16)
	s := script{number: n, key: client.Key(fmt.Sprintf("chaos-%d-%d", seed, n)), request: wire.CreatePacket{
		GroupID:  groupOf(n),
		SenderID: fmt.Sprintf("sender-%d", d.IntN(40)), ShareCount: shares,
		TotalAmount:      money.Fen(shares * (1 + d.IntN(2000))),
		Split:            pick(d, []wire.Split{wire.SplitRandom, wire.SplitEqual, wire.SplitEven, wire.SplitNormal}),
		ExpiresInSeconds: int((shortestLife + time.Duration(d.Int64N(int64(life-shortestLife)+1))) / time.Second),
	}}
	r := &s.request
	if r.Split == wire.SplitEqual {
		r.TotalAmount -= r.TotalAmount % money.Fen(shares)
	}
	if d.chance(25) {
		r.SenderID += pick(d, senderSuffixes)
	}
	for d.chance(20) && len(s.createAgain) < 3 {
		s.createAgain = append(s.createAgain, pick(d, []time.Duration{0, time.Second, life / 4, life / 2}))
	}
	if d.chance(15) {
		s.recallAfter = d.between(time.Second, 12*time.Second)
	}
	users := max(1, shares*(70+d.IntN(80))/100)
	for i := range users {
		g := grabber{user: fmt.Sprintf("u%d-%d", n, i)}
		if d.chance(30) {
			g.user = named(g.user + pick(d, recipientSuffixes))
		} else if d.chance(15) {
			g.recipient = named(fmt.Sprintf("u-acct-%d-%d%s", n, i, pick(d, append([]string{"", ""}, recipientSuffixes...))))
		}
		first := d.between(0, 8*time.Second)
		g.at = append(g.at, first)
		if d.chance(20) { // two concurrent grabs
			g.at = append(g.at, first)
		}
		for d.chance(25) && len(g.at) < 4 {
			g.at = append(g.at, first+d.between(0, life/2))
		}
		s.grabbers = append(s.grabbers, g)
	}
	if d.chance(10) {
		for _, g := range s.grabbers[:1+d.IntN(len(s.grabbers))] {
			r.EligibleUserIDs = append(r.EligibleUserIDs, g.user)
		}
	}
	s.paidInApp(d)
	return s
}

// groupOf marks the packets of one script, so that a packet without an acknowledged create is found
// too.
func groupOf(n int) string { return fmt.Sprintf("chaos-%d", n) }

// suffix returns the suffix of an account; "" for most.
func suffix(account string) string {
	if i := strings.LastIndexByte(account, '~'); i >= 0 {
		return account[i:]
	}
	return ""
}

// String formats a whole script.
func (s script) String() string {
	type plain script // without this method
	funding := s.request.Funding
	s.request.Funding = nil // a pointer
	return fmt.Sprintf("%+v funding: %+v", plain(s), funding)
}
