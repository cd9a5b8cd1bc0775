package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/mattn/go-isatty"
)

// output is the standard output of a command. It keeps the first write error, so that a command that ignores it does not
// exit with 0.
type output struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

// Write implements io.Writer. After an error it writes nothing and returns the same error.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err != nil {
		o.err = fmt.Errorf("write the output: %w", err)
	}
	return n, o.err
}

// failed returns the first write error.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// onTerminal reports whether out is a terminal.
func onTerminal(out io.Writer) bool {
	if o, ok := out.(*output); ok {
		out = o.to
	}
	file, ok := out.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
