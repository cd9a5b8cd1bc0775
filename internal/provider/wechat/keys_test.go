package wechat

import (
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

func certificate(t *testing.T, number int64, until time.Time) simulator.Key {
	t.Helper()
	k, err := simulator.NewCertificate(number, until)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestCertificates: platform certificates are downloaded when they are needed; a new one is found by
// its serial number, an old one stays valid until it expires, and an expired one verifies nothing.
func TestCertificates(t *testing.T) {
	t.Parallel()
	old := certificate(t, 0x1111111111, time.Now().Add(time.Hour))
	next := certificate(t, 0x2222222222, time.Now().AddDate(5, 0, 0))
	r := newRig(t, func(c *simulator.Config) { c.Keys = []simulator.Key{old} }, nil)
	r2 := newRig(t, func(c *simulator.Config) { c.Keys = []simulator.Key{next, old} }, nil)
	a, o := r.adapter(t, func(c *Config) { c.PublicKeyID, c.PublicKey = "", "" }), &orders{}
	clock := time.Now()
	a.keys.platform.now = func() time.Time { return clock }

	in := paidOut(payer)
	in.Amount, in.RecipientName = nameFrom, "张三"
	order := o.order(t, a, in)
	wantKind(t, "with the first certificate", a.Send(t.Context(), order), payout.ObsNeedsRecipient, "")

	// The vendor changes its certificate: the first answer names an unknown one.
	body := notice(t, testAPIKey, "TRANSACTION.SUCCESS", `{"mchid":"1900000109","out_trade_no":"c1"}`)
	if _, _, err := a.VerifyNotification(next.Headers(time.Now(), body), body); err == nil {
		t.Error("signed with an unknown certificate, it is taken")
	}
	b := r2.adapter(t, func(c *Config) { c.PublicKeyID, c.PublicKey = "", "" })
	a.keys.platform.download = b.keys.platform.download
	if _, _, err := a.VerifyNotification(next.Headers(time.Now(), body), body); err == nil {
		t.Error("an unknown serial number causes one download after another")
	}
	clock = clock.Add(certificatesPause)
	for what, key := range map[string]simulator.Key{"the new certificate": next, "the old one": old} {
		if _, _, err := a.VerifyNotification(key.Headers(time.Now(), body), body); err != nil {
			t.Errorf("signed with %s: %v", what, err)
		}
	}
	if serial, err := a.keys.current(t.Context()); err != nil || serial != next.ID {
		t.Errorf("encrypts with %s, %v: want %s", serial, err, next.ID)
	}
	clock = clock.Add(2 * time.Hour) // the old one has expired
	if _, _, err := a.VerifyNotification(old.Headers(time.Now(), body), body); err == nil {
		t.Error("signed with an expired certificate, it is taken")
	}
	wantKind(t, "encrypted with an expired certificate", a.Send(t.Context(), order), payout.ObsDeclined, codeKeyRetired)
}

// TestKeyChange: while an account changes from certificates to the public key, both verify.
func TestKeyChange(t *testing.T) {
	t.Parallel()
	cert := certificate(t, 0x3333333333, time.Now().AddDate(5, 0, 0))
	r := newRig(t, func(c *simulator.Config) { c.Keys = []simulator.Key{testKeys().public, cert} }, nil)
	a, o := r.adapter(t, func(c *Config) { c.PlatformCertificates = true }), &orders{}
	wantKind(t, "sent", a.Send(t.Context(), o.order(t, a, paidOut(payer))), payout.ObsNeedsRecipient, "")
	body := notice(t, testAPIKey, "TRANSACTION.SUCCESS", `{"mchid":"1900000109","out_trade_no":"c1"}`)
	for _, key := range []simulator.Key{testKeys().public, cert} {
		if _, _, err := a.VerifyNotification(key.Headers(time.Now(), body), body); err != nil {
			t.Errorf("signed with %s: %v", key.ID, err)
		}
	}
}

// TestWrongKeys: a wrong merchant key is refused by the vendor, a wrong public key by us; neither
// fails a payment.
func TestWrongKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	o := &orders{}
	a := r.adapter(t, func(c *Config) { c.MerchantKey = simulator.PrivatePEM(testKeys().stranger) })
	wantKind(t, "merchant key", a.Send(t.Context(), o.order(t, a, paidOut(payer))), payout.ObsRetryAfter, "SIGN_ERROR")
	if err := a.Check(t.Context()); err == nil {
		t.Error("the check passes with a wrong merchant key")
	}
	a = r.adapter(t, func(c *Config) { c.PublicKey = testKeys().other.PublicPEM() })
	wantKind(t, "public key", a.Send(t.Context(), o.order(t, a, paidOut(payer))), payout.ObsNoAnswer, codeSignature)
	if err := a.Check(t.Context()); err == nil {
		t.Error("the check passes with a wrong public key")
	}
}
