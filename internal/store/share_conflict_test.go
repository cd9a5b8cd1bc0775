package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
	"hongbao/internal/staff"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
)

var (
	cancelCommand = payout.DecisionRequest{Kind: payout.DecisionCancel, ApproveFrom: money.Max}
	markCommand   = payout.DecisionRequest{Kind: payout.DecisionMarkPaid, ApproveFrom: money.Max, Evidence: "slip 1"}
	// smallRetry is a retry below the approval amount: any other payout needs one person.
	smallRetry = payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: money.Max}
)

// recordConflict has a claim refused and recorded as a share conflict, as RecordClaim's activity does.
func recordConflict(t testing.TB, s *testStore, c packet.Claim) payout.State {
	t.Helper()
	_, refused := s.RecordClaim(t.Context(), c)
	if !errors.Is(refused, ErrConflict) && !errors.Is(refused, ErrBooksClosed) {
		t.Fatalf("claim of %s: %v", c.UserID, refused)
	}
	st, err := s.RecordShareConflict(t.Context(), c, refused.Error())
	must(t, err)
	return st
}

// newShareConflict is a packet of one share of 100 fen, recorded for u; v has a share conflict.
func newShareConflict(t testing.TB, s *testStore) (p packet.Packet, id string) {
	t.Helper()
	p = funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	return p, recordConflict(t, s, claimOf(p, 0, "v")).PaymentID
}

// TestR9_UnrecordedByShare: a claim is recorded by share. It does not cover another share that its
// user grabbed after Redis lost the first, unless that one can be neither recorded nor a conflict.
func TestR9_UnrecordedByShare(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 600, 6)
	claim(t, s, p, 0, "booked")
	claim(t, s, p, 1, "both")
	claim(t, s, p, 2, "other")
	recordConflict(t, s, claimOf(p, 0, "conflict"))
	recordConflict(t, s, claimOf(p, 0, "both"))
	for _, c := range []struct {
		name  string
		share int
		want  bool
	}{
		{"booked", 0, false}, {"booked", 3, true}, {"booked", 2, true}, {"booked", reconcile.AnyShare, false},
		{"conflict", 0, false}, {"conflict", 3, true}, {"conflict", 2, false}, {"conflict", reconcile.AnyShare, false},
		{"both", 0, false}, {"both", 1, false}, {"both", 3, false},
		{"nobody", 0, true}, {"nobody", 3, true}, {"nobody", reconcile.AnyShare, true},
	} {
		asked := packet.Claim{PacketID: p.ID, UserID: c.name, ShareIndex: c.share}
		claims := []packet.Claim{asked, {PacketID: p.ID, UserID: "other", ShareIndex: 2}}
		recorded, err := s.RecordedClaims(t.Context(), p.ID, claims)
		left := reconcile.Diff(reconcile.Facts{First: reconcile.ClaimsFirst, Claims: claims, Recorded: recorded})
		lacks := slices.ContainsFunc(left, func(r reconcile.Repair) bool { return r.Claim == asked })
		if err != nil || lacks != c.want || len(left) > 1 {
			t.Errorf("share %d of %s: %+v, %v", c.share, c.name, left, err)
		}
	}
}

