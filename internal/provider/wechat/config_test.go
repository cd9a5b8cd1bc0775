package wechat

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestConfig: a wrong setting is named when the adapter is made, its value is not.
func TestConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	for member, change := range map[string]func(*Config){
		"name":            func(c *Config) { c.Name = "WeChat Pay" },
		"base_url":        func(c *Config) { c.BaseURL = "http://api.mch.weixin.qq.com" },
		"mchid":           func(c *Config) { c.MerchantID = "me" },
		"app_ids":         func(c *Config) { c.AppIDs = map[string]string{"wechat_h5": testApp} },
		"payout_app_id":   func(c *Config) { c.AppIDs = map[string]string{MethodAPP: testApp} },
		"api_v3_key":      func(c *Config) { c.APIv3Key = "short" },
		"merchant_serial": func(c *Config) { c.MerchantSerial = "" },
		"merchant_key": func(c *Config) {
			c.MerchantKey = "-----BEGIN PRIVATE KEY-----\nsecretsecret\n-----END PRIVATE KEY-----"
		},
		"public_key_id":  func(c *Config) { c.PublicKeyID = "5F42AD7C0A1B2C3D" },
		"public_key":     func(c *Config) { c.PublicKey = "secretsecret" },
		"notify_base":    func(c *Config) { c.NotifyBase = "https://example.com/?a=b" },
		"timeout":        func(c *Config) { c.Timeout = -time.Second },
		"max_payout":     func(c *Config) { c.MaxPayout = -1 },
		"style":          func(c *Config) { c.Style = "RED" },
		"scene":          func(c *Config) { c.Scene = strings.Repeat("1", 37) },
		"report_infos":   func(c *Config) { c.ReportInfos = nil },
		"refund_account": func(c *Config) { c.RefundAccount = "MINE" },
		"remark":         func(c *Config) { c.Remark = strings.Repeat("红", 33) },
	} {
		cfg := r.cfg
		change(&cfg)
		_, err := New(cfg)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), " "+member+" ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", member, err)
		}
	}
	for content, good := range map[string]bool{"{greeting}": true, "红包 {campaign}：{greeting}": true, "{name}": false, "{greeting": false,
		"{ greeting }": false, "红包}": false} {
		cfg := r.cfg
		cfg.ReportInfos = []ReportInfo{{"活动名称", content}}
		if _, err := New(cfg); (err == nil) != good || err != nil && !strings.Contains(err.Error(), " report_infos ") {
			t.Errorf("%q: %v", content, err)
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "config", r.cfg)
	text := log.String() + fmt.Sprintf("%v %+v", r.cfg, r.cfg)
	if strings.Contains(text, testAPIKey) || strings.Contains(text, "PRIVATE KEY") || !strings.Contains(text, testMerchant) {
		t.Errorf("logged as %s", text)
	}
}
