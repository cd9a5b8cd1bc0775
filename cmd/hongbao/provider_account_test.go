package main

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/store"
)

// openedProviders is a sandbox with an account.
func openedProviders(t *testing.T, account string) *providers {
	t.Helper()
	c := config{command: cmdRecover, values: map[string]string{"providers-file": "", "charge-provider": "", "payout-provider": "",
		"provider-url": "http://127.0.0.1:1", "provider-key": "k", "provider-account": account}}
	pays, err := c.openProviders(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pays.Close)
	return pays
}

// TestStartWithAnotherAccount: the payments in MySQL are of one account at the provider. A process with
// another one starts, the provider is held once, and the bound account stays.
func TestStartWithAnotherAccount(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	var log logBuffer
	for _, account := range []string{"1900007291", "1900007292", "1900007292"} {
		db, err := openForProviders(t.Context(), store.Config{DSN: dsn}, openedProviders(t, account), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		state, err := db.ProviderState(t.Context(), kindSandbox)
		if held := state.Hold != nil && state.Hold.Kind == payout.HoldOtherAccount; err != nil || held != (account != "1900007291") {
			t.Errorf("%s: %+v, %v", account, state.Hold, err)
		}
		if kept, err := db.ProviderAccount(t.Context(), kindSandbox); err != nil || kept.Account != "1900007291" {
			t.Errorf("%v, %v", kept, err)
		}
		_ = db.Close()
	}
	if !strings.Contains(log.String(), "docs/runbook.md#provider-account") {
		t.Errorf("not logged: %s", log.String())
	}
	db, err := openForProviders(t.Context(), store.Config{DSN: "u:p@tcp(127.0.0.1:1)/x"}, openedProviders(t, "1"),
		slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "The provider account could not be compared") {
		t.Errorf("%v, %s", err, log.String())
	}
	_ = db.Close()
}

// TestProvidersFile: providers of a file, with their defaults, and what is wrong with it by its key.
func TestProvidersFile(t *testing.T) {
	const one, two = `{"name":"a","kind":"sandbox","url":"http://127.0.0.1:1","account":"1","key":"k1","webhook_secret":"` + fileSecret + `"}`,
		`{"name":"b","kind":"sandbox","url":"http://127.0.0.1:2","account":"2","key":"k2","webhook_secret":"` + fileSecret + `","rate":9}`
	open := func(text, charge, payouts string) (*providers, error) {
		name := filepath.Join(t.TempDir(), "providers.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := config{command: cmdRecover, values: map[string]string{"providers-file": name, "charge-provider": charge, "payout-provider": payouts}}
		return c.openProviders(0)
	}
	both := `{"providers":[` + two + `,` + one + `]}`
	p, err := open(both, "a", "b")
	if err != nil || p.Charges().Name() != "a" || p.Payouts().Name() != "b" || p.Payouts().Limits().Adapter.Account != "2" ||
		p.rates()["b"] != 9 {
		t.Errorf("%+v, %v", p, err)
	}
	for says, in := range map[string][3]string{
		"HONGBAO_CHARGE_PROVIDER (--charge-provider) is required": {both, "", "a"},
		`is none of a, b: "c"`:           {both, "a", "c"},
		"unknown member colour":          {`{"providers":[` + strings.Replace(one, `"key"`, `"colour":1,"key"`, 1) + `]}`, "", ""},
		"member rate":                    {`{"providers":[` + strings.Replace(two, "9", "-9", 1) + `]}`, "", ""},
		"unknown member":                 {`{"providers":[` + strings.Replace(two, "9", `{"transfer":9}`, 1) + `]}`, "", ""},
		"wrong type":                     {`{"providers":[` + strings.Replace(two, "9", `"9"`, 1) + `]}`, "", ""},
		"member query of rate":           {`{"providers":[` + strings.Replace(two, "9", `{"query":1}`, 1) + `]}`, "", ""},
		"rate is not from 0 to 1000000":  {`{"providers":[` + strings.Replace(two, "9", `{"refund":-1}`, 1) + `]}`, "", ""},
		"member kind is none of sandbox": {`{"providers":[` + strings.Replace(one, `"kind":"sandbox"`, `"kind":"x"`, 1) + `]}`, "", ""},
		"member key or key_file":         {`{"providers":[` + strings.Replace(one, `"key":"k1",`, "", 1) + `]}`, "", ""},
		"is draining":                    {`{"providers":[` + strings.Replace(one, `"key"`, `"draining":true,"key"`, 1) + `]}`, "", ""},
		"configured twice":               {`{"providers":[` + one + `,` + one + `]}`, "a", "a"},
	} {
		if _, err := open(in[0], in[1], in[2]); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "k1") {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestCallRates: one number limits all sends together and no query; an object limits each kind of call. A part of the
// queries is for routine ones.
func TestCallRates(t *testing.T) {
	type perOp = map[payout.Op]int64
	for text, want := range map[string]struct {
		all int64
		ops perOp
	}{
		`9`:  {9, perOp{payout.OpCharge: 0, payout.OpTransfer: 0, payout.OpRefund: 0}},
		`{}`: {0, perOp{payout.OpCharge: 0, payout.OpTransfer: 0, payout.OpRefund: 0}},
		`{"charge":500,"payout":100,"refund":150,"query":2}`: {0, perOp{payout.OpCharge: 500, payout.OpTransfer: 100, payout.OpRefund: 150,
			activities.OpQuery: 1, activities.OpRoutineQuery: 1}},
		`{"query":100}`: {0, perOp{payout.OpCharge: 0, payout.OpTransfer: 0, payout.OpRefund: 0, activities.OpQuery: 75,
			activities.OpRoutineQuery: 25}},
	} {
		var r callRates
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.check() != nil || r.all != want.all || !maps.Equal(r.perOp(), want.ops) {
			t.Errorf("%s: %+v, %v", text, r.perOp(), err)
		}
	}
}

const fileSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