// TestR10_ConflictIsRecorded: a taken share or closed books make one failed payout a user, without
// share and transfer, however often it is repeated; the user sees the acknowledged amount.
func TestR10_ConflictIsRecorded(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 300, 3)
	claim(t, s, p, 0, "u")
	taken, late := claimOf(p, 0, "v"), claimOf(p, 1, "w")
	taken.Nickname, taken.Recipient = ptr("小红"), "wallet"
	for range 3 {
		st := recordConflict(t, s, taken)
		if st.PaymentID != conflictID(p, "v") || st.Status != payout.StatusFailed ||
			st.Failure.Code != payout.FailureShareConflict ||
			!st.Failure.Retryable || st.Step.Do != payout.ActionEnd {
			t.Fatalf("%+v", st)
		}
	}
	closed(t, s, p)
	if st := recordConflict(t, s, late); st.PaymentID != conflictID(p, "w") || st.Status != payout.StatusFailed {
		t.Errorf("%+v", st)
	}
	if sums, err := s.ShareConflicts(ctx, p.ID); err != nil || sums != (staff.ShareConflicts{Count: 2, Amount: 200, Free: 100}) {
		t.Errorf("%+v, %v", sums, err)
	}
	// The first claim of the share is unchanged, and its repeat is no conflict.
	if st, err := s.RecordShareConflict(ctx, claimOf(p, 0, "u"), "by mistake"); err != nil || st.PaymentID != payoutID(p, 0) {
		t.Errorf("%+v, %v", st, err)
	}
	if n, m, err := s.CountClaims(ctx, p.ID); err != nil || n != 1 || m != 2 {
		t.Errorf("%d claims and %d share conflicts recorded, want one and two: %v", n, m, err)
	}
	if got, err := s.RecordedUsers(ctx, p.ID, []string{"u", "v", "w", "x"}); err != nil || len(got) != 3 || got["x"] {
		t.Errorf("recorded %v, %v", got, err)
	}
	got, err := s.Claim(ctx, p.ID, "v")
	must(t, err)
	if got.Amount != 100 || got.ShareIndex != 0 || *got.Nickname != "小红" || got.Recipient != "wallet" ||
		!got.ClaimedAt.Equal(taken.ClaimedAt) ||
		got.PayoutID != conflictID(p, "v") || got.PayoutStatus != "failed" {
		t.Errorf("%+v", got)
	}
	if at, err := s.PayoutOf(ctx, p.ID, "w"); err != nil || at.Kind != payout.KindHonour || at.ShareIndex != -1 {
		t.Errorf("%+v, %v", at, err)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM breaks WHERE packet_id = ? AND kind = 'share_conflict'", p.ID); n != 2 {
		t.Errorf("%d breaks", n)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM transfers WHERE order_no LIKE 'h%'"); n != 0 {
		t.Errorf("%d transfers for share conflicts that were not honoured", n)
	}
	checkLedger(t, s)
}

func ptr[T any](v T) *T { return &v }

// conflictID is the id of a user's share conflict if no other user of the packet has its number.
func conflictID(p packet.Packet, user string) string {
	return payout.ID(payout.KindHonour, p.ID, payout.HonourNumber(p.ID, user))
}

// TestR1_HonourNumbers: the number of a share conflict is that of its user, whatever else is recorded, so
// that a restored MySQL gives it to no other user. Of two users with one number the second gets the next.
func TestR1_HonourNumbers(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	users := map[int]string{}
	for i := 0; ; i++ {
		user := fmt.Sprint("v", i)
		n := payout.HonourNumber(p.ID, user)
		first, taken := users[n]
		if users[n] = user; !taken {
			continue
		}
		for _, want := range []struct {
			user string
			id   string
		}{{"w", conflictID(p, "w")}, {first, payout.ID(payout.KindHonour, p.ID, n)},
			{user, payout.ID(payout.KindHonour, p.ID, payout.NextHonourNumber(n))}} {
			if st := recordConflict(t, s, claimOf(p, 0, want.user)); st.PaymentID != want.id {
				t.Errorf("%s has %s, want %s", want.user, st.PaymentID, want.id)
			}
		}
		return
	}
}

// TestR10_ConflictsAtOnce: concurrent runs of one claim make one payout, those of different users
// one each, and every number is used once.
func TestR10_ConflictsAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	ids := make([]string, 40)
	for _, err := range together(len(ids), func(i int) error {
		st, err := s.RecordShareConflict(t.Context(), claimOf(p, 0, fmt.Sprint("v", i%10)), "taken")
		ids[i] = st.PaymentID
		return err
	}) {
		must(t, err)
	}
	for i, id := range ids {
		if id == "" || id != ids[i%10] {
			t.Errorf("run %d of v%d: %q, another had %q", i, i%10, id, ids[i%10])
		}
	}
	slices.Sort(ids)
	if got := slices.Compact(ids); len(got) != 10 {
		t.Errorf("%q", got)
	}
	if n, m, err := s.CountClaims(t.Context(), p.ID); err != nil || n+m != 11 {
		t.Errorf("%d claims and %d share conflicts: %v", n, m, err)
	}
}

