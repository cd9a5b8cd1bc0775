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

// program is one of hongbao's own processes: the binary with a sub-command. Its
// settings come in environment variables, on top of our own environment, so that
// a person can tune it with HONGBAO_LOG_LEVEL and the like.
type program struct {
	binary  string
	command string
	dir     string // working folder
	env     []variable
	// withhold are the names of variables of our environment that it does not get.
	withhold []string
	ready    []string // URLs that answer 200 when the program is ready

	// healthEnv, when set, is a variable that gets a newly found free address at
	// each start; /readyz there counts as ready. It is for a program without a
	// port of its own.
	healthEnv string
	mu        sync.Mutex
	health    string // address of the current process
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

// healthAddr is the health address of the current process, or "".
func (p *program) healthAddr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

// errNotReady is an answer other than 200.
var errNotReady = errors.New("not ready")

// readyClient opens a connection for each question: one that is kept would
// outlive the process it leads to.
var readyClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Ready implements Part.
func (p *program) Ready(ctx context.Context) error {
	urls := p.ready
	if addr := p.healthAddr(); addr != "" {
		urls = append(urls[:len(urls):len(urls)], "http://"+addr+"/readyz")
	}
	for _, url := range urls {
		if err := askReady(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

func askReady(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	response, err := readyClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers %s", errNotReady, url, response.Status)
	}
	return nil
}
