package store

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

func TestRecordPacket(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := samplePacket(1000, 3)
	eligible := []string{"a", "B", "ü"}
	if _, err := s.RecordPacket(t.Context(), p, []byte("sealed"), eligible); !errors.Is(err, ErrConflict) {
		t.Errorf("a list of another length: %v", err)
	}
	p.EligibleCount = 3
	for range 3 { // a repeat changes nothing
		status, err := s.RecordPacket(t.Context(), p, []byte("sealed"), eligible)
		must(t, err)
		if status != packet.StatusFunding {
			t.Fatal(status)
		}
	}
	rec, err := s.Packet(t.Context(), p.ID)
	must(t, err)
	if !reflect.DeepEqual(rec.Packet, p) {
		t.Errorf("read   %+v\nwrote %+v", rec.Packet, p)
	}
	if rec.Stored != packet.StatusFunding || string(rec.SealedSeed) != "sealed" || !slices.Equal(rec.Eligible, eligible) || rec.First != nil ||
		rec.Failure != nil {
		t.Errorf("%+v", rec)
	}
	charge, err := s.PaymentRow(t.Context(), chargeID(p))
	must(t, err)
	if charge.Kind != payout.KindCharge || charge.Status != payout.StatusPending || charge.Amount != 1000 || charge.Account != "sender" ||
		charge.UserID != "sender" || charge.ShareIndex != -1 || charge.PacketID != p.ID || len(charge.Remark) > 32 {
		t.Errorf("%+v", charge)
	}
	ticketed := samplePacket(5, 1)
	ticketed.Tickets = true
	recorded(t, s, ticketed)
	if pool, found, err := s.PoolOf(t.Context(), ticketed.ID); err != nil || !found || !pool.Tickets || rec.Tickets {
		t.Errorf("tickets: %+v, %t, %v", pool, found, err)
	}
	other := p
	other.BodyHash = "other"
	if _, err := s.RecordPacket(t.Context(), other, []byte("x"), nil); !errors.Is(err, ErrConflict) {
		t.Errorf("other body: %v", err)
	}
	open(t, s, samplePacket(5, 1))
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE packet_id = ?", p.ID); n != 1 {
		t.Errorf("%d charges", n)
	}
	if _, err := s.Packet(t.Context(), newID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown packet: %v", err)
	}
}

func TestRecordPacketAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := samplePacket(1000, 3)
	for _, err := range together(16, func(i int) error {
		mine := p
		if i%4 == 3 {
			mine.BodyHash = "other"
		}
		_, err := s.RecordPacket(t.Context(), mine, []byte("sealed"), nil)
		if errors.Is(err, ErrConflict) {
			return nil // whichever body came second
		}
		return err
	}) {
		must(t, err)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments"); n != 1 {
		t.Errorf("%d charges", n)
	}
	rec, err := s.Packet(t.Context(), p.ID)
	must(t, err)
	if _, err := s.RecordPacket(t.Context(), rec.Packet, rec.SealedSeed, nil); err != nil {
		t.Errorf("the stored body again: %v", err)
	}
}

func TestFund(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := recorded(t, s, samplePacket(1000, 3))
	_, err := s.Fund(ctx, p.ID, even(p))
	wantErr(t, err, ErrMoved) // the charge is not paid
	pay(t, s, chargeID(p))
	for _, wrong := range [][]money.Fen{nil, {1000}, {333, 333, 333}, {333, 333, 335}, {500, 500}, {1, 999, 0, 0}, {money.Max, 1, 1}} {
		if _, err := s.Fund(ctx, p.ID, wrong); !errors.Is(err, ErrConflict) {
			t.Errorf("shares %v: %v", wrong, err)
		}
	}
	for _, err := range together(8, func(int) error {
		status, err := s.Fund(ctx, p.ID, even(p))
		if err == nil && status != packet.StatusOpen {
			err = fmt.Errorf("status %s", status)
		}
		return err
	}) {
		must(t, err)
	}
	if n, sum := storetest.Query[int](t, s, "SELECT COUNT(*) FROM shares WHERE packet_id = ?", p.ID),
		storetest.Query[int](t, s, "SELECT SUM(amount) FROM shares WHERE packet_id = ?", p.ID); n != 3 || sum != 1000 {
		t.Errorf("%d shares of %d fen", n, sum)
	}
	_, err = s.Fund(ctx, newID(), nil)
	wantErr(t, err, ErrNotFound)
	// More than one batch of rows.
	funded(t, s, 3*insertShares, 2*insertShares+1)
}

