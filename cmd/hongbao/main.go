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

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the command ran and failed
	exitUsage  = 2 // arguments, settings or input are wrong; nothing was done
	exitLeft   = 3 // a watched packet closed with shares left
)

// execute runs one command line and is the only place that decides exit codes.
func execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := newRoot(environ)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errLeftOver) {
		return exitLeft
	}
	if !errors.Is(err, errSilent) {
		_, _ = fmt.Fprintf(stderr, "hongbao: %v\n", err)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// errSilent is an error that has been shown already.
var errSilent = errors.New("shown already")

// errLeftOver: a packet closed with shares left. It is an outcome, not a failure.
var errLeftOver = errors.New("closed with shares left")

// usageError is an error in what the caller gave: arguments or settings.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
