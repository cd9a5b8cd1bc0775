package console

import (
	"strings"
	"testing"
	"unicode"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// TestReleasesInWords: every part of what a release lets go is shown in the language of the page; the
// sentence of the API is shown for a code that this version does not know.
func TestReleasesInWords(t *testing.T) {
	amount, one, many := money.Fen(1_234_500), 1, 1200
	for _, code := range staff.ReleaseCodes {
		r := wire.Releases{What: "another version's words", Parts: []wire.ReleasePart{{Code: string(code), Amount: &amount}}}
		if got := releasesText(chinese, r); strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
			t.Errorf("%s is %q in Chinese", code, got)
		}
		if got := releasesText(english, r); strings.ContainsFunc(got, isHan) || got == r.What {
			t.Errorf("%s is %q in English", code, got)
		}
	}
	r := wire.Releases{What: "1.00 is given to charity", Parts: []wire.ReleasePart{{Code: "winners", Amount: &amount, Count: &one},
		{Code: "refunds", Amount: &amount, Count: &many}, {Code: "nothing_to_sender"}}}
	if got := releasesText(english, r); got != "¥12,345.00 in 1 payment is paid to winners; "+
		"¥12,345.00 in 1,200 payments is refunded to the sender; nothing goes to the sender" {
		t.Error(got)
	}
	if got := releasesText(chinese, r); got != "¥12,345.00（1 笔） 付给领取人；¥12,345.00（1,200 笔） 退回发红包人；不退给发红包人" {
		t.Error(got)
	}
	if got := releasesText(chinese, wire.Releases{}); got != "目前没有资金变动" {
		t.Error(got)
	}
	r.Parts[1].Code = "charity"
	if got := releasesText(chinese, r); got != r.What {
		t.Error(got)
	}
}

// TestHoldScopes: the filter has every scope.
func TestHoldScopes(t *testing.T) {
	for i, scope := range payout.HoldScopes {
		if len(holdScopes) != len(payout.HoldScopes) || holdScopes[i] != string(scope) {
			t.Fatalf("%q, want %q", holdScopes, payout.HoldScopes)
		}
	}
}

// TestHoldLinks: a hold links to the page of what it names.
func TestHoldLinks(t *testing.T) {
	id := strings.Repeat("0", packet.IDLen)
	charge, paid := payout.ID(payout.KindCharge, id, 0), payout.ID(payout.KindPayout, id, 3)
	refund := payout.ID(payout.KindRefund, id, 0)
	if got := chargeID(id); got != charge {
		t.Errorf("the charge is %s, want %s", got, charge)
	}
	for _, one := range []struct{ scope, name, path, held string }{
		{"packet", id, "/packets/" + id, "packet"}, {"payment", paid, "/payouts/" + paid, "payment"},
		{"payment", refund, "/refunds/" + refund, "payment"}, {"payment", charge, "/charges/" + charge, "charge"},
		{"provider", "sandbox", "", "provider"}, {"all", "", "", "all"}, {"payment", "x", "", "payment"}, {"packet", paid, "", "packet"},
	} {
		h := hold{wire.StaffHold{Scope: one.scope, Name: one.name}}
		if h.Path() != one.path || h.Held() != one.held {
			t.Errorf("%s %s: %q, %q", one.scope, one.name, h.Path(), h.Held())
		}
	}
}

// TestWhoReleases: which role releases which hold, and who only asks for it.
func TestWhoReleases(t *testing.T) {
	for _, scope := range holdScopes {
		for _, role := range access.Roles {
			want := role == access.RoleFinance || role == access.RoleOps && (scope == "all" || scope == "provider")
			if got := (holdPage{Hold: hold{wire.StaffHold{Scope: scope}}}).MayRelease(role); got != want {
				t.Errorf("%s by %s: %v", scope, role, got)
			}
		}
	}
	if (holdPage{Hold: hold{wire.StaffHold{Scope: "provider"}}, SecondPerson: true}).MayRelease(access.RoleOps) {
		t.Error("operations release the balances of apps after a recovery")
	}
	asked := hold{wire.StaffHold{Release: &wire.HoldRelease{By: "li"}}}
	for _, one := range []struct {
		page  holdPage
		owner string
		asks  bool
	}{{holdPage{SecondPerson: true}, "li", true}, {holdPage{SecondPerson: true, Hold: asked}, "li", true},
		{holdPage{SecondPerson: true, Hold: asked}, "wang", false}, {holdPage{}, "li", false}} {
		if got := one.page.Asks(one.owner); got != one.asks {
			t.Errorf("%+v by %s: %v", one.page, one.owner, got)
		}
	}
	const waits = "done.release_waiting"
	if key, tone := (holdPage{Hold: asked}).outcome(waits, "good"); key != waits || tone != "warn" {
		t.Errorf("a waiting release: %q, %q", key, tone)
	}
	if key, _ := (holdPage{}).outcome(waits, "good"); key != "" {
		t.Errorf("no release waits, and the page has %q", key)
	}
}
