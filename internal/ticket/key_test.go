package ticket

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, key any, encode func(any) ([]byte, error)) string {
		der, err := encode(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	good := text("PUBLIC KEY", public, x509.MarshalPKIXPublicKey)
	for _, s := range []string{good, "\n" + good + "\n\n", strings.ReplaceAll(good, "\n", "\r\n")} {
		if key, err := ParseKey(s); err != nil || !key.Equal(public) {
			t.Errorf("%q: %v", s, err)
		}
	}
	secret := text("PRIVATE KEY", private, x509.MarshalPKCS8PrivateKey)
	for what, s := range map[string]string{
		"nothing": "", "a word": "x", "a private key": secret, "both": good + secret, "two": good + good,
		"another kind of key": text("PUBLIC KEY", &other.PublicKey, x509.MarshalPKIXPublicKey), "cut off": good[:60],
		"another name": strings.ReplaceAll(good, "PUBLIC", "PRIVATE"), "bytes alone": string(public), "long": good + strings.Repeat("\n", MaxPEM),
	} {
		key, err := ParseKey(s)
		if !errors.Is(err, ErrKey) || key != nil {
			t.Errorf("%s: %v, %v", what, key, err)
		}
		if text := fmt.Sprint(err); s != "" && strings.Contains(text, s) && len(s) > 10 {
			t.Errorf("%s: its error repeats it: %s", what, text)
		}
	}
}

// TestKeysOfSmallOrder: under these keys anybody can sign any ticket, or nobody can.
func TestKeysOfSmallOrder(t *testing.T) {
	signed := 0
	for _, s := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"0200000000000000000000000000000000000000000000000000000000000000", // not a point of the curve
	} {
		public, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(ed25519.PublicKey(public))
		if err != nil {
			t.Fatal(err)
		}
		if key, err := ParseKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))); !errors.Is(err, ErrKey) || key != nil {
			t.Errorf("%s: %v, %v", s, key, err)
		}
		nobodys := append([]byte{1}, make([]byte, 63)...) // R the neutral element, S zero
		if ed25519.Verify(public, []byte("any ticket"), nobodys) {
			signed++
		}
	}
	if signed == 0 {
		t.Error("none of these keys is what it was chosen for")
	}
}