// TestR10_Honoured: two persons, whatever the amount; then the house owes it once, however often an
// order number fails, and it is paid under an h number.
func TestR10_Honoured(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p, id := newShareConflict(t, s)
	agreed(t, s, id, smallRetry) // fails unless the first person's decision waits
	if got := dueKinds(t, s, id); !slices.Equal(got, []string{"begin"}) {
		t.Errorf("outbox %v", got)
	}
	house := map[payout.Account]money.Fen{payout.AccountOwed: 200, payout.AccountHouse: -100}
	balanced(t, s, p, house)
	// A repeat of the claim finds the row in every state.
	if st := recordConflict(t, s, claimOf(p, 0, "v")); st.PaymentID != id || st.Status != payout.StatusPending ||
		st.Step.Do != payout.ActionSend {
		t.Errorf("%+v", st)
	}
	first := fail(t, s, id)
	if first.OrderNo != payout.OrderNo(id, 1) || first.Op != payout.OpTransfer {
		t.Errorf("%+v", first)
	}
	c.Pass(time.Second)
	checkLedger(t, s)
	again, err := s.Decide(ctx, financeWrite(t, s, "a second retry", "h"), id, smallRetry, render)
	must(t, err)
	words := strings.Fields(string(again.Body))
	if again.Status != 202 || words[1] != "waiting" {
		t.Fatalf("the second retry: %d %s", again.Status, again.Body)
	}
	if a, err := s.AnswerApproval(ctx, second(t, s, "again"), words[2], true, render); err != nil || a.Status != 202 {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
	balanced(t, s, p, house)
	c.Pass(time.Second) // every earlier order number is queried before a new one
	settle(t, s, payout.SourceQuery, first.OrderNo, payout.ObsDeclined)
	if o := pay(t, s, id); o.OrderNo != payout.OrderNo(id, 2) {
		t.Errorf("paid under %s", o.OrderNo)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 100, payout.AccountHouse: -100})
	b, err := s.Balances(ctx, p.ID)
	must(t, err)
	if own := b.Own(); own.ByAccount[payout.AccountOwed] != 100 || own.ByAccount[payout.AccountHouse] != 0 ||
		own.ByKind[payout.PostPaid] != 0 ||
		own.ByAccount[payout.AccountProvider] != -100 || b.Honours[payout.PostPaid] != 100 || b.Imbalanced() {
		t.Errorf("%+v, of its own %+v", b, own)
	}
	checkLedger(t, s)
}

// TestR10_Voided: a cancel of a conflict that was not honoured posts nothing and makes no refund;
// what the house has honoured stays with the house.
func TestR10_Voided(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		honoured bool
		postings int
	}{"not honoured": {false, 0}, "honoured": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			s, c := newStore(t)
			ctx := t.Context()
			p, id := newShareConflict(t, s)
			if tc.honoured {
				agreed(t, s, id, smallRetry)
				fail(t, s, id)
				c.Pass(time.Second)
			}
			agreed(t, s, id, cancelCommand)
			if got := dueKinds(t, s, id); !slices.Contains(got, "decide") {
				t.Errorf("outbox %v", got)
			}
			c.Pass(time.Second)
			declineQueries(t, s, id)
			for range 2 {
				if st, err := s.CarryOut(ctx, id); err != nil || st.Status != payout.StatusCancelled || st.Step.Do != payout.ActionEnd {
					t.Fatalf("%+v, %v", st, err)
				}
			}
			balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 100})
			if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM transfers WHERE order_no LIKE 'h%'"); n != tc.postings {
				t.Errorf("%d postings", n)
			}
			if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE kind = 'r'"); n != 0 {
				t.Errorf("%d refunds of what was never the sender's", n)
			}
			if st := recordConflict(t, s, claimOf(p, 0, "v")); st.PaymentID != id || st.Status != payout.StatusCancelled {
				t.Errorf("a repeat after it: %+v", st)
			}
			checkLedger(t, s)
		})
	}
}

