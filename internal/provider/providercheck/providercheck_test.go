package providercheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"hongbao/internal/payout"
)

// fake is a provider with an answer to each check.
type fake struct {
	kind    payout.ObservationKind
	err     error // of account and statement
	accepts bool  // any notification
}

var own = payout.Adapter{Provider: "fake", Account: "m1"}

func (fake) Name() string { return "fake" }

func (fake) Limits() payout.Limits {
	return payout.Limits{Adapter: own, Methods: []payout.Method{{Name: "qr"}}}
}

func (fake) EncodeRequest(payout.Instruction) ([]byte, error) { panic("a request is encoded") }

func (fake) Send(context.Context, payout.Order) payout.Observation { panic("an order is sent") }

func (f fake) Query(_ context.Context, _ payout.Op, orderNo string) payout.Observation {
	return payout.Observation{Adapter: own, Source: payout.SourceQuery, OrderNo: orderNo, Kind: f.kind}
}

// all is a fake with everything that is optional.
type all struct{ fake }

func (f all) Check(context.Context) error { return f.err }

func (f all) VerifyNotification(http.Header, []byte) (eventID, orderNo string, err error) {
	if f.accepts {
		return "e", "o", nil
	}
	return "", "", errors.New("not signed")
}

func (all) AnswerNotification(error) *payout.NotificationAnswer { return nil }

func (all) Zone() *time.Location { return time.UTC }

func (f all) Statement(_ context.Context, day payout.Day, _ string) (payout.StatementPage, error) {
	if day != payout.DayOf(time.Now(), time.UTC).Add(-1) {
		return payout.StatementPage{}, errors.New("not yesterday")
	}
	return payout.StatementPage{}, f.err
}

// early is a provider that has not published the statement of yesterday.
type early struct{ all }

func (early) Statement(context.Context, payout.Day, string) (payout.StatementPage, error) {
	return payout.StatementPage{}, fmt.Errorf("no usable answer: %w", payout.ErrNotPublished)
}

// TestRun: each check finds its fault, says why, and moves no money.
func TestRun(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	good := all{fake{kind: payout.ObsNeverReceived}}
	refused := all{fake{kind: payout.ObsNeverReceived, err: errors.New("401")}}
	fresh := early{good}
	const account, clock, charge, pay, refund, signature, statement = 0, 1, 2, 3, 4, 5, 6
	optional := []int{account, signature, statement}
	for name, c := range map[string]struct {
		p               payout.Provider
		off             time.Duration // of this machine's clock
		url             string
		failed, skipped []int
	}{
		"good":               {p: good, url: server.URL},
		"least":              {p: good.fake, url: server.URL, skipped: optional},
		"no answer":          {p: all{fake{kind: payout.ObsNoAnswer}}, url: server.URL, failed: []int{charge, pay, refund}},
		"not published":      {p: fresh, url: server.URL, skipped: []int{statement}},
		"error":              {p: refused, url: server.URL, failed: []int{account, statement}},
		"accepts everything": {p: all{fake{kind: payout.ObsNeverReceived, accepts: true}}, url: server.URL, failed: []int{signature}},
		"clock ahead":        {p: good.fake, url: server.URL, off: time.Minute, failed: []int{clock}, skipped: optional},
		"no server":          {p: good, url: "http://127.0.0.1:1", failed: []int{clock}},
	} {
		for i, r := range Run(t.Context(), c.p, c.url, func() time.Time { return time.Now().Add(c.off) }) {
			want := Passed
			switch {
			case slices.Contains(c.failed, i):
				want = Failed
			case slices.Contains(c.skipped, i):
				want = Skipped
			}
			if r.Verdict != want || r.Why == "" {
				t.Errorf("%s: %+v, want %s", name, r, want)
			}
		}
	}
}
