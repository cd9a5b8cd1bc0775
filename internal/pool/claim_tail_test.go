package pool

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// claimsModel is what the lists must return: the packets that each user has won, newest first.
type claimsModel struct {
	t       *testing.T
	r       *rand.Rand
	writer  *Pool
	readers []*Pool
	relay   *Handoffs
	pending map[int][]string // hand-offs read by the relay, by lane
	open    []packet.Packet
	won     map[string]map[string]packet.Cursor // by user and packet
	last    string                              // the last winner
}

// TestClaimsOfUsersAtRandom: whatever order grabs, the relay, retirement and reads of two processes
// happen in, each page is that of the model.
func TestClaimsOfUsersAtRandom(t *testing.T) { onEach(t, testClaimsOfUsersAtRandom) }

func testClaimsOfUsersAtRandom(t *testing.T, on setup) {
	p := on.openFresh(t)
	m := &claimsModel{t: t, r: rand.New(rand.NewPCG(7, 25)), writer: p, readers: []*Pool{p, on.open(t)}, relay: handoffs(t, p),
		pending: map[int][]string{}, won: map[string]map[string]packet.Cursor{}}
	for range 5 {
		m.add()
	}
	steps := []func(){m.grab, m.grab, m.grab, m.relayReads, m.relayAcks, m.relayAcks, m.retire, m.page, m.page, m.page, m.page}
	for range 700 {
		steps[m.r.IntN(len(steps))]()
		if t.Failed() {
			return
		}
	}
}

// user is one of a few users who win often, or one of many who win once.
func (m *claimsModel) user() string { return fmt.Sprint("u", m.r.IntN([]int{9, 500}[m.r.IntN(2)])) }

// add opens a packet in one of two lanes.
func (m *claimsModel) add() {
	for {
		pk := newPacket(m.t, 9)
		if packet.Lane(pk.ID, m.writer.Lanes()) < 2 {
			openPacket(m.t, m.writer, pk)
			m.open = append(m.open, pk)
			return
		}
	}
}

// grab lets some users grab a packet, in one call.
func (m *claimsModel) grab() {
	pk := m.open[m.r.IntN(len(m.open))]
	var asks [][2]string
	for range 1 + m.r.IntN(3) {
		if ask := [2]string{pk.ID, m.user()}; !slices.Contains(asks, ask) {
			asks = append(asks, ask)
		}
	}
	batch := batchOf(context.WithoutCancel(m.t.Context()), asks...)
	flush(m.writer, packet.Lane(pk.ID, m.writer.Lanes()), batch)
	for _, got := range results(m.t, batch) {
		if got.Result != packet.GrabWon && got.Result != packet.GrabReplayed {
			continue // sold out
		}
		user := got.Claim.UserID
		if m.last = user; m.won[user] == nil {
			m.won[user] = map[string]packet.Cursor{}
		}
		m.won[user][pk.ID] = packet.Cursor{At: got.Claim.ClaimedAt, ID: pk.ID}
	}
}

func (m *claimsModel) relayReads() {
	lane := m.r.IntN(2)
	m.pending[lane] = append(m.pending[lane], ids(readAll(m.t, m.relay, lane))...)
}

// relayAcks acknowledges some hand-offs, not always the oldest ones.
func (m *claimsModel) relayAcks() {
	lane := m.r.IntN(2)
	m.r.Shuffle(len(m.pending[lane])/(1+m.r.IntN(2)), func(i, j int) {
		m.pending[lane][i], m.pending[lane][j] = m.pending[lane][j], m.pending[lane][i]
	})
	n := m.r.IntN(len(m.pending[lane]) + 1)
	must(m.t, m.relay.Ack(m.t.Context(), lane, m.pending[lane][:n]...))
	m.pending[lane] = m.pending[lane][n:]
}

// retire replaces a packet by another one.
func (m *claimsModel) retire() {
	if m.r.IntN(4) > 0 {
		return
	}
	i := m.r.IntN(len(m.open))
	retireNow(m.t, m.writer, m.open[i].ID)
	for _, won := range m.won {
		delete(won, m.open[i].ID)
	}
	m.open = slices.Delete(m.open, i, i+1)
	m.add()
}