// TestR10_PaidOutside: paid outside is the house's money too.
func TestR10_PaidOutside(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p, id := newShareConflict(t, s)
	agreed(t, s, id, markCommand)
	if got := statusOf(t, s, id); got != payout.StatusPaidOutside {
		t.Errorf("%s", got)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 100, payout.AccountHouse: -100, payout.AccountOutside: 100})
	checkLedger(t, s)
}

// TestR10_Listed: among the payouts of staff, in their order, and separately.
func TestR10_Listed(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 500, 5)
	var want []string
	for i := range 5 {
		c.Pass(time.Millisecond)
		want = append(want, claim(t, s, p, i, fmt.Sprint("u", i)).PaymentID, recordConflict(t, s, claimOf(p, i, fmt.Sprint("v", i))).PaymentID)
	}
	slices.Reverse(want)
	f := staff.PaymentFilter{Kind: payout.KindPayout, IncludeHonours: true, PacketID: p.ID, Limit: 3}
	var got []string
	for {
		rows, err := s.Payments(ctx, f)
		must(t, err)
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if len(rows) < f.Limit {
			break
		}
		f.AfterTime, f.AfterID = rows[2].CreatedAt, rows[2].ID
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for what, f := range map[string]staff.PaymentFilter{
		"code":   {Kind: payout.KindPayout, IncludeHonours: true, FailureCode: payout.FailureShareConflict, Limit: 9},
		"status": {Kind: payout.KindPayout, IncludeHonours: true, Status: payout.StatusFailed, Limit: 9},
		"kind":   {Kind: payout.KindHonour, Limit: 9},
	} {
		if rows, err := s.Payments(ctx, f); err != nil || len(rows) != 5 || rows[0].UserID != "v4" {
			t.Errorf("by %s: %d rows, %v", what, len(rows), err)
		}
	}
	if rows, err := s.Payments(ctx, staff.PaymentFilter{Kind: payout.KindPayout, Limit: 20}); err != nil || len(rows) != 5 {
		t.Errorf("%d payouts of shares, %v", len(rows), err)
	}
	if sums, err := s.ShareConflicts(ctx, p.ID); err != nil || sums != (staff.ShareConflicts{Count: 5, Amount: 500}) {
		t.Errorf("%+v, %v", sums, err)
	}
}

// TestR10_Reconciled: the statement line of an honoured conflict matches.
func TestR10_Reconciled(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p := samplePacket(100, 1)
	recorded(x.t, x.s, p)
	x.Paid(begin(t, x.s, chargeID(p)), 100, p.SenderID)
	_, err := x.s.Fund(t.Context(), p.ID, even(p))
	must(t, err)
	claim(t, x.s, p, 0, "u")
	x.Paid(begin(t, x.s, payoutID(p, 0)), 100, "u")
	id := recordConflict(t, x.s, claimOf(p, 0, "v")).PaymentID
	agreed(t, x.s, id, smallRetry)
	x.Paid(begin(t, x.s, id), 100, "v")
	r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.want(x.breaks(false), "share_conflict "+payoutID(p, 0))
	if got := x.sums(r, payout.OpTransfer); got.Provider.Amount != 200 || got.Books != got.Provider {
		t.Errorf("%+v", got)
	}
}

