package bench

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/internal/store"
	"hongbao/workflows"
)

// serveLocal serves on a port of its own until the test ends, and returns the URL.
func serveLocal(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: h}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// beWechat runs the simulator of WeChat Pay, whose recipients confirm at once, and counts the calls to
// its API. "moved PREFIX" returns the number of recipients with that prefix who got their money.
func beWechat(t *testing.T, cfg childSettings) (string, func(string) string) {
	settings := cfg.Merchant.Config()
	settings.ConfirmAfter = time.Millisecond
	sim := simulator.New(t.Context(), settings)
	t.Cleanup(sim.Close)
	var calls atomic.Int64
	url := serveLocal(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v3/") {
			calls.Add(1)
		}
		sim.ServeHTTP(w, r)
	})
	return url, func(command string) string {
		prefix, ok := strings.CutPrefix(command, "moved ")
		if !ok {
			return strconv.FormatInt(calls.Load(), 10)
		}
		moved := 0
		for _, s := range sim.Transfers() {
			if strings.HasPrefix(s.OpenID, prefix) {
				moved += s.Moved
			}
		}
		return strconv.Itoa(moved)
	}
}

// addWechat starts the simulator. Packets whose payouts it makes need a worker of the settings that follow.
func (r *rig) addWechat(t *testing.T) {
	t.Helper()
	m, err := simulator.NewMerchant()
	if err != nil {
		t.Fatal(err)
	}
	r.merchant = &m
	r.wechat = spawn(t, childSettings{Role: "wechat", Merchant: &m})
}

// newWechat returns the adapter to the simulator. Its notifications are taken as the API does.
func newWechat(t *testing.T, cfg childSettings, db *store.Store) *wechat.Adapter {
	t.Helper()
	var a *wechat.Adapter
	hook := serveLocal(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var event, order string
		if err == nil {
			event, order, err = a.VerifyNotification(req.Header, body)
		}
		if err == nil {
			err = db.RecordNotification(req.Context(), a.Adapter(), event, order, body)
		}
		w.WriteHeader(a.AnswerNotification(err).Status)
	})
	m := cfg.Merchant
	a, err := wechat.New(wechat.Config{BaseURL: cfg.Wechat, MerchantID: m.ID, PayoutAppID: m.AppID, APIv3Key: m.APIv3Key,
		MerchantKey: simulator.PrivatePEM(m.Private), MerchantSerial: m.Serial, PublicKeyID: m.Public.ID, PublicKey: m.Public.PublicPEM(),
		Scene: "1000", ReportInfos: []wechat.ReportInfo{{Type: "活动名称", Content: "新年"}, {Type: "奖励说明", Content: "红包"}},
		NotifyBase: hook, Timeout: workflows.ProviderTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// newProviders returns the sandbox, and WeChat Pay where the settings have it.
func newProviders(t *testing.T, cfg childSettings, db *store.Store) *payout.Registry {
	t.Helper()
	pay := newProvider(t, cfg.Provider)
	if cfg.Wechat == "" {
		return payout.OnlyProvider(pay)
	}
	all, err := payout.NewRegistry(pay.Name(), pay.Name(), pay, newWechat(t, cfg, db))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// transfers are the payouts of WeChat Pay to accounts of that prefix.
func (r *rig) transfers(tb testing.TB, prefix string) (some []movement) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, r.wechat.address+"/_transfers", nil)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var all []simulator.TransferState
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		tb.Fatal(err)
	}
	for _, s := range all {
		for range s.Moved {
			if strings.HasPrefix(s.OpenID, prefix) {
				some = append(some, movement{Op: "transfer", OrderNo: s.OutBillNo, Account: s.OpenID, Amount: money.Fen(s.Amount)})
			}
		}
	}
	return some
}
