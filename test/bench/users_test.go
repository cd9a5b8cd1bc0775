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
	// sharesPerSecond is more than a small machine hands out; on a larger one the
	// last share ends the run.
	sharesPerSecond = 120_000
	share           = money.Fen(100)
	// patience is for calls on a busy machine; it does not slow down any.
	patience = 10 * time.Second
)

// sharesFor is the number of shares of each of n packets for a run of that length.
func sharesFor(length time.Duration, callers, n int) int {
	return sharesAt(sharesPerSecond, length, callers, n)
}

// sharesAt is sharesFor for what hands out so many a second at most.
func sharesAt(perSecond int, length time.Duration, callers, n int) int {
	return min(packet.MaxShares, (int(length.Seconds()*float64(perSecond))+callers)/n+callers+1)
}

// user makes new users, with names that are unique in a run.
type user struct {
	caller string
	serial int
}

func newUser(caller int) *user { return &user{caller: "u" + strconv.Itoa(caller) + "-"} }

func (u *user) next() string {
	u.serial++
	return u.caller + strconv.Itoa(u.serial)
}

// books holds the answers of callers: the shares by user, by packet.
type books []map[string]int

// receipt is one answer.
type receipt struct {
	packet int
	user   string
	share  int
}

func newBooks(packets int, receipts [][]receipt) books {
	b := make(books, packets)
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

// agree fails unless the claims of packet i in Redis are those that were
// answered, and no share was given twice.
func (b books) agree(tb testing.TB, i int, stored map[string]int) {
	tb.Helper()
	if err := sameClaims(b[i], stored); err != nil {
		tb.Fatalf("packet %d: %v", i, err)
	}
}

func sameClaims(answered, stored map[string]int) error {
	if len(answered) != len(stored) {
		return fmt.Errorf("%d claims were answered, %d are stored", len(answered), len(stored))
	}
	holders := make(map[int]string, len(stored))
	for user, share := range stored {
		if got, ok := answered[user]; !ok || got != share {
			return fmt.Errorf("%s has share %d and was answered %d (%t)", user, share, got, ok)
		}
		if other, ok := holders[share]; ok {
			return fmt.Errorf("share %d is %s's and %s's", share, other, user)
		}
		holders[share] = user
	}
	return nil
}

// total fails unless the books hold as many claims as asks that went well.
func (b books) total(tb testing.TB, done int) {
	tb.Helper()
	n := 0
	for _, claims := range b {
		n += len(claims)
	}
	if n != done {
		tb.Fatalf("%d grabs went well, %d users have a claim", done, n)
	}
}

var packetSerial atomic.Int64

// openPackets makes packets of the app that are open, without a workflow around them.
func openPackets(tb testing.TB, p *pool.Pool, app string, packets, shares int) []string {
	tb.Helper()
	ids := make([]string, packets)
	for i := range ids {
		ids[i] = newPacketID(tb)
		openPacket(tb, p, ids[i], app, shares)
	}
	return ids
}

// newPacketID returns an id that no other packet has.
func newPacketID(tb testing.TB) string {
	return packet.NewID([]byte(tb.Name()), strconv.FormatInt(packetSerial.Add(1), 10))
}

// openPacket makes one packet that is open, without a workflow around it.
func openPacket(tb testing.TB, p *pool.Pool, id, app string, shares int) {
	tb.Helper()
	pk := packet.Packet{
		ID: id, App: app, SenderID: "sender", Currency: packet.CurrencyCNY, TotalAmount: share * money.Fen(shares), ShareCount: shares,
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

// settle compares the claims in the pool with what was answered.
func settle(tb testing.TB, p *pool.Pool, ids []string, answered books) {
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
