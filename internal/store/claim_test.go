package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

func TestRecordClaim(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 1000, 3)
	nick, avatar := "小明", "https://example.org/a.png"
	c := claimOf(p, 1, "u1")
	c.Profile = packet.Profile{Nickname: &nick, AvatarURL: &avatar, Recipient: "wallet"}
	first, err := s.RecordClaim(ctx, c)
	must(t, err)
	if first.PaymentID != payoutID(p, 1) || first.Status != payout.StatusPending || first.Step.Do != payout.ActionSend {
		t.Errorf("%+v", first)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountHolding: 1000 - c.Amount, payout.AccountOwed: c.Amount})

	t.Run("repeat", func(t *testing.T) {
		again, err := s.RecordClaim(ctx, c)
		must(t, err)
		if withoutReadTime(again) != withoutReadTime(first) {
			t.Errorf("%+v, first %+v", again, first)
		}
		pay(t, s, first.PaymentID)
		if again, err = s.RecordClaim(ctx, c); err != nil || again.Status != payout.StatusPaid || again.Step.Do != payout.ActionEnd {
			t.Errorf("after it was paid: %+v, %v", again, err)
		}
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM transfers WHERE packet_id = ? AND kind = 'claim'", p.ID); n != 1 {
			t.Errorf("%d claims in the ledger", n)
		}
	})
	t.Run("as read", func(t *testing.T) {
		got, err := s.Claim(ctx, p.ID, "u1")
		must(t, err)
		if got.ShareIndex != 1 || got.Amount != c.Amount || *got.Nickname != nick || *got.AvatarURL != avatar || got.Recipient != "wallet" ||
			!got.ClaimedAt.Equal(c.ClaimedAt) || got.PayoutID != first.PaymentID || got.PayoutStatus != "paid" {
			t.Errorf("%+v", got)
		}
		if d, err := s.PaymentRow(ctx, first.PaymentID); err != nil || d.Account != "wallet" || d.UserID != "u1" || d.ShareIndex != 1 {
			t.Errorf("%+v, %v", d, err)
		}
		all, err := s.ClaimsBefore(ctx, p.ID, -1, 10)
		if err != nil || len(all) != 1 || all[0].UserID != "u1" {
			t.Errorf("%+v, %v", all, err)
		}
		_, err = s.Claim(ctx, p.ID, "U1")
		wantErr(t, err, ErrNotFound)
	})
	for name, tc := range map[string]struct {
		claim packet.Claim
		want  error
	}{
		"another user's share": {claimOf(p, 1, "u2"), ErrConflict},
		"another amount":       {func() packet.Claim { c := claimOf(p, 0, "u2"); c.Amount++; return c }(), ErrConflict},
		"a second share":       {claimOf(p, 2, "u1"), ErrConflict},
		"no such share":        {func() packet.Claim { c := claimOf(p, 2, "u2"); c.ShareIndex = 3; return c }(), ErrNotFound},
		"no such packet":       {func() packet.Claim { c := claimOf(p, 2, "u2"); c.PacketID = newID(); return c }(), ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.RecordClaim(ctx, tc.claim)
			wantErr(t, err, tc.want)
			if n, m, err := s.CountClaims(ctx, p.ID); err != nil || n != 1 || m != 0 {
				t.Errorf("%d claims with and %d without a share, %v", n, m, err)
			}
			if _, err := s.PaymentRow(ctx, payoutID(p, tc.claim.ShareIndex)); tc.claim.ShareIndex != 1 && !errors.Is(err, ErrNotFound) {
				t.Errorf("a payout was left: %v", err)
			}
		})
	}
	t.Run("books closed", func(t *testing.T) {
		_, err := s.BeginClosing(ctx, p.ID, packet.CloseExpired)
		must(t, err)
		claim(t, s, p, 0, "u3") // closing is no reason: the claim was acknowledged before
		_, err = s.CloseBooks(ctx, p.ID, "")
		must(t, err)
		_, err = s.RecordClaim(ctx, claimOf(p, 2, "u4"))
		wantErr(t, err, ErrBooksClosed)
		if again, err := s.RecordClaim(ctx, c); err != nil || again.Status != payout.StatusPaid {
			t.Errorf("a repeat of what was booked in time: %+v, %v", again, err)
		}
	})
}

// TestRecordClaimAtOnce: fifty users claim one share, and then one user claims fifty shares. One row
// results.
func TestRecordClaimAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 5000, 50)
	for name, claimOf := range map[string]func(i int) packet.Claim{
		"one share": func(i int) packet.Claim { return claimOf(p, 7, fmt.Sprint("user", i)) },
		"one user":  func(i int) packet.Claim { return claimOf(p, (8+i%41)%50, "greedy") },
	} {
		before, _, err := s.CountClaims(t.Context(), p.ID)
		must(t, err)
		won := 0
		for _, err := range together(50, func(i int) error { _, err := s.RecordClaim(t.Context(), claimOf(i)); return err }) {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, ErrConflict):
				t.Errorf("%s: %v", name, err)
			}
		}
		after, _, err := s.CountClaims(t.Context(), p.ID)
		must(t, err)
		if after-before != 1 || won < 1 || name == "one share" && won != 1 {
			t.Errorf("%s: %d answers, %d rows", name, won, after-before)
		}
	}
	b, err := s.Balances(t.Context(), p.ID)
	must(t, err)
	if b.ByAccount[payout.AccountOwed] != 200 {
		t.Errorf("owed %d", b.ByAccount[payout.AccountOwed])
	}
}

