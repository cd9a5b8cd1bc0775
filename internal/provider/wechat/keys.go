package wechat

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/validators"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/cipher"
	"github.com/wechatpay-apiv3/wechatpay-go/core/cipher/encryptors"
	"github.com/wechatpay-apiv3/wechatpay-go/core/downloader"
	"github.com/wechatpay-apiv3/wechatpay-go/core/option"
)

const (
	// certificatesAge is the age at which the platform certificates are downloaded again.
	certificatesAge = 12 * time.Hour
	// certificatesPause separates two downloads for a serial number that is not known: anybody can name one.
	certificatesPause = time.Minute
	// firstPause separates two downloads while there is no certificate at all.
	firstPause = time.Second
)

var errNoCertificate = errors.New("no platform certificate")

// certificates are the platform certificates, downloaded when they are needed. One that WeChat Pay
// no longer lists is kept until it expires: during a change either signs.
type certificates struct {
	download func(ctx context.Context) (map[string]*x509.Certificate, error)
	now      func() time.Time

	mu    sync.Mutex
	known map[string]*x509.Certificate
	tried time.Time
	read  time.Time
}

// newCertificates returns the certificates of an account. The downloader of the vendor always asks
// the production host; toBase redirects it to the configured one.
func newCertificates(c Config, signer auth.Signer, client *http.Client) *certificates {
	base, _ := url.Parse(c.BaseURL) // checked
	redirected := *client
	redirected.Timeout = c.Timeout
	redirected.Transport = toBase{base: base, next: client.Transport}
	return &certificates{now: time.Now, download: func(ctx context.Context) (map[string]*x509.Certificate, error) {
		// Each download starts without a certificate: what it brings is authenticated by the APIv3 key.
		api, err := core.NewClient(ctx, option.WithSigner(signer), option.WithoutValidator(), option.WithHTTPClient(&redirected))
		if err != nil {
			return nil, err
		}
		d, err := downloader.NewCertificateDownloaderWithClient(ctx, api, c.APIv3Key)
		if err != nil {
			return nil, err
		}
		return d.GetAll(ctx), nil
	}}
}

// toBase sends requests to another host.
type toBase struct {
	base *url.URL
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t toBase) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = t.base.Scheme, t.base.Host, t.base.Host
	return t.next.RoundTrip(r)
}

// refresh downloads the certificates unless they are fresh. With force a download is due for a
// serial number that is not known.
func (c *certificates) refresh(ctx context.Context, force bool) error {
	now, pause := c.now(), certificatesPause
	if len(c.known) == 0 {
		pause = firstPause
	}
	if now.Sub(c.read) < certificatesAge && !force || now.Sub(c.tried) < pause {
		return nil
	}
	got, err := c.download(ctx)
	c.tried = c.now() // those who waited for this download do not repeat it
	if err != nil {
		return fmt.Errorf("download platform certificates: %w", err)
	}
	for serial, cert := range c.known {
		if _, listed := got[serial]; !listed && now.Before(cert.NotAfter) {
			got[serial] = cert
		}
	}
	c.known, c.read = got, now
	return nil
}

// valid returns the certificates that have not expired.
func (c *certificates) valid() map[string]*x509.Certificate {
	out := maps.Clone(c.known)
	maps.DeleteFunc(out, func(_ string, cert *x509.Certificate) bool { return !c.now().Before(cert.NotAfter) })
	return out
}

// Get returns the certificate with a serial number.
func (c *certificates) Get(ctx context.Context, serial string) (*x509.Certificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.known[serial]
	err := c.refresh(ctx, !known)
	cert, ok := c.valid()[serial]
	return cert, ok && (err == nil || known)
}

// GetAll returns the certificates that are known and valid.
func (c *certificates) GetAll(context.Context) map[string]*x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.valid()
}

// GetNewestSerial returns the serial number of the newest certificate; "" when there is none.
func (c *certificates) GetNewestSerial(ctx context.Context) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refresh(ctx, len(c.known) == 0) != nil && len(c.known) == 0 {
		return ""
	}
	return core.NewCertificateMap(c.valid()).GetNewestSerial(ctx)
}

// keys are what verifies answers and encrypts names.
type keys struct {
	verifier  auth.Verifier
	encryptor cipher.Encryptor
	answers   auth.Validator
	notices   *validators.WechatPayNotifyValidator
	publicID  string
	platform  *certificates // nil: public key only
}

// newKeys chooses the public key, platform certificates, or both.
func newKeys(c Config, signer auth.Signer, client *http.Client) (*keys, error) {
	_, public, err := c.keys()
	if err != nil {
		return nil, err
	}
	k := &keys{publicID: c.PublicKeyID}
	if public == nil || c.PlatformCertificates {
		k.platform = newCertificates(c, signer, client)
	}
	switch {
	case public == nil:
		k.verifier, k.encryptor = verifiers.NewSHA256WithRSAVerifier(k.platform), encryptors.NewWechatPayEncryptor(k.platform)
	case k.platform == nil:
		k.verifier = verifiers.NewSHA256WithRSAPubkeyVerifier(c.PublicKeyID, *public)
	default:
		k.verifier = verifiers.NewSHA256WithRSACombinedVerifier(k.platform, c.PublicKeyID, *public)
	}
	if public != nil {
		k.encryptor = encryptors.NewWechatPayPubKeyEncryptor(c.PublicKeyID, *public)
	}
	k.answers = validators.NewWechatPayResponseValidator(k.verifier)
	k.notices = validators.NewWechatPayNotifyValidator(k.verifier)
	return k, nil
}

// current is the key with which WeChat Pay shall sign its answer.
func (k *keys) current(ctx context.Context) (string, error) {
	serial, err := k.verifier.GetSerial(ctx)
	if err == nil && serial == "" {
		err = errNoCertificate
	}
	return serial, err
}

// has reports whether a key that encrypted a stored request is still in use.
func (k *keys) has(ctx context.Context, serial string) bool {
	if serial == k.publicID {
		return true
	}
	if k.platform == nil {
		return false
	}
	_, ok := k.platform.Get(ctx, serial)
	return ok
}

// encrypt encrypts a text with the newest key and returns that key's id.
func (k *keys) encrypt(ctx context.Context, text string) (serial, sealed string, err error) {
	if serial, err = k.encryptor.SelectCertificate(ctx); err != nil {
		return "", "", fmt.Errorf("choose an encryption key: %w", err)
	}
	if sealed, err = k.encryptor.Encrypt(ctx, serial, text); err != nil {
		return "", "", fmt.Errorf("encrypt with key %s: %w", serial, err)
	}
	return serial, sealed, nil
}
