package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/store/storetest"
)

func TestClosedPacketCountsItsClaims(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	at := time.Date(2026, 2, 17, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		late  []int // claimed shares, latest first; amounts are 25, 25, 25, 26
		count int
		best  int
	}{
		"largest":       {[]int{0, 3, 1}, 3, 3},
		"then earliest": {[]int{0, 2, 1}, 3, 1},
		"one":           {[]int{2}, 1, 2},
		"nobody":        {nil, 0, -1},
	} {
		p := funded(t, s, 101, 4)
		for i, share := range tc.late {
			c := claimOf(p, share, fmt.Sprint("u", share))
			c.ClaimedAt = at.Add(-time.Duration(i) * time.Millisecond)
			_, err := s.RecordClaim(ctx, c)
			must(t, err)
		}
		if rec, err := s.Packet(ctx, p.ID); err != nil || rec.ClaimedCount != tc.count || rec.BestShare != nil {
			t.Errorf("%s, open: %+v, %v", name, rec, err)
		}
		closed(t, s, p)
		rec, err := s.Packet(ctx, p.ID)
		must(t, err)
		if (rec.BestShare == nil) != (tc.best < 0) || rec.BestShare != nil && *rec.BestShare != tc.best || rec.ClaimedCount != tc.count ||
			rec.ClaimedAmount+rec.Remainder != 101 || rec.RefundedAmount != rec.Remainder {
			t.Errorf("%s: %+v", name, rec)
		}
		list, err := s.Packets(ctx, packet.RecordFilter{App: "app", Stored: []packet.Status{packet.StatusClosed}, Limit: 1})
		if err != nil || len(list) != 1 || list[0].Counts != rec.Counts {
			t.Errorf("%s, listed: %+v, %v", name, list, err)
		}
	}
	// All claimed and books open: best luck is known already.
	p := funded(t, s, 101, 2)
	claim(t, s, p, 0, "a")
	claim(t, s, p, 1, "b")
	if rec, err := s.Packet(ctx, p.ID); err != nil || rec.BestShare == nil || *rec.BestShare != 1 {
		t.Errorf("sold out: %+v, %v", rec, err)
	}
}

func TestClaimsBefore(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 1000, 9)
	for i := range 5 {
		claim(t, s, p, i, fmt.Sprint("u", i))
	}
	for _, shut := range []bool{false, true} {
		if shut {
			closed(t, s, p)
		}
		for _, limit := range []int{1, 2, 5, 50} {
			var got []int
			for before := -1; ; {
				page, err := s.ClaimsBefore(t.Context(), p.ID, before, limit)
				must(t, err)
				if len(page) == 0 {
					break
				}
				for _, c := range page {
					if c.UserID != fmt.Sprint("u", c.ShareIndex) || c.PayoutStatus != "pending" {
						t.Errorf("%+v", c)
					}
					got, before = append(got, c.ShareIndex), c.ShareIndex
				}
			}
			if !slices.Equal(got, []int{4, 3, 2, 1, 0}) {
				t.Errorf("closed %v, by %d: %v", shut, limit, got)
			}
		}
	}
	if page, err := s.ClaimsBefore(t.Context(), newID(), -1, 5); err != nil || len(page) != 0 {
		t.Errorf("no packet: %v, %v", page, err)
	}
}

