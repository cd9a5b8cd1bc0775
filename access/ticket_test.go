package access

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseTicketKey(t *testing.T) {
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
		if key, err := ParseTicketKey(s); err != nil || !key.Equal(public) {
			t.Errorf("%q: %v", s, err)
		}
	}
	secret := text("PRIVATE KEY", private, x509.MarshalPKCS8PrivateKey)
	for what, s := range map[string]string{
		"nothing": "", "a word": "x", "a private key": secret, "both": good + secret, "two": good + good, "another kind of key": text("PUBLIC KEY", &other.PublicKey, x509.MarshalPKIXPublicKey),
		"cut off": good[:60], "another name": strings.ReplaceAll(good, "PUBLIC", "PRIVATE"), "bytes alone": string(public), "long": good + strings.Repeat("\n", MaxTicketPEM),
	} {
		key, err := ParseTicketKey(s)
		if !errors.Is(err, ErrTicketKey) || key != nil {
			t.Errorf("%s: %v, %v", what, key, err)
		}
		if text := fmt.Sprint(err); s != "" && strings.Contains(text, s) && len(s) > 10 {
			t.Errorf("%s: its error repeats it: %s", what, text)
		}
	}
}

// TestTicketKeyIDs: the id follows from the public key, for ever.
func TestTicketKeyIDs(t *testing.T) {
	if id := TicketKeyID(make([]byte, 32)); !ValidKeyID(id) || id != "mzuhvlpymk6x" {
		t.Error(id)
	}
}