func TestRejectPacket(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := recorded(t, s, samplePacket(1000, 3))
	failAs(t, s, chargeID(p), "余额不足")
	for range 2 {
		must(t, s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: "余额不足", Message: "no \xff money"}))
	}
	rec, err := s.Packet(t.Context(), p.ID)
	must(t, err)
	if rec.Stored != packet.StatusRejected || rec.Failure == nil || rec.Failure.Code != "????" || rec.Failure.Message != "no ? money" {
		t.Errorf("%+v %+v", rec.Stored, rec.Failure)
	}
	if status, err := s.Fund(t.Context(), p.ID, even(p)); err != nil || status != packet.StatusRejected {
		t.Errorf("funded: %s, %v", status, err)
	}
	open := funded(t, s, 100, 1)
	wantErr(t, s.RejectPacket(t.Context(), open.ID, packet.Failure{Code: "x"}), ErrMoved)
}

// TestR13_RejectNeedsTheFailedCharge: a packet is rejected when the row of its charge has failed
// with that code, not when a run says so. On a restored MySQL the charge is back at an earlier step
// and may still be paid.
func TestR13_RejectNeedsTheFailedCharge(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	declined := packet.Failure{Code: "declined", Message: "no"}
	refused := func(p packet.Packet, is payout.Status) {
		t.Helper()
		err := s.RejectPacket(t.Context(), p.ID, declined)
		wantErr(t, err, ErrMoved)
		rec, err := s.Packet(t.Context(), p.ID)
		must(t, err)
		charge, err := s.PaymentState(t.Context(), chargeID(p))
		must(t, err)
		if rec.Stored != packet.StatusFunding || rec.Failure != nil || charge.Status != is {
			t.Errorf("packet %s for %+v, charge %s, want funding, %s", rec.Stored, rec.Failure, charge.Status, is)
		}
	}
	p := recorded(t, s, samplePacket(1000, 3))
	refused(p, payout.StatusPending)
	o := begin(t, s, chargeID(p))
	refused(p, payout.StatusSending)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	refused(p, payout.StatusUnknown)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	refused(p, payout.StatusPaid)
	if status, err := s.Fund(t.Context(), p.ID, even(p)); err != nil || status != packet.StatusOpen {
		t.Errorf("funded: %s, %v", status, err)
	}

	other := recorded(t, s, samplePacket(1000, 3))
	failAs(t, s, chargeID(other), "account_frozen")
	refused(other, payout.StatusFailed)
	declined.Code = "account_frozen"
	must(t, s.RejectPacket(t.Context(), other.ID, declined))

	wantErr(t, s.RejectPacket(t.Context(), newID(), declined), ErrNotFound)
}

// TestR2_ClosingNeedsTheCharge: nothing is refunded that was not charged; a charged packet that
// could not be opened is refunded in full.
func TestR2_ClosingNeedsTheCharge(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := recorded(t, s, samplePacket(1000, 3))
	_, err := s.BeginClosing(t.Context(), p.ID, packet.CloseUnopened)
	wantErr(t, err, ErrMoved)
	_, err = s.CloseBooks(t.Context(), p.ID, "")
	wantErr(t, err, ErrMoved)
	pay(t, s, chargeID(p))
	status, err := s.BeginClosing(t.Context(), p.ID, packet.CloseUnopened)
	must(t, err)
	if status != packet.StatusClosing {
		t.Fatal(status)
	}
	if status, err = s.Fund(t.Context(), p.ID, even(p)); err != nil || status != packet.StatusClosing {
		t.Errorf("funded while closing: %s, %v", status, err)
	}
	remainder, err := s.CloseBooks(t.Context(), p.ID, "")
	must(t, err)
	pay(t, s, refundID(p))
	if closed, err := s.FinishPacket(t.Context(), p.ID, nil); err != nil || !closed || remainder != 1000 {
		t.Errorf("remainder %d, closed %t, %v", remainder, closed, err)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{})
}

// TestR2_FundedWhileItCloses: shares written while the packet begins to close are refunded with the
// rest, in either order.
func TestR2_FundedWhileItCloses(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	first := map[bool]int{}
	for range 25 {
		p := recorded(t, s, samplePacket(1000, 3))
		pay(t, s, chargeID(p))
		funded := packet.StatusFunding
		errs := together(2, func(i int) (err error) {
			if i == 0 {
				funded, err = s.Fund(ctx, p.ID, even(p))
				return err
			}
			_, err = s.BeginClosing(ctx, p.ID, packet.CloseUnopened)
			return err
		})
		must(t, errors.Join(errs...))
		first[funded == packet.StatusOpen]++
		if rec, err := s.Packet(ctx, p.ID); err != nil || rec.Stored != packet.StatusClosing || rec.Reason != packet.CloseUnopened {
			t.Fatalf("%s for %q, %v", rec.Stored, rec.Reason, err)
		}
		if rem, err := s.CloseBooks(ctx, p.ID, ""); err != nil || rem != 1000 {
			t.Fatalf("remainder %d, %v", rem, err)
		}
		balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountRefunding: 1000})
	}
	t.Logf("shares were written before it began to close %d times, after that %d times", first[true], first[false])
}

