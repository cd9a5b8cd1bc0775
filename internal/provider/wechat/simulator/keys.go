package simulator

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the vendor's OAEP
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Probe begins the signatures that WeChat Pay sends to find out who verifies them.
const Probe = "WECHATPAY/SIGNTEST/"

const keyBits = 2048

// Key is a key of WeChat Pay: a public key, or a platform certificate.
type Key struct {
	ID      string // PUB_KEY_ID_..., or the serial number of the certificate
	Private *rsa.PrivateKey
	// Certificate is the certificate in PEM; "" of a public key.
	Certificate string
}

// NewPublicKey makes a key for the public-key mode.
func NewPublicKey(id string) (Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	return Key{ID: id, Private: private}, err
}

// NewCertificate makes a platform certificate that is valid until a time.
func NewCertificate(number int64, until time.Time) (Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return Key{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "Tenpay.com Root CA"},
		NotBefore: until.AddDate(-5, 0, 0), NotAfter: until}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	return Key{ID: fmt.Sprintf("%X", number), Private: private,
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))}, err
}

// PublicPEM is the public half in PEM.
func (k Key) PublicPEM() string {
	raw, err := x509.MarshalPKIXPublicKey(&k.Private.PublicKey)
	if err != nil {
		panic(err) // RSA keys can always be encoded
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw}))
}

// PrivatePEM is a private key in PEM (PKCS #8).
func PrivatePEM(key *rsa.PrivateKey) string {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // RSA keys can always be encoded
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// parsePrivate reads what PrivatePEM has written.
func parsePrivate(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("parse a private key: no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse a private key: %w", err)
	}
	own, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parse a private key: %T is none of RSA", key)
	}
	return own, nil
}

func sign(key *rsa.PrivateKey, text string) string {
	sum := sha256.Sum256([]byte(text))
	raw, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // the key has 2048 bits
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Headers are the headers that sign a body at a time.
func (k Key) Headers(at time.Time, body []byte) http.Header {
	nonce, second := nonce(16), strconv.FormatInt(at.Unix(), 10)
	return http.Header{"Wechatpay-Timestamp": {second}, "Wechatpay-Nonce": {nonce}, "Wechatpay-Serial": {k.ID},
		"Wechatpay-Signature-Type": {"WECHATPAY2-SHA256-RSA2048"},
		"Wechatpay-Signature":      {sign(k.Private, second+"\n"+nonce+"\n"+string(body)+"\n")}}
}

func nonce(bytes int) string {
	raw := make([]byte, bytes)
	rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

var authorization = regexp.MustCompile(`^WECHATPAY2-SHA256-RSA2048 (.*)$`)

// authenticate verifies the Authorization header.
func (s *Server) authenticate(r *http.Request, body []byte) error {
	m := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return errors.New("Http头缺少Authorization")
	}
	p := map[string]string{}
	for _, part := range strings.Split(m[1], ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || len(value) < 2 {
			return errors.New("Authorization格式错误")
		}
		p[name] = strings.Trim(value, `"`)
	}
	at, err := strconv.ParseInt(p["timestamp"], 10, 64)
	switch {
	case err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute:
		return errors.New("时间戳过期")
	case p["mchid"] != s.cfg.MerchantID || p["serial_no"] != s.cfg.MerchantSerial || p["nonce_str"] == "":
		return errors.New("商户号或证书序列号错误")
	}
	raw, err := base64.StdEncoding.DecodeString(p["signature"])
	text := r.Method + "\n" + r.URL.RequestURI() + "\n" + p["timestamp"] + "\n" + p["nonce_str"] + "\n" + string(body) + "\n"
	sum := sha256.Sum256([]byte(text))
	if err != nil || rsa.VerifyPKCS1v15(s.cfg.MerchantKey, crypto.SHA256, sum[:], raw) != nil {
		return errors.New("签名错误")
	}
	return nil
}

// decrypt decrypts a member that was encrypted for a key.
func decrypt(k Key, sealed string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return "", err
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), rand.Reader, k.Private, raw, nil)
	return string(plain), err
}

// seal encrypts a resource with the APIv3 key.
func (s *Server) seal(plain []byte, associated string) map[string]string {
	block, err := aes.NewCipher([]byte(s.cfg.APIv3Key))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has GCM
	}
	text := nonce(6)
	return map[string]string{"algorithm": "AEAD_AES_256_GCM", "nonce": text, "associated_data": associated,
		"ciphertext": base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte(text), plain, []byte(associated)))}
}

// certificates lists the platform certificates, encrypted.
func (s *Server) certificates(call) reply {
	data := []any{}
	for _, k := range s.cfg.Keys {
		if k.Certificate == "" {
			continue
		}
		data = append(data, map[string]any{"serial_no": k.ID, "effective_time": stamp(time.Now().AddDate(-1, 0, 0)),
			"expire_time": stamp(time.Now().AddDate(4, 0, 0)), "encrypt_certificate": s.seal([]byte(k.Certificate), "certificate")})
	}
	return reply{status: http.StatusOK, value: map[string]any{"data": data}}
}

// echo returns a plain and an encrypted message.
func (s *Server) echo(c call) reply {
	var in struct {
		Message string `json:"echo_message"`
		Sealed  string `json:"encrypted_echo_message"`
	}
	if _, ok := decode(c.body, &in); !ok || in.Message == "" {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "echo_message 不能为空")
	}
	if in.Sealed != "" {
		if _, err := decrypt(c.key, in.Sealed); err != nil {
			return refusal(http.StatusBadRequest, "PARAM_ERROR", "解密失败")
		}
	}
	return reply{status: http.StatusOK, value: map[string]string{"echo_message": in.Message}}
}
