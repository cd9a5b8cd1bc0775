package devstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
)

// program is one of hongbao's own processes: a command of the binary. It gets its settings in environment variables, and
// inherits the other variables of this process, so that a developer can set HONGBAO_LOG_LEVEL and the like.
type program struct {
	binary  string
	command string
	dir     string // working folder
	env     []variable
	// withhold are the names of variables that it does not inherit.
	withhold []string
	ready    []string // URLs that return 200 when the program is ready

	// healthEnv, unless empty, is the variable for the listen address of a program without a port in Ports. Each start sets
	// it to a new free port; the program is ready when /readyz there returns 200.
	healthEnv string
	mu        sync.Mutex
	health    string // listen address of the current process
}

// Command implements Part.
func (p *program) Command(context.Context) (*exec.Cmd, error) {
	env := p.env
	if p.healthEnv != "" {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.health = hostPort(port)
		p.mu.Unlock()
		env = append(env[:len(env):len(env)], variable{p.healthEnv, hostPort(port)})
	}
	cmd := exec.Command(p.binary, p.command)
	cmd.Dir = p.dir
	cmd.Env = overlay(without(os.Environ(), p.withhold), env...)
	return cmd, nil
}

// healthAddr returns the health address of the current process, or "".
func (p *program) healthAddr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

// errNotReady is a response other than 200.
var errNotReady = errors.New("not ready")

// readyClient opens a new connection for each probe. A kept connection could lead to a process that has ended.
var readyClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Ready implements Part.
func (p *program) Ready(ctx context.Context) error {
	urls := p.ready
	if addr := p.healthAddr(); addr != "" {
		urls = append(urls[:len(urls):len(urls)], "http://"+addr+"/readyz")
	}
	for _, url := range urls {
		if err := probeReady(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

// probeReady returns nil when url returns 200.
func probeReady(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("probe readiness: %w", err)
	}
	response, err := readyClient.Do(request)
	if err != nil {
		return fmt.Errorf("probe readiness: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s returned %s", errNotReady, url, response.Status)
	}
	return nil
}
