package console

import (
	"strings"
	"testing"
	"unicode"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func paymentReleases(status payout.Status, user string) string {
	return payout.PaymentReleases(payout.Payment{ID: "p", Kind: payout.KindPayout, Status: status, UserID: user, Amount: 100}).What
}

// TestReleasesAreTranslated: every text of the platform about what a release lets go is shown in the
// language of the page; another text is shown unchanged.
func TestReleasesAreTranslated(t *testing.T) {
	balances := payout.Balances{ByAccount: map[payout.Account]money.Fen{payout.AccountOwed: 200, payout.AccountRefunding: 300,
		payout.AccountHolding: 400}}
	texts := []string{payout.PacketReleases(balances, 1_234_500).What, payout.PacketReleases(payout.Balances{}, 0).What}
	texts = append(texts, written(`Releases\{What: "([^"]+)"`, "../internal/store/hold.go")...)
	for _, status := range payout.Statuses {
		texts = append(texts, paymentReleases(status, "7"))
	}
	for _, text := range texts {
		if got := translateReleases(chinese, text); strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
			t.Errorf("%q is %q in Chinese", text, got)
		}
		if got := translateReleases(english, text); strings.ContainsFunc(got, isHan) || got == "" {
			t.Errorf("%q is %q in English", text, got)
		}
	}
	if got := translateReleases(english, texts[0]); got != "¥12,345.00 is charged to the sender; ¥2.00 is paid to winners; "+
		"¥3.00 is refunded to the sender; ¥4.00 goes to winners or back to the sender" {
		t.Error(got)
	}
	if got := translateReleases(chinese, paymentReleases(payout.StatusFailed, "bob; x")); got != "用户 bob; x，目前状态：失败" {
		t.Error(got)
	}
	for _, text := range []string{"", "1.00 is given to charity", "1.00 is paid to winners; and more"} {
		if got := translateReleases(chinese, text); got != text {
			t.Errorf("%q became %q", text, got)
		}
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
		{"payment", refund, "/refunds/" + refund, "payment"}, {"payment", charge, "/packets/" + id, "charge"},
		{"provider", "sandbox", "", "provider"}, {"all", "", "", "all"}, {"payment", "x", "", "payment"}, {"packet", paid, "", "packet"},
	} {
		h := hold{client.Hold{Scope: one.scope, Name: one.name}}
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
			if got := (holdPage{Hold: hold{client.Hold{Scope: scope}}}).MayRelease(role); got != want {
				t.Errorf("%s by %s: %v", scope, role, got)
			}
		}
	}
	asked := hold{client.Hold{Release: &client.HoldRelease{By: "li"}}}
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
