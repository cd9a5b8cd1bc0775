package simulator

import (
	"crypto/rand"
	"crypto/rsa"
)

// Merchant is an imaginary merchant with keys of its own.
type Merchant struct {
	ID, AppID, APIv3Key, Serial string
	Private                     *rsa.PrivateKey
	Public                      Key // of WeChat Pay
}

// NewMerchant makes a merchant.
func NewMerchant() (Merchant, error) {
	m := Merchant{ID: "1900000109", AppID: "wxd678efh567hg6787", APIv3Key: nonce(16), Serial: "5F42AD7C0A1B2C3D"}
	var err error
	if m.Private, err = rsa.GenerateKey(rand.Reader, keyBits); err == nil {
		m.Public, err = NewPublicKey("PUB_KEY_ID_0119000001092026010100000001")
	}
	return m, err
}

// Config are the settings of a simulator for the merchant.
func (m Merchant) Config() Config {
	return Config{MerchantID: m.ID, AppIDs: []string{m.AppID}, APIv3Key: m.APIv3Key, MerchantKey: &m.Private.PublicKey,
		MerchantSerial: m.Serial,
		Keys:           []Key{m.Public}}
}
