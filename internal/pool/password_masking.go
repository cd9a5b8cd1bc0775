package pool

import (
	"context"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redactor keeps our passwords out of errors and logs: a server or proxy that does not know
// the authentication command repeats its arguments in the error.
type redactor struct{ Access }

// addRedactor adds the redactor to a client.
func (a Access) addRedactor(c *redis.Client) *redis.Client {
	if a.Password != "" || a.SentinelPassword != "" {
		c.AddHook(redactor{a})
	}
	return c
}

// redactedError is an error with a redacted text. errors.Is still finds its kind.
type redactedError struct {
	text string
	err  error
}

func (h *redactedError) Error() string { return h.text }
func (h *redactedError) Unwrap() error { return h.err }

func (h redactor) redactError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redacted := h.redact(text); redacted != text {
		return &redactedError{redacted, err}
	}
	return err
}

func (h redactor) redact(text string) string {
	for _, secret := range []string{h.Password, h.SentinelPassword} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// DialHook implements redis.Hook: dialing queries the sentinels.
func (h redactor) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := next(ctx, network, addr)
		return cn, h.redactError(err)
	}
}

// ProcessHook implements redis.Hook. A connection authenticates with hello or auth.
func (h redactor) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); name == "hello" || name == "auth" {
			err = h.redactError(err)
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (redactor) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
