package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// ProcessEnv names the variable that makes a test binary a simulator of its own. Its value is a Process
// in JSON.
const ProcessEnv = "WECHAT_SIMULATOR"

// Process are the settings of a simulator in a process of its own. Its state is in memory and ends with
// the process.
type Process struct {
	Listen       string // host:port
	Merchant     Merchant
	PendingAfter time.Duration // as in Config
}

// Env is the entry of the environment that starts the process.
func (p Process) Env() (string, error) {
	text, err := json.Marshal(p)
	return ProcessEnv + "=" + string(text), err
}

// ServeProcess serves the Process in text until in ends. It writes the URL to out once it can be called.
func ServeProcess(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var p Process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read %s: %w", ProcessEnv, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg := p.Merchant.Config()
	cfg.PendingAfter = p.PendingAfter
	listener, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("serve the simulator: %w", err)
	}
	server := &http.Server{Handler: New(ctx, cfg), ReadHeaderTimeout: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, err := fmt.Fprintln(out, "http://"+listener.Addr().String()); err != nil {
		return fmt.Errorf("report the address: %w", err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("wait for the end of the input: %w", err)
	}
	_ = server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the simulator: %w", err)
	}
	return nil
}