// TestRecordClaimRepeatedAtOnce: the same claim from many runs is recorded once and returned to all.
func TestRecordClaimRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 100, 1)
	for _, err := range together(20, func(int) error { _, err := s.RecordClaim(t.Context(), claimOf(p, 0, "u")); return err }) {
		must(t, err)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 100})
}

// TestR8_UsersAreBytes: `a`, `A`, `a ` and the like are different users. Every text collation would
// merge some of them.
func TestR8_UsersAreBytes(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	users := []string{"a", "A", "a ", " a", "á", "a\u0301", "ａ", "ß", "ss", "用户", strings.Repeat("x", 64), strings.Repeat("x", 63), "0", "00"}
	p := samplePacket(money.Fen(len(users)), len(users))
	p.SenderID = "S "
	open(t, s, p)
	for i, u := range users {
		claim(t, s, p, i, u)
	}
	for i, u := range users {
		c, err := s.Claim(ctx, p.ID, u)
		must(t, err)
		if c.UserID != u || c.ShareIndex != i {
			t.Errorf("%q has share %d of %q", u, c.ShareIndex, c.UserID)
		}
		rows, err := s.Payments(ctx, staff.PaymentFilter{Kind: payout.KindPayout, UserID: u, Limit: 50})
		if err != nil || len(rows) != 1 || rows[0].UserID != u || rows[0].Account != u {
			t.Errorf("%q: payouts %+v, %v", u, rows, err)
		}
		rec, err := s.RecordedUsers(ctx, p.ID, []string{u, u + "?"})
		if err != nil || len(rec) != 1 || !rec[u] {
			t.Errorf("%q: recorded %v, %v", u, rec, err)
		}
	}
	for _, sender := range []string{"S", "s ", "s"} {
		if page, err := s.Packets(ctx, packet.RecordFilter{SenderID: sender, Limit: 9}); err != nil || len(page) != 0 {
			t.Errorf("sender %q: %d packets, %v", sender, len(page), err)
		}
	}
	// The same for packet ids.
	if _, err := s.Packet(ctx, strings.ToUpper(p.ID)); !errors.Is(err, ErrNotFound) {
		t.Errorf("packet id in capitals: %v", err)
	}
}

// TestR8_LargestAmount: 2^53-1 fen through every column and sum.
func TestR8_LargestAmount(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, money.Max, 1)
	claim(t, s, p, 0, "u")
	pay(t, s, payoutID(p, 0))
	rec, err := s.Packet(ctx, p.ID)
	must(t, err)
	d, err := s.Payment(ctx, payoutID(p, 0))
	must(t, err)
	if rec.TotalAmount != money.Max || rec.ClaimedAmount != money.Max || d.Amount != money.Max ||
		!strings.Contains(string(d.Attempts[0].Request), " 9007199254740991 ") {
		t.Errorf("%d %d %d %q", rec.TotalAmount, rec.ClaimedAmount, d.Amount, d.Attempts[0].Request)
	}
	balanced(t, s, p, nil)
	q := funded(t, s, money.Max, 2)
	claim(t, s, q, 0, "u")
	_, err = s.BeginClosing(ctx, q.ID, packet.CloseExpired)
	must(t, err)
	if rem, err := s.CloseBooks(ctx, q.ID, ""); err != nil || rem+even(q)[0] != money.Max {
		t.Errorf("remainder %d, %v", rem, err)
	}
}

func TestShareConflictIsKept(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	for range 3 {
		_, err := s.RecordShareConflict(t.Context(), claimOf(p, 0, strings.Repeat("\xff", 64)), strings.Repeat("长", 300))
		must(t, err)
	}
	if n := storetest.Query[int](t, s, "SELECT seen FROM breaks WHERE packet_id = ? AND kind = 'share_conflict'", p.ID); n != 3 {
		t.Errorf("seen %d times", n)
	}
	// The drain waits for every acknowledged claim: a share conflict counts too, once.
	if n, m, err := s.CountClaims(t.Context(), p.ID); err != nil || n != 1 || m != 1 {
		t.Errorf("%d claims and %d share conflicts recorded, want one of each: %v", n, m, err)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 100})
}

func TestPayoutProgress(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 100, 2)
	claim(t, s, p, 0, "u")
	// v has a share conflict about u's share, with a payout of its own (rule R10).
	u, v, nobody := claimed(claimOf(p, 0, "u")), claimed(claimOf(p, 0, "v")), claimed(claimOf(p, 1, "x"))
	conflict := recordConflict(t, s, claimOf(p, 0, "v")).PaymentID
	got, err := s.PayoutProgress(t.Context(), []payout.ClaimRef{v, u, nobody})
	if err != nil || len(got) != 2 || got[u] != (payout.PayoutProgress{ID: payoutID(p, 0), Status: payout.StatusPending}) ||
		got[v] != (payout.PayoutProgress{ID: conflict, Status: payout.StatusFailed, FailureCode: "share_conflict"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := s.PayoutProgress(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// withoutReadTime returns a state without its read time.
func withoutReadTime(st payout.State) payout.State {
	st.Clock = time.Time{}
	return st
}
