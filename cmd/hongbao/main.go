// Command hongbao is the red-packet payout platform: one binary with the API,
// the worker, the sandbox payment provider, the database migrations, apps and
// keys, and the local stack as commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line. exitOf decides its exit code.
func execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := newRoot(environ)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errSilent) && !errors.Is(err, errLeftOver) {
		_, _ = fmt.Fprintf(stderr, "hongbao: %s\n", visibleLines(err.Error()))
	}
	return exitOf(err)
}