// page reads the claims of a user in pages, in one of the processes.
func (m *claimsModel) page() {
	m.t.Helper()
	user, reader, limit := m.user(), m.r.IntN(len(m.readers)), 1+m.r.IntN(4)
	if m.r.IntN(2) == 0 {
		user = m.last
	}
	var want, got []packet.Cursor
	for _, at := range m.won[user] {
		want = append(want, at)
	}
	slices.SortFunc(want, packet.Cursor.Compare)
	for after := (packet.Cursor{}); ; after = got[len(got)-1] {
		claims, err := userClaims(m.t.Context(), m.readers[reader], "shop", user, after, limit)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, c := range claims {
			got = append(got, packet.Cursor{At: c.ClaimedAt, ID: c.PacketID})
		}
		if len(claims) < limit {
			break
		}
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("claims of %s in process %d by %d:\n got %v\nwant %v", user, reader, limit, got, want)
	}
}

// TestClaimsOfANewEpoch: what a process has read of a lane ends with its epoch.
func TestClaimsOfANewEpoch(t *testing.T) { onEach(t, testClaimsOfANewEpoch) }

func testClaimsOfANewEpoch(t *testing.T, on setup) {
	p := on.openFresh(t)
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	mustGrab(t, p, pk.ID, "u")
	if claims := claimsOf(t, p, "u"); len(claims) != 1 {
		t.Fatalf("%+v", claims)
	}
	lane := packet.Lane(pk.ID, p.Lanes())
	must(t, p.CloseFence(t.Context(), lane, 2))
	must(t, p.rdb.Del(t.Context(), p.keys.handoff(lane)).Err())
	if _, err := p.ClearLane(t.Context(), lane, 2, nil, nil); err != nil {
		t.Fatal(err)
	}
	must(t, p.OpenFence(t.Context(), lane, 2, 0))
	wait.Until(t, "the fence is open", func() bool {
		claims, err := userClaims(t.Context(), p, "shop", "u", packet.Cursor{}, 10)
		if err == nil && len(claims) > 0 {
			t.Fatalf("claims of a pool that is gone: %+v", claims)
		}
		return err == nil
	})
}

// TestTailsAreBounded: when a process has read too many claims, the longest tail is indexed.
func TestTailsAreBounded(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	var all []packet.Packet
	for lane := range 3 {
		for pk := newPacket(t, 9); ; pk = newPacket(t, 9) {
			if packet.Lane(pk.ID, p.Lanes()) == lane {
				openPacket(t, p, pk)
				all = append(all, pk)
				break
			}
		}
		for user := range 2 + lane%2 { // lane 1 has the longest tail
			mustGrab(t, p, all[lane].ID, fmt.Sprint("u", user))
		}
	}
	run := &searchRun{pool: p, known: make([]knownLane, p.Lanes()), seed: maphash.MakeSeed()}
	must(t, run.readTails(t.Context(), p.lanesAll()))
	indexed := func() (all []int64) {
		must(t, run.boundTails(t.Context()))
		must(t, run.readTails(t.Context(), p.lanesAll()))
		for lane := range 3 {
			n, err := p.rdb.ZCard(t.Context(), p.keys.claimed(lane)).Result()
			must(t, err)
			all = append(all, n, int64(len(run.known[lane].tail.claims)))
		}
		return all
	}
	if got := indexed(); !slices.Equal(got, []int64{0, 2, 0, 3, 0, 2}) {
		t.Errorf("indexed, and in the tail: %v", got)
	}
	run.known[1].tail.claims = append(run.known[1].tail.claims, make([]ownedClaim, maxTail)...)
	if got := indexed(); !slices.Equal(got, []int64{0, 2, 3, maxTail, 0, 2}) {
		t.Errorf("indexed, and in the tail, of too many: %v", got)
	}
}

// TestLongTailIsNotKept: the claims of a lane with more of them in its tail than a process keeps are not
// copied with each search.
func TestLongTailIsNotKept(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	run := &searchRun{pool: p, known: make([]knownLane, p.Lanes()), seed: maphash.MakeSeed(), found: map[search][]packet.Cursor{}}
	run.known[1].tail.claims = make([]ownedClaim, maxPlaces+1)
	must(t, run.readIndexes(t.Context(), []search{{app: "shop", user: "u", limit: 1}}))
	if short, long := run.known[0].index, run.known[1].index; !short.complete || long.complete || long.places != nil {
		t.Errorf("short %+v, long with %d places, complete %v", short, long.n, long.complete)
	}
}
