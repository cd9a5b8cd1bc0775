// Package sandbox is a payment provider for development and tests: a real HTTP server with a
// database of its own, idempotent by order number, with signed notifications, accounts that
// misbehave and injectable faults. It imports nothing of the rest of hongbao, as a real provider
// would not.
//
// Three rules hold under every fault. There is at most one movement of op charge, transfer or
// refund per order number, ever (paid_twice apart). The account decides whether money moves; a fault
// rule only spoils the answer (decline, low_balance and those of a paying sender apart). Everything answered, and every movement, is
// on disk before the answer leaves and survives kill -9.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Defaults of Config.
const (
	// DefaultHoldTimeout is how long a timeout fault keeps the caller waiting.
	DefaultHoldTimeout = 30 * time.Second
	// DefaultPendingAfter is when a pending order becomes final.
	DefaultPendingAfter = 2 * time.Second
	// DefaultReturnAfter is when the money of a ~returned account is returned.
	DefaultReturnAfter = 2 * time.Second
	// DefaultAccount is the default merchant account.
	DefaultAccount = "sandbox"
	// DefaultConfirmWithin is how long a ~confirm order waits for its recipient.
	DefaultConfirmWithin = 24 * time.Hour
)

// Config is the configuration of a Server. Zero durations take the defaults above.
type Config struct {
	// Listen is the TCP address, such as "127.0.0.1:8090". Ignored when Listener is set.
	Listen string
	// Listener, if set, is served instead; the Server closes it.
	Listener net.Listener
	// DBPath is the database file. It is made with mode 0600 when missing; its folder must exist.
	DBPath string
	// APIKey is the bearer key of the /v1 endpoints. Required.
	APIKey string
	// Account is the merchant account of the key: a request for another one is refused like a wrong
	// key. Default DefaultAccount.
	Account string
	// WebhookURL receives the notifications. Empty: none are sent.
	WebhookURL string
	// WebhookSecret signs them: "whsec_" and the base64 of the key. Required with WebhookURL.
	WebhookSecret string
	// Logger, default slog.Default(). Keys, secrets and accounts are never logged.
	Logger *slog.Logger

	HoldTimeout   time.Duration
	PendingAfter  time.Duration
	ReturnAfter   time.Duration
	ConfirmWithin time.Duration
	// RetryPauses are the pauses between tries of one notification; the last one repeats until the
	// notification is 24 h old. Default 1s 2s 5s 10s 30s 1m 5m.
	RetryPauses []time.Duration
}

var defaultRetryPauses = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 5 * time.Minute}

// ErrConfig is wrapped by every error about a setting that is missing or wrong.
var ErrConfig = errors.New("sandbox configuration")

// withDefaults returns the configuration with every default filled in, or an
// error wrapping ErrConfig that names the setting, never its value.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.DBPath == "":
		return c, fmt.Errorf("%w: DBPath is required", ErrConfig)
	case c.APIKey == "":
		return c, fmt.Errorf("%w: APIKey is required", ErrConfig)
	case c.Listener == nil && c.Listen == "":
		return c, fmt.Errorf("%w: Listen or Listener is required", ErrConfig)
	case c.WebhookURL != "" && c.WebhookSecret == "":
		return c, fmt.Errorf("%w: WebhookSecret is required with WebhookURL", ErrConfig)
	}
	if c.WebhookSecret != "" {
		if _, err := standardwebhooks.NewWebhook(c.WebhookSecret); err != nil {
			// The cause may quote the secret.
			return c, fmt.Errorf("%w: WebhookSecret is not whsec_ and base64", ErrConfig)
		}
	}
	for name, d := range map[string]*time.Duration{"HoldTimeout": &c.HoldTimeout, "PendingAfter": &c.PendingAfter,
		"ReturnAfter": &c.ReturnAfter, "ConfirmWithin": &c.ConfirmWithin} {
		if *d < 0 {
			return c, fmt.Errorf("%w: %s is negative", ErrConfig, name)
		}
	}
	setDefault(&c.HoldTimeout, DefaultHoldTimeout)
	setDefault(&c.PendingAfter, DefaultPendingAfter)
	setDefault(&c.ReturnAfter, DefaultReturnAfter)
	setDefault(&c.ConfirmWithin, DefaultConfirmWithin)
	c.Account = cmp.Or(c.Account, DefaultAccount)
	if len(c.RetryPauses) == 0 {
		c.RetryPauses = defaultRetryPauses
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
