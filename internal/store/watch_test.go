package store

import (
	"slices"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// TestWaitingPayments: overdue payments are known from their rows in every status, and pages
// continue where the last one ended.
func TestWaitingPayments(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	overdue := func() (ids []string) {
		t.Helper()
		for _, status := range payout.Statuses {
			var after packet.Cursor
			for {
				page, err := s.WaitingPayments(ctx, payout.KindPayout, status, after, 1)
				must(t, err)
				if len(page) == 0 {
					break
				}
				if status.Open() && page[0].Overdue(s.Now()) > 30*time.Second {
					ids = append(ids, page[0].ID)
				}
				after = packet.Cursor{At: page[0].CreatedAt, ID: page[0].ID}
			}
		}
		return ids
	}
	fresh, second := owing(t, s), owing(t, s)
	sending := owing(t, s)
	o := begin(t, s, sending)
	pay(t, s, owing(t, s))
	failedPayment(t, s)
	if got := overdue(); len(got) != 0 {
		t.Errorf("overdue at once: %v", got)
	}
	c.Pass(time.Minute)
	if got := overdue(); !slices.Equal(got, []string{fresh, second, sending}) {
		t.Errorf("overdue %v, want %v", got, []string{fresh, second, sending})
	}
	lists, err := s.WaitingLists(ctx)
	must(t, err)
	var want []payout.WaitingList
	for _, status := range []payout.Status{payout.StatusFailed, payout.StatusPending, payout.StatusSending} {
		want = append(want, payout.WaitingList{Kind: payout.KindPayout, Status: status})
	}
	if !slices.Equal(lists, want) {
		t.Errorf("waiting lists %v, want %v", lists, want)
	}
	page, err := s.WaitingPayments(ctx, payout.KindPayout, payout.StatusSending, packet.Cursor{}, 10)
	must(t, err)
	if len(page) != 1 || page[0].OrderNo != o.OrderNo || page[0].Next != payout.ActionQuery {
		t.Errorf("%+v", page)
	}
	obs := observation(payout.SourceSend, o.OrderNo, payout.ObsRetryAfter)
	obs.RetryAfter = time.Hour
	_, err = s.Settle(ctx, obs, o.OrderNo)
	must(t, err)
	c.Pass(59 * time.Minute)
	if got := overdue(); slices.Contains(got, sending) {
		t.Error("overdue while it waits for its next step")
	}
	c.Pass(2 * time.Minute)
	if got := overdue(); !slices.Contains(got, sending) {
		t.Errorf("overdue %v, not the one whose pause is over", got)
	}
}

// TestUnfinishedPackets: every unfinished packet is in one of the pages, by expiry.
func TestUnfinishedPackets(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	manyLives(t, s)
	var late, early packet.Packet
	for _, at := range []struct {
		p    *packet.Packet
		life time.Duration
	}{{&late, 2 * time.Hour}, {&early, time.Hour}} {
		p := samplePacket(100, 1)
		p.ExpiresAt = p.OpensAt.Add(at.life)
		*at.p = recorded(t, s, p)
	}
	found := map[packet.Status][]string{}
	for _, status := range []packet.Status{packet.StatusFunding, packet.StatusOpen, packet.StatusClosing} {
		var after packet.Cursor
		for {
			page, err := s.UnfinishedPackets(ctx, status, after, 1)
			must(t, err)
			if len(page) == 0 {
				break
			}
			u := page[0]
			found[status] = append(found[status], u.ID)
			after = packet.Cursor{At: u.ExpiresAt, ID: u.ID}
			one, ok, err := s.UnfinishedPacket(ctx, u.ID)
			if must(t, err); !ok || one.Stored != status || one.Commitment != u.Commitment || !one.UpdatedAt.Equal(u.UpdatedAt) {
				t.Errorf("%+v, %t", one, ok)
			}
		}
	}
	if len(found[packet.StatusFunding]) != 3 || found[packet.StatusFunding][0] != early.ID || found[packet.StatusFunding][1] != late.ID ||
		len(found[packet.StatusOpen]) != 1 {
		t.Errorf("%v, want %s, then %s", found, early.ID, late.ID)
	}
	// A packet with closed books has its refund's status.
	p := funded(t, s, 100, 2)
	_, err := s.BeginClosing(ctx, p.ID, packet.CloseExpired)
	must(t, err)
	_, err = s.CloseBooks(ctx, p.ID, "")
	must(t, err)
	u, ok, err := s.UnfinishedPacket(ctx, p.ID)
	if must(t, err); !ok || !u.BooksClosed() || u.RefundStatus != "pending" || u.Remainder != 100 {
		t.Errorf("%+v, %t", u, ok)
	}
	pay(t, s, refundID(p))
	_, err = s.FinishPacket(ctx, p.ID, nil)
	must(t, err)
	if _, ok, err := s.UnfinishedPacket(ctx, p.ID); ok || err != nil {
		t.Errorf("closed, and %t, %v", ok, err)
	}
}

// TestUnfinishedReadsIndex: a page of unfinished packets reads no finished one.
func TestUnfinishedReadsIndex(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	manyLives(t, s)
	explain(t, raw, selectUnfinished+" WHERE k.status = 'open' AND (k.expires_at > '2026-01-01' OR (k.expires_at = '2026-01-01' AND "+
		"k.id > 'a')) ORDER BY k.expires_at, k.id LIMIT 100")
}
