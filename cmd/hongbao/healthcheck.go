package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout bounds the whole question: the probes behind /readyz take at
// most one second, and whoever runs health checks wants an answer, not a hang.
const healthTimeout = 3 * time.Second

// maxHealthBody is how much of a bad answer is shown, in bytes.
const maxHealthBody = 1000

func newHealthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck <url>",
		Short: "Ask an address such as /readyz whether all is well",
		Long: fmt.Sprintf(`Ask a URL and exit with 0 when it answers 2xx within %v, with 1 otherwise. It is
what a container's health check runs: the image has neither shell nor curl. A
redirect is not followed, a proxy of the environment is not used.`, healthTimeout),
		Example: "  hongbao healthcheck http://127.0.0.1:8080/readyz",
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := argument(kindURL, args[0]); err != nil {
				return err
			}
			return checkHealth(cmd.Context(), args[0])
		},
	}
}

var errUnhealthy = errors.New("not healthy")

// checkHealth returns nil when url answers 2xx in time. An answer that is not
// well is an errUnhealthy that holds its beginning.
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
