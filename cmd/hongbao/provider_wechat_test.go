package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/provider/providercheck"
	"hongbao/internal/provider/wechat/simulator"
)

// serveWechat starts a simulator, of a merchant with the given id if there is one. It returns its URL, the members of an
// entry for it, and a function that writes a file.
func serveWechat(t *testing.T, mchid ...string) (url string, own map[string]any, file func(name, text string) string) {
	t.Helper()
	m, err := simulator.NewMerchant()
	if err != nil {
		t.Fatal(err)
	}
	if len(mchid) > 0 {
		m.ID = mchid[0]
	}
	sim := simulator.New(t.Context(), m.Config())
	server := httptest.NewServer(sim)
	t.Cleanup(func() { server.Close(); sim.Close() })
	dir := t.TempDir()
	file = func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return server.URL, map[string]any{"mchid": m.ID, "app_ids": map[string]string{"wechat_jsapi": m.AppID},
		"api_v3_key_file": file("api.key", m.APIv3Key+"\n"), "merchant_key_file": file("own.pem", simulator.PrivatePEM(m.Private)),
		"merchant_serial": m.Serial, "public_key_id": m.Public.ID, "public_key_file": file("theirs.pem", m.Public.PublicPEM()),
		"scene": "1000", "report_infos": []map[string]string{{"info_type": "活动名称", "info_content": "新年"}},
		"notify_base": "https://pay.example.com"}, file
}

// TestOpenWechat: an entry of the file of providers opens an adapter that speaks to the service; a wrong
// member is named, without its value.
func TestOpenWechat(t *testing.T) {
	t.Parallel()
	url, members, file := serveWechat(t)
	entry := func(change func(map[string]any)) providerEntry {
		own := maps.Clone(members)
		if change != nil {
			change(own)
		}
		raw, err := json.Marshal(own)
		if err != nil {
			t.Fatal(err)
		}
		return providerEntry{Name: "shop", Kind: kindWechat, URL: url, Own: raw}
	}
	a, err := providerKinds[kindWechat](entry(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Name() != "shop" || a.Limits().Adapter.Account != members["mchid"] {
		t.Errorf("opened as %s", a.Limits().Adapter)
	}
	if checked, is := a.(payout.Checked); !is || checked.Check(t.Context()) != nil {
		t.Errorf("it cannot be checked: %v", is)
	}
	d := &doctor{}
	if d.checkFunds(t.Context(), a, url); len(d.findings) != 1 || d.findings[0].Verdict != verdictOK ||
		!strings.Contains(d.findings[0].Says, "Available: OPERATION ¥") {
		t.Errorf("doctor: %+v", d.findings)
	}
	for _, is := range []bool{implements[payout.Notified](a), implements[payout.Stated](a), implements[payout.OrderCloser](a),
		implements[payout.Authorizer](a)} {
		if !is {
			t.Error("a capability is missing")
		}
	}
	for member, value := range map[string]any{"mchid": "secret", "api_v3_key_file": file("short.key", "secret"), "merchant_key_file": "",
		"public_key_file": file("wrong.pem", "secret"), "surprise": "secret", "notify_base": "secret", "max_payout": "secret"} {
		a, err := openWechat(entry(func(own map[string]any) { own[member] = value }))
		name := strings.TrimSuffix(member, "_file")
		if err == nil || a != nil || !strings.Contains(err.Error(), "member") || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", member, err)
		}
	}
}

// TestTwoWechatAccounts: several accounts at WeChat Pay are several providers, each with its keys: what belongs to one is
// unknown to the other, and refused by it.
func TestTwoWechatAccounts(t *testing.T) {
	t.Parallel()
	var entries []map[string]any
	for name, mchid := range map[string]string{"shop": "1900000201", "games": "1900000202"} {
		url, own, _ := serveWechat(t, mchid)
		own["name"], own["kind"], own["url"] = name, kindWechat, url
		entries = append(entries, own)
	}
	raw, err := json.Marshal(map[string]any{"providers": entries})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "providers.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() (*providers, error) {
		c := config{command: cmdRecover, values: map[string]string{"providers-file": file, "charge-provider": "shop", "payout-provider": "games"}}
		return c.openProviders(0)
	}
	both, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range entries {
		a, err := both.Of(own["name"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if a.Limits().Adapter.Account != own["mchid"] {
			t.Errorf("%s is %s", own["name"], a.Limits().Adapter)
		}
		if err := a.(payout.Checked).Check(t.Context()); err != nil {
			t.Errorf("%s: %v", own["name"], err)
		}
	}
	entries[0]["url"] = entries[1]["url"]
	if raw, err = json.Marshal(map[string]any{"providers": entries}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if both, err = open(); err != nil {
		t.Fatal(err)
	}
	a, err := both.Of(entries[0]["name"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.(payout.Checked).Check(t.Context()); err == nil {
		t.Error("the service of the other account takes the keys of this one")
	}
}

// TestProviderTestWechat: a new account passes; its bills of yesterday do not exist yet, which is no failure.
func TestProviderTestWechat(t *testing.T) {
	t.Parallel()
	url, own, file := serveWechat(t)
	own["name"], own["kind"], own["url"] = "shop", kindWechat, url
	raw, err := json.Marshal(map[string]any{"providers": []any{own}})
	if err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	code := execute(t.Context(), []string{"provider", "test", "shop", "--json"},
		[]string{"HONGBAO_PROVIDERS_FILE=" + file("providers.json", string(raw))}, &out, &notes)
	var got struct {
		Passed  bool
		Results []providercheck.Result
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != exitOK || !got.Passed || len(got.Results) != 7 {
		t.Fatalf("%d: %s %s, %v", code, out.String(), notes.String(), err)
	}
	for i, r := range got.Results {
		last := i == len(got.Results)-1
		if last != (r.Verdict == providercheck.Skipped) || last && !strings.Contains(r.Why, "not published") {
			t.Errorf("%+v", r)
		}
	}
}

func implements[T any](a any) bool {
	_, is := a.(T)
	return is
}
