// Package providercheck holds the requirements on a provider that can be checked at any time, also with a real
// account: its checks query, read and refuse, and no money moves. Package providertest has all requirements; it needs a
// provider that can be made to misbehave.
package providercheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "FAILED"
	Skipped Verdict = "skipped" // the provider does not have what is checked, or not yet
)

// Result is the result of one check, and why.
type Result struct {
	Case    string  `json:"case"`
	Verdict Verdict `json:"result"`
	Why     string  `json:"why"`
}

// errSkipped means that the provider does not have what is checked.
var errSkipped = errors.New("the adapter does not have this")

// MaxClockDifference is how far the clocks of the provider and of this machine may differ.
const MaxClockDifference = 10 * time.Second

// target is a provider that is checked.
type target struct {
	payout.Provider
	url string
	now func() time.Time
}

// checks returns the checks in their order. A check returns what it saw, or an error: errSkipped, payout.ErrNotPublished,
// or what is wrong.
func checks() []struct {
	name string
	run  func(context.Context, target) (string, error)
} {
	return []struct {
		name string
		run  func(context.Context, target) (string, error)
	}{
		{"key, account and signatures are accepted", checkAccount},
		{"the clocks agree", checkClock},
		{"an unknown charge was never received", unknownOrder(payout.OpCharge, payout.KindCharge)},
		{"an unknown payout was never received", unknownOrder(payout.OpTransfer, payout.KindPayout)},
		{"an unknown refund was never received", unknownOrder(payout.OpRefund, payout.KindRefund)},
		{"a notification with a bad signature is refused", checkSignature},
		{"the statement of yesterday can be read", checkStatement},
	}
}

// Run checks a provider whose API is at url. now is the clock of this machine.
func Run(ctx context.Context, p payout.Provider, url string, now func() time.Time) []Result {
	var out []Result
	for _, c := range checks() {
		r := Result{Case: c.name, Verdict: Passed}
		saw, err := c.run(ctx, target{p, url, now})
		switch {
		case errors.Is(err, errSkipped), errors.Is(err, payout.ErrNotPublished):
			r.Verdict, r.Why = Skipped, err.Error()
		case err != nil:
			r.Verdict, r.Why = Failed, err.Error()
		default:
			r.Why = saw
		}
		out = append(out, r)
	}
	return out
}

func checkAccount(ctx context.Context, t target) (string, error) {
	p, is := t.Provider.(payout.Checked)
	if !is {
		return "", errSkipped
	}
	return "the provider answers " + t.Limits().Adapter.String(), p.Check(ctx)
}

// checkClock compares the clocks by the header Date of any answer, which has whole seconds.
func checkClock(ctx context.Context, t target) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return "", fmt.Errorf("clock: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("clock: %w", err)
	}
	_ = answer.Body.Close() // the headers are read
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return "", fmt.Errorf("%w: an answer has no header Date", errSkipped)
	}
	ahead := theirs.Sub(t.now().Truncate(time.Second))
	if ahead.Abs() > MaxClockDifference {
		return "", fmt.Errorf("the provider's clock is %v ahead of this machine's: synchronize it", ahead)
	}
	return fmt.Sprintf("the provider's clock is %v ahead, in whole seconds", ahead), nil
}

// unknownOrder queries the order number of a packet that does not exist.
func unknownOrder(op payout.Op, kind payout.Kind) func(context.Context, target) (string, error) {
	return func(ctx context.Context, t target) (string, error) {
		if op != payout.OpTransfer && len(t.Limits().Methods) == 0 {
			return "", fmt.Errorf("%w: it does not charge", errSkipped)
		}
		no := payout.OrderNo(payout.ID(kind, strings.Repeat("0", packet.IDLen), 0), 1)
		o := t.Query(ctx, op, no)
		switch {
		case o.Kind != payout.ObsNeverReceived:
			return "", fmt.Errorf("the answer to a query of %s is %s (%s %s), not %s", no, o.Kind, o.Code, o.Message, payout.ObsNeverReceived)
		case o.Adapter != t.Limits().Adapter || o.OrderNo != no || o.Source != payout.SourceQuery:
			return "", fmt.Errorf("the answer to a query of %s is about %q of %s, from %s", no, o.OrderNo, o.Adapter, o.Source)
		}
		return no, nil
	}
}

func checkSignature(_ context.Context, t target) (string, error) {
	p, is := t.Provider.(payout.Notified)
	if !is {
		return "", errSkipped
	}
	now := fmt.Sprint(t.now().Unix())
	forged := http.Header{}
	for _, name := range []string{"Webhook-Id", "Wechatpay-Nonce", "Wechatpay-Serial"} {
		forged.Set(name, "forged")
	}
	for _, name := range []string{"Webhook-Timestamp", "Wechatpay-Timestamp"} {
		forged.Set(name, now)
	}
	forged.Set("Webhook-Signature", "v1,Zm9yZ2Vk")
	forged.Set("Wechatpay-Signature", "Zm9yZ2Vk")
	for name, header := range map[string]http.Header{"without a signature": {}, "with a forged signature": forged} {
		event, orderNo, err := p.VerifyNotification(header, []byte(`{"id":"forged","order_no":"forged"}`))
		if err == nil || errors.Is(err, payout.ErrUnknownNotification) || event != "" || orderNo != "" {
			return "", fmt.Errorf("a notification %s is accepted: event %q, order %q", name, event, orderNo)
		}
	}
	return "without a signature, and with a forged one", nil
}

func checkStatement(ctx context.Context, t target) (string, error) {
	p, is := t.Provider.(payout.Stated)
	if !is {
		return "", errSkipped
	}
	day := payout.DayOf(t.now(), p.Zone()).Add(-1)
	page, err := p.Statement(ctx, day, "")
	if err != nil {
		return "", err
	}
	more := ""
	if page.Next != "" {
		more = " on the first page"
	}
	return fmt.Sprintf("%s has %d lines%s", day, len(page.Lines), more), nil
}