// TestR10_UserSeesTheSameAmount: a user's list and sums have the acknowledged amount, once a packet,
// in order.
func TestR10_UserSeesTheSameAmount(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	at := time.Date(2026, 2, 17, 0, 0, 0, 0, time.UTC)
	var want []string
	for i := range 6 {
		p := funded(t, s, 200, 2)
		c := claimOf(p, 0, "v")
		c.ClaimedAt = at.Add(time.Duration(i/2) * time.Second)
		if i%2 == 0 {
			_, err := s.RecordClaim(ctx, c)
			must(t, err)
		} else {
			claim(t, s, p, 0, "u")
			recordConflict(t, s, c)
		}
		if i == 0 { // a share of the same packet: the share counts
			claim(t, s, p, 1, "u")
			recordConflict(t, s, claimOf(p, 1, "v"))
		}
		want = append(want, p.ID)
	}
	for i := 0; i < len(want); i += 2 {
		slices.Sort(want[i : i+2])
	}
	slices.Reverse(want)
	var got []string
	var after packet.Cursor
	for {
		page, err := s.UserClaims(ctx, "app", "v", after, 2)
		must(t, err)
		for _, c := range page {
			got = append(got, c.PacketID)
			if c.Amount != 100 || c.SenderID != "sender" {
				t.Errorf("%+v", c)
			}
		}
		if len(page) < 2 {
			break
		}
		after = packet.Cursor{At: page[1].ClaimedAt, ID: page[1].PacketID}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, tc := range []struct {
		except []string
		span   packet.Span
		n      int
	}{
		{nil, packet.Span{From: at, To: at.Add(time.Hour)}, 6},
		{want[:2], packet.Span{From: at, To: at.Add(time.Hour)}, 4},
		{nil, packet.Span{From: at, To: at.Add(time.Second)}, 2},
		{nil, packet.Span{From: at.Add(time.Hour), To: at.Add(2 * time.Hour)}, 0},
	} {
		sums, err := s.UserSums(ctx, "app", "v", tc.span, tc.except)
		if err != nil || sums.ReceivedCount != tc.n || sums.ReceivedAmount != money.Fen(100*tc.n) {
			t.Errorf("%+v: %+v, %v", tc, sums, err)
		}
	}
	if sums, err := s.UserSums(ctx, "other", "v", packet.Span{From: at, To: at.Add(time.Hour)}, nil); err != nil || sums.ReceivedCount != 0 {
		t.Errorf("another app: %+v, %v", sums, err)
	}
}

// TestR10_ListedWithTheClaims: the list of claims has every user with an acknowledged claim, page by
// page, once each.
func TestR10_ListedWithTheClaims(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 300, 3)
	claim(t, s, p, 0, "u0")
	claim(t, s, p, 1, "u1")
	for _, user := range []string{"w", "v", "u0"} { // u0 has a share: the share counts
		recordConflict(t, s, claimOf(p, 1, user))
	}
	closed(t, s, p)
	recordConflict(t, s, claimOf(p, 2, "x"))
	want := []string{"x 2 h", "u1 1 p", "v 1 h", "w 1 h", "u0 0 p"}
	for _, limit := range []int{1, 2, 3, 4, 50} {
		var got []string
		for share, user := -1, ""; ; {
			page, err := s.AcknowledgedClaimsAfter(t.Context(), p.ID, share, user, limit)
			must(t, err)
			for _, c := range page {
				if c.Amount != 100 {
					t.Errorf("%+v", c)
				}
				got = append(got, fmt.Sprint(c.UserID, " ", c.ShareIndex, " ", c.PayoutID[:1]))
				share, user = c.ShareIndex, c.UserID
			}
			if len(page) < limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %q, want %q", limit, got, want)
		}
	}
}

// TestHealthShareConflicts: share conflicts count until they are honoured or voided.
func TestHealthShareConflicts(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 200, 2)
	claim(t, s, p, 0, "u")
	read := func(n, fen int64) {
		t.Helper()
		v := storetest.NewSnapshot()
		must(t, report.NewHealthReader(s.Source).Read(t.Context(), v))
		if v.ShareConflicts != n || v.ShareConflictsFen != fen {
			t.Errorf("%d share conflicts of %d fen, want %d of %d", v.ShareConflicts, v.ShareConflictsFen, n, fen)
		}
	}
	read(0, 0)
	st := recordConflict(t, s, claimOf(p, 0, "v"))
	recordConflict(t, s, claimOf(p, 0, "w"))
	read(2, 200)
	must(t, s.db.Gorm.Exec("UPDATE payments SET status = 'cancelled', failure_code = NULL WHERE id = ?", st.PaymentID).Error)
	read(1, 100)
}
