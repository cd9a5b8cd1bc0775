package main

import (
	"fmt"

	"hongbao/internal/money"
	"hongbao/internal/provider/wechat"
)

// kindWechat is the kind of a merchant account at WeChat Pay.
const kindWechat = "wechat"

// wechatMembers are the members of an entry of kind wechat.
type wechatMembers struct {
	MerchantID           string              `json:"mchid"`
	AppIDs               map[string]string   `json:"app_ids"`
	PayoutAppID          string              `json:"payout_app_id"`
	APIv3Key             string              `json:"api_v3_key"`
	APIv3KeyFile         string              `json:"api_v3_key_file"`
	MerchantKeyFile      string              `json:"merchant_key_file"`
	MerchantSerial       string              `json:"merchant_serial"`
	PublicKeyID          string              `json:"public_key_id"`
	PublicKeyFile        string              `json:"public_key_file"`
	PlatformCertificates bool                `json:"platform_certificates"`
	Scene                string              `json:"scene"`
	Perception           string              `json:"perception"`
	ReportInfos          []wechat.ReportInfo `json:"report_infos"`
	Style                string              `json:"style"`
	MaxPayout            money.Fen           `json:"max_payout"`
	RefuseCoupons        bool                `json:"refuse_coupons"`
	RefundAccount        string              `json:"refund_account"`
	Description          string              `json:"description"`
	Remark               string              `json:"remark"`
	NotifyBase           string              `json:"notify_base"`
}

// openWechat opens the adapter to a merchant account at WeChat Pay.
func openWechat(e providerEntry) (adapter, error) {
	var m wechatMembers
	if err := e.decode(&m); err != nil {
		return nil, err
	}
	key, err := e.secretMember("api_v3_key", m.APIv3Key, m.APIv3KeyFile, checkToken)
	if err != nil {
		return nil, err
	}
	pem := func(string) error { return nil } // the adapter reads it
	own, err := e.secretMember("merchant_key", "", m.MerchantKeyFile, pem)
	if err != nil {
		return nil, err
	}
	var theirs Secret
	if m.PublicKeyFile != "" {
		if theirs, err = e.secretMember("public_key", "", m.PublicKeyFile, pem); err != nil {
			return nil, err
		}
	}
	a, err := wechat.New(wechat.Config{Name: e.Name, BaseURL: e.URL, MerchantID: m.MerchantID, AppIDs: m.AppIDs, PayoutAppID: m.PayoutAppID,
		APIv3Key: key.Reveal(), MerchantKey: own.Reveal(), MerchantSerial: m.MerchantSerial, PublicKeyID: m.PublicKeyID,
		PublicKey: theirs.Reveal(), PlatformCertificates: m.PlatformCertificates, Scene: m.Scene, Perception: m.Perception,
		ReportInfos: m.ReportInfos, Style: m.Style, MaxPayout: m.MaxPayout, RefuseCoupons: m.RefuseCoupons,
		RefundAccount: m.RefundAccount, Description: m.Description, Remark: m.Remark, NotifyBase: m.NotifyBase, Timeout: e.timeout})
	if err != nil { // not a nil *Adapter in an interface
		return nil, fmt.Errorf("member: %w", err)
	}
	return a, nil
}
