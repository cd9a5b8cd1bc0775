package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

// TestOpenWechat: an entry of the file of providers opens an adapter that speaks to the service; a wrong
// member is named, without its value.
func TestOpenWechat(t *testing.T) {
	t.Parallel()
	m, err := simulator.NewMerchant()
	if err != nil {
		t.Fatal(err)
	}
	sim := simulator.New(t.Context(), m.Config())
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	entry := func(change func(map[string]any)) providerEntry {
		own := map[string]any{"mchid": m.ID, "app_ids": map[string]string{"wechat_jsapi": m.AppID},
			"api_v3_key_file": file("api.key", m.APIv3Key+"\n"), "merchant_key_file": file("own.pem", simulator.PrivatePEM(m.Private)),
			"merchant_serial": m.Serial, "public_key_id": m.Public.ID, "public_key_file": file("theirs.pem", m.Public.PublicPEM()),
			"scene": "1000", "report_infos": []map[string]string{{"info_type": "活动名称", "info_content": "新年"}},
			"notify_base": "https://pay.example.com"}
		if change != nil {
			change(own)
		}
		raw, err := json.Marshal(own)
		if err != nil {
			t.Fatal(err)
		}
		return providerEntry{Name: "shop", Kind: kindWechat, URL: server.URL, Own: raw}
	}
	a, err := providerKinds[kindWechat](entry(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Name() != "shop" || a.Limits().Adapter.Account != m.ID {
		t.Errorf("opened as %s", a.Limits().Adapter)
	}
	if checked, is := a.(payout.Checked); !is || checked.Check(t.Context()) != nil {
		t.Errorf("it cannot be checked: %v", is)
	}
	d := &doctor{}
	if d.checkFunds(t.Context(), a, server.URL); len(d.findings) != 1 || d.findings[0].Verdict != verdictOK ||
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

func implements[T any](a any) bool {
	_, is := a.(T)
	return is
}
