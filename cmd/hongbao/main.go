// Command hongbao is the red-packet payout platform: one binary with the API,
// the worker, the sandbox payment provider, the database migrations, apps and
// keys, and the local stack as commands.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hongbao/internal/visible"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line and returns its exit code, which is never 0 when the output could not be written.
func execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	environ, err := withEnvFile(args, environ)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "hongbao: %s\n", visible.Lines(err.Error()))
		return exitOf(err)
	}
	return run(ctx, newRoot(environ), args, stdout, stderr)
}

// run runs one command line of the command tree root.
func run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	out := &output{to: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errReported) && !errors.Is(err, errSharesLeft) {
		_, _ = fmt.Fprintf(stderr, "hongbao: %s\n", visible.Lines(err.Error()))
		if do := mysqlAdvice(err); do != "" {
			_, _ = fmt.Fprintln(stderr, do)
		}
	}
	unwritten := out.failed()
	if unwritten != nil && !errors.Is(err, unwritten) {
		_, _ = fmt.Fprintf(stderr, "hongbao: %s: the output is incomplete; the command's effects remain\n", visible.Lines(unwritten.Error()))
	}
	return cmp.Or(exitOf(err), exitOf(unwritten))
}
