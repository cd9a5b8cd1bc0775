package pool

import (
	"context"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// hiding keeps our passwords out of errors, and so out of logs: who does not know the
// command that shows them, as a proxy may not, repeats in its refusal what it was sent.
type redactor struct{ Access }

// hide hooks it into a client, of a server or of one that the sentinels name.
func (a Access) addRedactor(c *redis.Client) *redis.Client {
	if a.Password != "" || a.SentinelPassword != "" {
		c.AddHook(redactor{a})
	}
	return c
}

// hidden is an error that tells nothing of what was repeated. What kind it is stays known.
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
	said := err.Error()
	if text := h.redact(said); text != said {
		return &redactedError{text, err}
	}
	return err
}

func (h redactor) redact(said string) string {
	for _, secret := range []string{h.Password, h.SentinelPassword} {
		if secret != "" {
			said = strings.ReplaceAll(said, secret, "[redacted]")
		}
	}
	return said
}

// DialHook implements redis.Hook: sentinels are asked while dialing.
func (h redactor) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := next(ctx, network, addr)
		return cn, h.redactError(err)
	}
}

// ProcessHook implements redis.Hook. A connection shows who it is by one of two commands.
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
