package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// healthTimeout bounds the whole check. The probes behind /readyz take at most one second.
const healthTimeout = 3 * time.Second

// maxHealthBody is the number of bytes of a bad answer in the error.
const maxHealthBody = 1000

func healthcheckCommand() command {
	return command{
		use:   "healthcheck <url>",
		short: "Check the health of a process by a URL such as /readyz",
		long: fmt.Sprintf(`Request a URL and exit with 0 when it answers 2xx within %v, otherwise with 1. Use it as
the health check of a container: the image has neither shell nor curl. Redirects are not
followed, and proxy variables are ignored.`, healthTimeout),
		example: "  hongbao healthcheck http://127.0.0.1:8080/readyz",
		args:    oneArg,
		run: func(ctx context.Context, t *call) error {
			if err := argument(kindURL, t.args[0]); err != nil {
				return err
			}
			return checkHealth(ctx, t.args[0])
		},
	}
}

var errUnhealthy = errors.New("not healthy")

// checkHealth returns nil when url answers 2xx in time. Another answer is an errUnhealthy with its beginning.
func checkHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealthBody))
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("%w: %s answers %s: %s", errUnhealthy, url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
