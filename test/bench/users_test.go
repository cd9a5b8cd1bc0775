package bench

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

const (
	// sharesPerSecond exceeds the grabs a second of a small machine. On a larger one the run ends with the last share.
	sharesPerSecond = 120_000
	share           = money.Fen(100)
	// patience is the timeout of calls, long enough for a busy machine.
	patience = 10 * time.Second
)

// sharesFor is the number of shares of each of n packets for a run of that length.
func sharesFor(length time.Duration, callers, n int) int {
	return sharesAt(sharesPerSecond, length, callers, n)
}

// sharesAt is sharesFor with another maximum of grabs a second.
func sharesAt(perSecond int, length time.Duration, callers, n int) int {
	return min(packet.MaxShares, (int(length.Seconds()*float64(perSecond))+callers)/n+callers+1)
}

// user generates names of users that are unique in a run.
type user struct {
	caller string
	serial int
}

func newUser(caller int) *user { return &user{caller: "u" + strconv.Itoa(caller) + "-"} }

func (u *user) next() string {
	u.serial++
	return u.caller + strconv.Itoa(u.serial)
}

// answeredClaims holds the claims in the answers to all callers: for each packet, the shares by user.
type answeredClaims []map[string]int

// receipt is one answer.
type receipt struct {
	packet int
	user   string
	share  int
}

func collectClaims(packets int, receipts [][]receipt) answeredClaims {
	b := make(answeredClaims, packets)
	for i := range b {
		b[i] = map[string]int{}
	}
	for _, of := range receipts {
		for _, r := range of {
			b[r.packet][r.user] = r.share
		}
	}
	return b
}

// agree fails the test unless the claims of packet i in Redis are those in the answers, and no share is claimed twice.
func (b answeredClaims) agree(tb testing.TB, i int, stored map[string]int) {
	tb.Helper()
	if err := sameClaims(b[i], stored); err != nil {
		tb.Fatalf("packet %d: %v", i, err)
	}
}

func sameClaims(answered, stored map[string]int) error {
	if len(answered) != len(stored) {
		return fmt.Errorf("%d claims in answers, %d in the store", len(answered), len(stored))
	}
	holders := make(map[int]string, len(stored))
	for user, share := range stored {
		if got, ok := answered[user]; !ok || got != share {
			return fmt.Errorf("%s has share %d in the store and %d in the answer (%t)", user, share, got, ok)
		}
		if other, ok := holders[share]; ok {
			return fmt.Errorf("share %d is %s's and %s's", share, other, user)
		}
		holders[share] = user
	}
	return nil
}

// total fails the test unless there are as many claims as successful operations.
func (b answeredClaims) total(tb testing.TB, done int) {
	tb.Helper()
	n := 0
	for _, claims := range b {
		n += len(claims)
	}
	if n != done {
		tb.Fatalf("%d successful grabs, %d users with a claim", done, n)
	}
}

var packetSerial atomic.Int64

// openPackets creates open packets of the app in the pool, without workflows.
func openPackets(tb testing.TB, p *pool.Pool, app string, packets, shares int) []string {
	tb.Helper()
	ids := make([]string, packets)
	for i := range ids {
		ids[i] = newPacketID(tb)
		openPacket(tb, p, ids[i], app, shares)
	}
	return ids
}

// newPacketID returns a new unique id.
func newPacketID(tb testing.TB) string {
	return packet.NewID([]byte(tb.Name()), strconv.FormatInt(packetSerial.Add(1), 10))
}

// openPacket creates an open packet in the pool, without a workflow.
func openPacket(tb testing.TB, p *pool.Pool, id, app string, shares int) {
	tb.Helper()
	pk := packet.Packet{
		ID: id, App: app, SenderID: "sender", Currency: packet.CurrencyCNY, ChargeProvider: "sandbox", PayoutProvider: "sandbox",
		TotalAmount: share * money.Fen(shares), ShareCount: shares,
		Split: packet.SplitEqual, MinShare: 1, BodyHash: "body",
	}
	amounts := make([]money.Fen, shares)
	for i := range amounts {
		amounts[i] = share
	}
	if _, err := p.Create(tb.Context(), pk, nil, nil, time.Hour, time.Second); err != nil {
		tb.Fatal(err)
	}
	if err := p.OpenPool(tb.Context(), pk.ID, amounts, nil); err != nil {
		tb.Fatal(err)
	}
}

// settle compares the claims in the pool with those in the answers.
func settle(tb testing.TB, p *pool.Pool, ids []string, answered answeredClaims) {
	tb.Helper()
	for i, id := range ids {
		claims, err := p.Claims(tb.Context(), id)
		if err != nil {
			tb.Fatal(err)
		}
		stored := make(map[string]int, len(claims))
		for _, c := range claims {
			stored[c.UserID] = c.ShareIndex
		}
		answered.agree(tb, i, stored)
	}
}
