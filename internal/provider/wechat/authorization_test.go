package wechat

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

// TestAuthorization: a recipient agrees once, and is then paid without a tap. An agreement that was not accepted in
// time, or was given up, is followed by another one.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	who := payout.Authorizing{App: "shop", User: "用户" + strings.Repeat("a", 60), Provider: "wechat", Account: payer}
	current := func(ask bool, want payout.AuthorizationStatus) payout.Authorization {
		t.Helper()
		got, err := who.Current(t.Context(), a, ask)
		if err != nil || got.Status != want || (got.Action != nil) != (want == payout.AuthorizationPending) {
			t.Fatalf("%+v, %v; want %s", got, err, want)
		}
		return got
	}
	if got := current(false, payout.AuthorizationNone); got.No != "" {
		t.Errorf("%+v", got)
	}
	first := current(true, payout.AuthorizationPending)
	if p := first.Action.Parameters; len(first.No) != 32 || p["mchId"] != testMerchant || p["appId"] != testApp || p["package"] == "" ||
		!first.Action.ValidUntil.After(time.Now().Add(23*time.Hour)) {
		t.Errorf("%+v", first)
	}
	if again := current(true, payout.AuthorizationPending); again.No != first.No || again.Action.Parameters["package"] == "" {
		t.Errorf("asked again: %+v", again)
	}
	in := paidOut(payer)
	in.Authorization = first.No
	wantKind(t, "not accepted", a.Send(t.Context(), o.order(t, a, in)), payout.ObsDeclined, "PARAM_ERROR")
	if !r.sim.CloseAuthorisation(first.No) {
		t.Fatal("the simulator does not know it")
	}
	if got := current(false, payout.AuthorizationClosed); got.No != first.No || got.Reason != "USER_OVERDUE_UNCONFIRMED" {
		t.Errorf("%+v", got)
	}
	second := current(true, payout.AuthorizationPending)
	if second.No == first.No || !r.sim.Accept(second.Action.Parameters["package"]) {
		t.Fatalf("%+v", second)
	}
	if got := current(true, payout.AuthorizationActive); got.No != second.No {
		t.Errorf("%+v", got)
	}
	in.Authorization = second.No
	wantKind(t, "paid", a.Send(t.Context(), o.order(t, a, in)), payout.ObsSucceeded, "")

	other := payout.Authorizing{App: "shop", User: "u", Provider: "wechat", Account: "o" + simulator.Declined}
	if got, err := other.Current(t.Context(), a, true); !errors.Is(err, payout.ErrAuthorizationRefused) {
		t.Errorf("another app's openid: %+v, %v", got, err)
	}
	r.server.Close()
	if _, err := who.Current(t.Context(), a, true); !errors.Is(err, ErrAnswer) || errors.Is(err, payout.ErrAuthorizationRefused) {
		t.Errorf("no answer: %v", err)
	}
}

// TestAuthorizationPackage: a query need not have what the recipient's client needs; the answer to the request has it.
func TestAuthorizationPackage(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *simulator.Config) { c.PackageOnce = true }, nil)
	a := r.adapter(t, nil)
	who := payout.Authorizing{App: "shop", User: "u", Provider: "wechat", Account: payer}
	got, err := who.Current(t.Context(), a, true)
	if err != nil || got.Action == nil || !r.sim.Accept(got.Action.Parameters["package"]) {
		t.Errorf("%+v, %v", got, err)
	}
}