func TestUserClaims(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	at := time.Date(2026, 2, 16, 16, 0, 0, 0, time.UTC)
	var want []packet.Cursor
	for i := range 12 {
		p := samplePacket(100, 3)
		if i >= 8 {
			p.App = "another"
		}
		open(t, s, p)
		for share, user := range []string{"a", "A", "a "} {
			c := claimOf(p, share, user)
			c.ClaimedAt = at.Add(time.Duration(i/4) * time.Millisecond) // four at a time
			_, err := s.RecordClaim(ctx, c)
			must(t, err)
		}
		if i < 8 {
			want = append(want, packet.Cursor{At: at.Add(time.Duration(i/4) * time.Millisecond), ID: p.ID})
		}
		if i%2 == 1 {
			closed(t, s, p)
		}
	}
	slices.SortFunc(want, packet.Cursor.Compare)
	for _, user := range []string{"a", "A", "a "} {
		for _, limit := range []int{1, 3, 8, 50} {
			var got []packet.Cursor
			lucky := 0
			for after := (packet.Cursor{}); ; {
				page, err := s.UserClaims(ctx, "app", user, after, limit)
				must(t, err)
				if len(page) == 0 {
					break
				}
				for _, c := range page {
					after = packet.Cursor{At: c.ClaimedAt, ID: c.PacketID}
					got = append(got, after)
					if c.UserID != user || c.SenderID != "sender" || c.Greeting != "恭喜发财 🧧" || c.PayoutStatus != "pending" {
						t.Errorf("%+v", c)
					}
					if c.BestLuck {
						lucky++
					}
				}
			}
			if !slices.Equal(got, want) || lucky != map[string]int{"a": 0, "A": 0, "a ": 4}[user] {
				t.Errorf("%q by %d, %d lucky:\n got %v\nwant %v", user, limit, lucky, got, want)
			}
		}
	}
	for _, who := range [][2]string{{"app", "b"}, {"App", "a"}, {"app", "a  "}} {
		if page, err := s.UserClaims(ctx, who[0], who[1], packet.Cursor{}, 5); err != nil || len(page) != 0 {
			t.Errorf("%q: %v, %v", who, page, err)
		}
	}
}

// TestClaimedPackets: a claim counts as recorded for its user alone.
func TestClaimedPackets(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p, q := samplePacket(100, 3), samplePacket(100, 3)
	open(t, s, p)
	open(t, s, q)
	_, err := s.RecordClaim(t.Context(), claimOf(p, 0, "a"))
	must(t, err)
	for user, recorded := range map[string]bool{"a": true, "A": false, "b": false} {
		got, err := s.ClaimedPackets(t.Context(), user, []string{p.ID, q.ID, newID()})
		must(t, err)
		want := map[string]packet.ClaimedPacket{p.ID: {SenderID: "sender", Greeting: "恭喜发财 🧧", Recorded: recorded},
			q.ID: {SenderID: "sender", Greeting: "恭喜发财 🧧"}}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", user, got, want)
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	year := packet.Span{From: time.Date(2025, 12, 31, 16, 0, 0, 0, time.UTC), To: time.Date(2026, 12, 31, 16, 0, 0, 0, time.UTC)}
	at := func(when time.Time, app string, shut bool) packet.Packet {
		p := samplePacket(101, 2)
		p.CreatedAt, p.App, p.SenderID = when, app, "u"
		open(t, s, p)
		c := claimOf(p, 1, "u") // the larger one
		c.ClaimedAt = when
		_, err := s.RecordClaim(ctx, c)
		must(t, err)
		if shut {
			closed(t, s, p)
		}
		return p
	}
	at(year.From.Add(-time.Millisecond), "app", true)
	at(year.From, "app", true)
	live := at(year.From.Add(time.Hour), "app", false)
	at(year.To.Add(-time.Millisecond), "app", true)
	at(year.To, "app", true)
	at(year.From, "another", true)
	for _, end := range []string{"funding", "rejected"} {
		p := samplePacket(500, 1)
		p.SenderID, p.CreatedAt = "u", year.From
		recorded(t, s, p)
		if end == "rejected" {
			fail(t, s, chargeID(p))
			must(t, s.RejectPacket(ctx, p.ID, packet.Failure{Code: "declined"}))
		}
	}
	for name, tc := range map[string]struct {
		user   string
		except []string
		want   packet.UserSums
	}{
		"all": {"u", nil, packet.UserSums{SentCount: 3, SentAmount: 303, ReceivedCount: 3, ReceivedAmount: 153, BestLuckCount: 2}},
		"but one": {"u", []string{live.ID}, packet.UserSums{SentCount: 3, SentAmount: 303, ReceivedCount: 2, ReceivedAmount: 102,
			BestLuckCount: 2}},
		"other case":  {"U", nil, packet.UserSums{}},
		"other space": {"u ", nil, packet.UserSums{}},
	} {
		if got, err := s.UserSums(ctx, "app", tc.user, year, tc.except); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tc.want)
		}
	}
}

