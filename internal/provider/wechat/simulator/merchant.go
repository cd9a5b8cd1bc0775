package simulator

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
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

// merchantText is a Merchant in JSON. The keys are private ones in PEM.
type merchantText struct{ ID, AppID, APIv3Key, Serial, Private, PublicID, Public string }

// MarshalJSON implements json.Marshaler, for a merchant of several processes.
func (m Merchant) MarshalJSON() ([]byte, error) {
	return json.Marshal(merchantText{m.ID, m.AppID, m.APIv3Key, m.Serial, PrivatePEM(m.Private), m.Public.ID, PrivatePEM(m.Public.Private)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Merchant) UnmarshalJSON(raw []byte) error {
	var text merchantText
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	own, err1 := parsePrivate(text.Private)
	theirs, err2 := parsePrivate(text.Public)
	*m = Merchant{text.ID, text.AppID, text.APIv3Key, text.Serial, own, Key{ID: text.PublicID, Private: theirs}}
	return errors.Join(err1, err2)
}
