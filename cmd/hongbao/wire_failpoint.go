package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"

	"hongbao/internal/failpoint"
)

// armFailpoints lets a test kill this process at the steps that package failpoint lists. Without a folder it does nothing. Its
// errors wrap failpoint.ErrFolder.
func armFailpoints(ctx context.Context, folder string, logger *slog.Logger) error {
	if folder == "" {
		return nil
	}
	if err := failpoint.Arm(folder); err != nil {
		return err
	}
	logger.WarnContext(ctx, "Failpoints are enabled: a test may kill this process.", slog.String("folder", folder))
	return nil
}

// errFailpointProvider refuses failpoints together with a provider that may move real money.
var errFailpointProvider = fmt.Errorf("%w: HONGBAO_CRASH_POINTS (--crash-points) lets tests kill this process and needs a provider on "+
	"this machine: unset it", errContradiction)

// isLoopbackURL reports whether a URL leads to a loopback address.
func isLoopbackURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}