// giants are one user, one sender and one packet with most of the rows.
const giants = `
INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, metadata, body_hash,
commitment, sealed_seed, charge_provider, payout_provider, status, close_reason,
created_at, opens_at, expires_at, books_closed_at, remainder, claimed_count, best_share,
last_share, closed_at, updated_at)
	SELECT CONCAT('g', LPAD(seq, 19, '0')), 'app', 'giant', 'CNY', 100, 1, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox',
		'closed', 'sold_out',
	NOW(3) - INTERVAL seq SECOND, NOW(3), NOW(3) + INTERVAL 1 DAY, NOW(3), 0, 1, 0, 0, NOW(3), NOW(3) FROM seq_1_to_6000;
INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at) SELECT CONCAT('g', LPAD(seq, 19, '0')), 0, 100,
'giant', NOW(3) - INTERVAL seq SECOND FROM seq_1_to_6000;
INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at) SELECT 'g0000000000000000001', seq, 1, CONCAT('u',
seq), NOW(3) FROM seq_1_to_6000;
INSERT INTO claims (packet_id, user_id, kind, share_index, amount, payment_id, app_id, claimed_at) SELECT packet_id, user_id, 'share',
share_index, amount, CONCAT('p', packet_id, LPAD(share_index MOD 10000, 4, '0')), 'app', claimed_at
FROM shares WHERE user_id IS NOT NULL AND packet_id LIKE 'g%';
ANALYZE TABLE packets, shares, claims;`

// TestListsReadOnePage explains the statements of lists on full tables: no full scan, and no sort of
// more than a page.
func TestListsReadOnePage(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	ctx := t.Context()
	for _, fill := range []string{crowd, giants} {
		_, err := raw.ExecContext(ctx, fill)
		must(t, err)
	}
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	after := packet.Cursor{At: time.Now().Add(-time.Hour), ID: "g0000000000000003600"}
	for _, sender := range []string{"", "s7", "giant", "nobody"} {
		for _, stored := range [][]packet.Status{nil, {packet.StatusOpen, packet.StatusClosing}, {packet.StatusClosed}, {packet.StatusFunding},
			{packet.StatusRejected}} {
			for _, from := range []packet.Cursor{{}, after} {
				_, err := s.Packets(ctx, packet.RecordFilter{App: "app", SenderID: sender, Stored: stored, AfterTime: from.At, AfterID: from.ID,
					Limit: 51})
				must(t, err)
			}
		}
	}
	for _, user := range []string{"u7", "giant", "nobody"} {
		for _, from := range []packet.Cursor{{}, after} {
			_, err := s.UserClaims(ctx, "app", user, from, 51)
			must(t, err)
		}
	}
	for _, before := range []int{-1, 3000, 0} {
		_, err := s.ClaimsBefore(ctx, "g0000000000000000001", before, 51)
		must(t, err)
	}
	pages := len(rec.Texts)
	_, err := s.UserSums(ctx, "app", "giant", packet.Span{From: after.At, To: time.Now()}, []string{"g0000000000000000001"})
	must(t, err)
	if pages < 50 {
		t.Errorf("only %d statements", pages)
	}
	for i, text := range rec.Texts {
		explain(t, raw, text)
		if i < pages && !strings.Contains(text, "SUM(") {
			sortFree(t, raw, text)
			readsAtMost(t, raw, text, 51*4)
		}
	}
}
