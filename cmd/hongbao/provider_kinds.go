package main

import (
	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// adapter is what a kind of provider opens: the payment API, and what payout's optional interfaces describe.
type adapter interface {
	payout.Provider
	// Close closes idle connections.
	Close()
}

// providerKinds opens the adapter of each kind. It makes no connection. Its errors name a member of the entry, never a secret.
var providerKinds = map[string]func(providerEntry) (adapter, error){
	kindSandbox: openSandbox,
	kindWechat:  openWechat,
}

// kindSandbox is the kind of the sandbox, and its name where no file configures providers.
const kindSandbox = "sandbox"

// openSandbox opens the adapter to a sandbox.
func openSandbox(e providerEntry) (adapter, error) {
	var own struct {
		Account           string `json:"account"`
		Key               string `json:"key"`
		KeyFile           string `json:"key_file"`
		WebhookSecret     string `json:"webhook_secret"`
		WebhookSecretFile string `json:"webhook_secret_file"`
		RefuseCoupons     bool   `json:"refuse_coupons"`
	}
	if err := e.decode(&own); err != nil {
		return nil, err
	}
	if err := checkMember("account", own.Account, checkAccount); err != nil {
		return nil, err
	}
	key, err := e.secretMember("key", own.Key, own.KeyFile, checkToken)
	if err != nil {
		return nil, err
	}
	signs, err := e.secretMember("webhook_secret", own.WebhookSecret, own.WebhookSecretFile, checkWebhookSecret)
	if err != nil {
		return nil, err
	}
	return provider.NewSandbox(provider.SandboxConfig{Name: e.Name, BaseURL: e.URL, APIKey: key.Reveal(), Account: own.Account,
		WebhookSecret: signs.Reveal(), RefuseCoupons: own.RefuseCoupons, Timeout: e.timeout})
}
