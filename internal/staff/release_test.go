package staff

import (
	"bytes"
	"slices"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// TestReleases: what the release of a packet lets go, in codes, in words, and in its hash.
func TestReleases(t *testing.T) {
	t.Parallel()
	accounts := map[payout.Account]money.Fen{payout.AccountOwed: 200, payout.AccountRefunding: 300, payout.AccountHolding: 400}
	waiting := map[payout.Kind]ReleasePart{payout.KindCharge: {Count: 1, Amount: 1000}, payout.KindPayout: {Count: 2, Amount: 200},
		payout.KindRefund: {Count: 1, Amount: 300}, payout.KindHonour: {Count: 1, Amount: 70}}
	own := payout.Balances{ByAccount: accounts}
	came := payout.Balances{ByAccount: accounts, ByKind: map[payout.TransferKind]money.Fen{payout.PostChargeReturned: 1000}}
	seen := map[string]bool{}
	for _, c := range []struct {
		packet HeldPacket
		amount money.Fen
		what   string
	}{
		{HeldPacket{}, 0, "nothing moves now"},
		{HeldPacket{Balances: payout.Balances{ByKind: came.ByKind}}, 0, "nothing moves now"},
		{HeldPacket{Balances: own, Waiting: waiting}, 1970, "10.00 in 1 payment is charged to the sender; " +
			"2.00 in 2 payments is paid to winners; " +
			"3.00 in 1 payment is refunded to the sender; 4.00 goes to winners or back to the sender; " +
			"0.70 in 1 payment is paid by the house for share conflicts"},
		{HeldPacket{Balances: own, GrabsEnded: true}, 900, "2.00 is paid to winners; 3.00 is refunded to the sender; " +
			"4.00 goes back to the sender as the remainder"},
		{HeldPacket{Balances: came, Waiting: waiting, GrabsEnded: true}, 670, "2.00 in 2 payments is paid by the house to winners; " +
			"4.00 is paid by the house to winners who are not recorded yet; nothing goes to the sender; " +
			"0.70 in 1 payment is paid by the house for share conflicts"},
	} {
		r := c.packet.Releases()
		if r.What() != c.what || r.Amount() != c.amount {
			t.Errorf("%s: %s, want %s: %s", r.Amount(), r.What(), c.amount, c.what)
		}
		if hash := string(r.Hash()); len(r) > 0 && seen[hash] {
			t.Errorf("the hash of another release: %s", c.what)
		} else {
			seen[hash] = true
		}
	}
}

// TestReleaseOfAPayment: a payment that continues or may be retried moves its amount; others nothing.
func TestReleaseOfAPayment(t *testing.T) {
	t.Parallel()
	open := map[payout.Kind]ReleaseCode{payout.KindCharge: ReleaseCharge, payout.KindPayout: ReleaseWinners,
		payout.KindRefund: ReleaseRefunds, payout.KindHonour: ReleaseHonours}
	for kind, code := range open {
		for _, status := range payout.Statuses {
			want := Releases{{Code: code, Amount: 100}}
			switch {
			case status.Open():
			case kind != payout.KindCharge && (status == payout.StatusFailed || status == payout.StatusReturned):
				want[0].Code = ReleaseAfterRetry
			default:
				want = nil
			}
			if got := PaymentReleases(payout.Payment{Kind: kind, Status: status, Amount: 100}); !slices.Equal(got, want) {
				t.Errorf("%c %s: %+v, want %+v", kind, status, got, want)
			}
		}
	}
	if got := PaymentReleases(payout.Payment{}); got != nil {
		t.Errorf("without a row: %+v", got)
	}
}

// TestReleasesAdded: a sum has one part of a code, and each member of a part counts for the hash.
func TestReleasesAdded(t *testing.T) {
	t.Parallel()
	a := Releases{{ReleaseWinners, 1, 100}, {ReleaseUnclaimed, 0, 50}}
	sum := a.Plus(Releases{{ReleaseCharge, 1, 7}, {ReleaseWinners, 2, money.Saturated}})
	if want := (Releases{{ReleaseCharge, 1, 7}, {ReleaseWinners, 3, money.Saturated}, {ReleaseUnclaimed, 0, 50}}); !slices.Equal(sum, want) {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if a[0].Count != 1 || sum.Amount() != money.Saturated {
		t.Errorf("%+v, %s", a, sum.Amount())
	}
	base := Releases{{ReleaseWinners, 1, 100}}
	for _, other := range []Releases{nil, {{ReleaseRefunds, 1, 100}}, {{ReleaseWinners, 2, 100}}, {{ReleaseWinners, 1, 101}},
		{{ReleaseWinners, 1, 100}, {Code: ReleaseNothingToSender}}} {
		if bytes.Equal(base.Hash(), other.Hash()) {
			t.Errorf("%+v has the hash of %+v", other, base)
		}
	}
	for _, code := range ReleaseCodes {
		if releaseWords[code] == "" {
			t.Errorf("%s has no words", code)
		}
	}
	if len(releaseWords) != len(ReleaseCodes) {
		t.Errorf("%d words of %d codes", len(releaseWords), len(ReleaseCodes))
	}
}