func TestClosing(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 1000, 4)
	claim(t, s, p, 1, "u")
	_, err := s.CloseBooks(ctx, p.ID, "")
	wantErr(t, err, ErrMoved) // still open
	for _, reason := range []packet.CloseReason{packet.CloseRecalled, packet.CloseExpired} {
		if status, err := s.BeginClosing(ctx, p.ID, reason); err != nil || status != packet.StatusClosing {
			t.Fatal(status, err)
		}
	}
	if rec, _ := s.Packet(ctx, p.ID); rec.Reason != packet.CloseRecalled {
		t.Errorf("reason %s: the first one wins", rec.Reason)
	}
	if closed, err := s.FinishPacket(ctx, p.ID, nil); err != nil || closed {
		t.Errorf("finished before its books are closed: %t, %v", closed, err)
	}
	// The same answer at every repeat; the reason of the first stays.
	for _, reason := range []packet.CloseReason{packet.CloseSoldOut, packet.CloseExpired, ""} {
		if rem, err := s.CloseBooks(ctx, p.ID, reason); err != nil || rem != 750 {
			t.Fatal(rem, err)
		}
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM outbox WHERE payment_id = ? AND kind = 'begin'", refundID(p)); n != 1 {
		t.Errorf("%d outbox rows", n)
	}
	if closed, err := s.FinishPacket(ctx, p.ID, nil); err != nil || closed {
		t.Errorf("closed before its refund: %t, %v", closed, err)
	}
	order := pay(t, s, refundID(p))
	if want := "refund " + order.OrderNo + " sender 750 CNY " + payout.OrderNo(chargeID(p), 1); string(order.Request) != want {
		t.Errorf("request %q, want %q", order.Request, want)
	}
	for range 2 {
		if closed, err := s.FinishPacket(ctx, p.ID, &packet.FirstAnswer{HTTPStatus: 201, RequestID: "r"}); err != nil || !closed {
			t.Fatal(closed, err)
		}
	}
	rec, err := s.Packet(ctx, p.ID)
	must(t, err)
	if rec.Stored != packet.StatusClosed || rec.Reason != packet.CloseSoldOut || rec.Remainder != 750 || rec.ClosedAt.IsZero() ||
		rec.BooksClosedAt.IsZero() ||
		rec.First == nil || *rec.First != (packet.FirstAnswer{HTTPStatus: 201, RequestID: "r"}) {
		t.Errorf("%+v", rec)
	}
	if want := (packet.Counts{ClaimedCount: 1, ClaimedAmount: 250, RefundedAmount: 750}); rec.Counts != want {
		t.Errorf("counts %+v", rec.Counts)
	}
	if status, err := s.BeginClosing(ctx, p.ID, packet.CloseExpired); err != nil || status != packet.StatusClosed {
		t.Errorf("%s, %v", status, err)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 250})
	for _, err := range []error{
		func() error { _, err := s.BeginClosing(ctx, newID(), packet.CloseExpired); return err }(),
		func() error { _, err := s.CloseBooks(ctx, newID(), ""); return err }(),
		func() error { _, err := s.FinishPacket(ctx, newID(), nil); return err }(),
	} {
		wantErr(t, err, ErrNotFound)
	}
}

func TestClosingWithoutRemainder(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 2, 2)
	claim(t, s, p, 0, "a")
	claim(t, s, p, 1, "b")
	_, err := s.BeginClosing(t.Context(), p.ID, packet.CloseSoldOut)
	must(t, err)
	if rem, err := s.CloseBooks(t.Context(), p.ID, ""); err != nil || rem != 0 {
		t.Fatal(rem, err)
	}
	if closed, err := s.FinishPacket(t.Context(), p.ID, nil); err != nil || !closed {
		t.Fatal(closed, err)
	}
	if _, err := s.PaymentRow(t.Context(), refundID(p)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a refund of nothing: %v", err)
	}
}

