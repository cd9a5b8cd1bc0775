package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/devstack"
)

// stack is the local stack under test, as `hongbao dev` runs it, with a proxy in
// every link between its parts.
type stack struct {
	home    string
	log     string
	proc    *devstack.Process // the supervisor; it ends with us
	network *network
	http    *http.Client
	wechat  *wechat // nil: the sandbox pays
}

// startStack starts the stack and waits until it is ready. pays is the provider of its payouts. The
// caller stops the returned stack, also after an error.
func startStack(binary, home, pays string) (*stack, error) {
	s := &stack{home: home, log: filepath.Join(home, "dev.log"),
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	names := []string{"API", "STAFF", "PROVIDER", "REDIS", "MYSQL", "TEMPORAL", "TEMPORAL_UI"}
	ports, err := devstack.FreePorts(len(names) + 1 + len(links) + len(wechatLinks))
	if err != nil {
		return s, err
	}
	env := append(os.Environ(), "HONGBAO_HOME="+home, "HONGBAO_FIRST_PACKET=0", "HONGBAO_NO_INSTALL=1")
	direct := map[string]int{}
	for i, name := range names {
		env = append(env, fmt.Sprintf("HONGBAO_PORT_%s=%d", name, ports[i]))
		direct[strings.ToLower(name)] = ports[i]
	}
	direct["wechat"] = ports[len(names)]
	if s.network, err = newNetwork(direct, ports[len(names)+1:]); err != nil {
		return s, err
	}
	if pays == "wechat" {
		more, err := s.startWechat(direct["wechat"])
		if err != nil {
			return s, err
		}
		env = append(env, more...)
	}
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return s, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(binary, "dev")
	cmd.Dir = filepath.Dir(filepath.Dir(filepath.Dir(binary)))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(env, "HONGBAO_LINKS="+s.network.settings())
	if s.proc, err = devstack.Launch(cmd); err != nil {
		return s, err
	}
	deadline := time.After(2 * time.Minute)
	for {
		if _, err := os.Stat(filepath.Join(home, "dev.env")); err == nil {
			return s, nil
		}
		select {
		case <-s.proc.Done():
			return s, fmt.Errorf("the stack did not start:\n%s", tail(s.log, 30))
		case <-deadline:
			return s, fmt.Errorf("the stack did not get ready:\n%s", tail(s.log, 30))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the stack and waits for that, at most 35 s.
func (s *stack) stop() error {
	if s.network != nil {
		defer s.network.close()
	}
	if s.wechat != nil {
		defer s.wechat.stop()
	}
	if s.proc != nil && !s.proc.Stop(35*time.Second) {
		return errors.New("the stack did not stop within 35 s, and was killed")
	}
	return nil
}

// env reads one variable of dev.env, "" when there is none.
func (s *stack) env(name string) string { return s.envs()[name] }

// envs reads dev.env.
func (s *stack) envs() map[string]string {
	all := map[string]string{}
	b, err := os.ReadFile(filepath.Join(s.home, "dev.env"))
	if err != nil {
		return all
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok {
			all[name] = strings.ReplaceAll(strings.Trim(value, "'"), `'\''`, "'")
		}
	}
	return all
}

// verifies are the product's own checks, as an operator runs them.
var verifies = [][]string{{"ledger", "verify"}, {"audit", "verify"}}

// verify runs the checks; a finding is an error.
func (s *stack) verify(ctx context.Context, binary string) error {
	var faults []error
	for _, args := range verifies {
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Env = os.Environ()
		for name, value := range s.envs() {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			faults = append(faults, fmt.Errorf("hongbao %s: %w\n%s", strings.Join(args, " "), err, out))
		}
	}
	return errors.Join(faults...)
}

// pid returns the process id of a part; 0 while it is down.
func (s *stack) pid(part string) int {
	if part == "wechat" {
		return s.wechat.proc.PID()
	}
	pid, _ := strconv.Atoi(s.env("HONGBAO_PID_" + strings.ToUpper(part)))
	return pid
}

// secret reads a secret of the home that is not in dev.env.
func (s *stack) secret(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.home, "secrets.json"))
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return "", err
	}
	value, _ := all[name].(string)
	return value, nil
}

// provider makes one request to the sandbox itself and decodes its answer.
func (s *stack) provider(ctx context.Context, method, path, key string, body, into any) (status int, err error) {
	return s.call(ctx, method, s.env("HONGBAO_PROVIDER_URL")+path, key, body, into)
}

// call makes one request and decodes its answer.
func (s *stack) call(ctx context.Context, method, url, key string, body, into any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || into == nil || len(answer) == 0 {
		return resp.StatusCode, err
	}
	return resp.StatusCode, json.Unmarshal(answer, into)
}

// setRules replaces the fault rules of a provider, and repeats that until it is answered.
func (s *stack) setRules(ctx context.Context, target string, rules []rule) error {
	if rules == nil {
		rules = []rule{}
	}
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		url := s.env("HONGBAO_PROVIDER_URL")
		if target == "wechat" {
			url = s.wechat.url
		}
		status, err := s.call(once, http.MethodPut, url+"/_faults", "", map[string]any{"rules": rules}, nil)
		cancel()
		switch {
		case err == nil && status == http.StatusNoContent:
			return nil
		case err == nil:
			return fmt.Errorf("%s refuses the rules %+v: %d", target, rules, status)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tail returns the end of a text file.
func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// logTails returns the ends of all logs, without informational lines.
func (s *stack) logTails(lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n%s\n", s.log, tail(s.log, lines))
	for _, part := range parts {
		path := filepath.Join(s.home, "logs", part+".log")
		fmt.Fprintf(&b, "== %s\n%s\n", path, tail(path, lines))
	}
	return b.String()
}