// TestR6_CloseOnce: claims race with the closing of the books, many times. Every fen is either
// claimed or in the remainder, and a late claim is refused.
func TestR6_CloseOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	const shares = 6
	early, late := 0, 0
	for round := range 25 {
		p := funded(t, s, 999, shares)
		_, err := s.BeginClosing(ctx, p.ID, packet.CloseExpired)
		must(t, err)
		remainders := make([]money.Fen, shares+2)
		errs := together(shares+2, func(i int) (err error) {
			if i >= shares {
				for range round % 3 { // not always first
					if _, err := s.Packet(ctx, p.ID); err != nil {
						return err
					}
				}
				remainders[i], err = s.CloseBooks(ctx, p.ID, "")
				return err
			}
			return book(s, t, claimOf(p, i, fmt.Sprint("u", i)), i%2 == 0)
		})
		claimed := money.Fen(0)
		for i, err := range errs[:shares] {
			switch {
			case err == nil:
				claimed += even(p)[i]
				early++
			case errors.Is(err, ErrBooksClosed):
				late++
			default:
				t.Fatal(err)
			}
		}
		must(t, errors.Join(errs[shares:]...))
		if remainders[shares] != remainders[shares+1] || claimed+remainders[shares] != 999 {
			t.Fatalf("claimed %d, remainders %v of 999", claimed, remainders[shares:])
		}
		rec, err := s.Packet(ctx, p.ID)
		must(t, err)
		if rec.ClaimedAmount != claimed || rec.Remainder != remainders[shares] {
			t.Fatalf("stored %d and %d, answered %d and %d", rec.ClaimedAmount, rec.Remainder, claimed, remainders[shares])
		}
		want := map[payout.Account]money.Fen{payout.AccountOwed: claimed, payout.AccountRefunding: rec.Remainder}
		balanced(t, s, p, want)
	}
	if early == 0 || late == 0 {
		t.Errorf("%d claims before and %d after the closing: no race was tested", early, late)
	}
}

// balanced compares the packet's ledger with its balances that are not zero, except the provider's.
func balanced(t testing.TB, s *testStore, p packet.Packet, want map[payout.Account]money.Fen) {
	t.Helper()
	b, err := s.Balances(t.Context(), p.ID)
	must(t, err)
	sum := money.Fen(0)
	for _, a := range payout.Accounts {
		sum += b.ByAccount[a]
		if a != payout.AccountProvider && b.ByAccount[a] != want[a] {
			t.Errorf("%s is %d, want %d", a, b.ByAccount[a], want[a])
		}
	}
	if sum != 0 {
		t.Errorf("the ledger sums to %d", sum)
	}
}

func TestPackets(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	base := time.Now().UTC().Truncate(time.Second)
	var all []string
	for i := range 7 {
		p := samplePacket(10, 1)
		p.CreatedAt = base.Add(time.Duration(i/2) * time.Millisecond) // two of the same instant
		if i == 6 {
			p.App, p.SenderID = "other", "SENDER"
		}
		recorded(t, s, p)
		if i < 6 {
			all = append(all, p.ID)
		}
	}
	f := packet.RecordFilter{App: "app", SenderID: "sender", Stored: []packet.Status{packet.StatusFunding}, Limit: 2}
	var got []string
	for {
		page, err := s.Packets(ctx, f)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for i, r := range page {
			if n := len(got); n > 0 && i == 0 && r.CreatedAt.After(f.AfterTime) {
				t.Error("not newest first")
			}
			got = append(got, r.ID)
		}
		last := page[len(page)-1]
		f.AfterTime, f.AfterID = last.CreatedAt, last.ID
	}
	if len(got) != len(all) || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(all) {
		t.Errorf("%d packets by pages, want %d: %v", len(got), len(all), got)
	}
	for name, f := range map[string]packet.RecordFilter{
		"everyone's":   {Limit: 100},
		"other app":    {App: "other", Limit: 100},
		"other case":   {SenderID: "SENDER", Limit: 100},
		"other status": {Stored: []packet.Status{packet.StatusOpen, packet.StatusClosed}, Limit: 100},
	} {
		want := map[string]int{"everyone's": 7, "other app": 1, "other case": 1, "other status": 0}[name]
		if page, err := s.Packets(ctx, f); err != nil || len(page) != want {
			t.Errorf("%s: %d packets, want %d, %v", name, len(page), want, err)
		}
	}
	missing := newID()
	states, err := s.PacketStates(ctx, append(slices.Clone(all), missing))
	must(t, err)
	if _, found := states[missing]; found || len(states) != len(all) {
		t.Errorf("%d states of %d packets: %v", len(states), len(all), states)
	}
}
