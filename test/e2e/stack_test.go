package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
	"hongbao/wire"
)

// stack is one running local stack.
type stack struct {
	home string
	cmd  *exec.Cmd
	log  string
	http *http.Client
	app  *client.Client // of HONGBAO_APP_KEY

	watch *watch
}

var running *stack

// patience repeats while a killed process restarts; a context bounds each call.
var patience = client.Retry{Tries: 1000, MinPause: 20 * time.Millisecond, MaxPause: 100 * time.Millisecond, TryTimeout: 10 * time.Second}

func TestMain(m *testing.M) {
	code := 1
	if err := startShared(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	} else {
		code = m.Run()
		if err := running.plant(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: plant what is looked for:", err)
			code = 1
		}
	}
	if running != nil {
		if err := running.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: stop:", err)
			code = 1
		}
		if code == 0 {
			_ = os.RemoveAll(running.home)
		} else {
			fmt.Fprintln(os.Stderr, "e2e: state and logs are kept in", running.home)
		}
	}
	os.Exit(code)
}

func startShared() error {
	home, err := stacktest.MkdirTemp("hongbao-e2e-")
	if err != nil {
		return err
	}
	s, err := start(home)
	running = s
	return err
}

// start runs `hongbao dev` on a home, with further settings, and waits for its dev.env.
func start(home string, settings ...string) (*stack, error) {
	binary, err := filepath.Abs("../../.cache/bin/hongbao")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("the binary is not built; run `make test`: %w", err)
	}
	s := &stack{home: home, log: filepath.Join(home, "dev.log"),
		watch: &watch{personal: map[string][]byte{}, found: map[string]bool{}}}
	s.http = &http.Client{Timeout: 20 * time.Second, Transport: watched{&http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 512},
		s.watch}}
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	s.cmd = exec.Command(binary, "dev")
	s.cmd.Dir = filepath.Dir(filepath.Dir(filepath.Dir(binary)))
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Env = append(os.Environ(), "HONGBAO_HOME="+home, "HONGBAO_FIRST_PACKET=0", "HONGBAO_NO_INSTALL=1")
	names := []string{"API", "STAFF", "PROVIDER", "REDIS", "MYSQL", "TEMPORAL", "TEMPORAL_UI"}
	ports, err := devstack.FreePorts(len(names))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		s.cmd.Env = append(s.cmd.Env, fmt.Sprintf("%s%s=%d", devstack.EnvPortPrefix, name, ports[i]))
	}
	s.cmd.Env = append(s.cmd.Env, settings...)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := false
	wait.Reached(wait.Limit(), func() bool {
		_, err := os.Stat(filepath.Join(home, "dev.env"))
		ready = err == nil
		return ready || syscall.Kill(s.cmd.Process.Pid, 0) != nil
	})
	if !ready {
		tail, _ := os.ReadFile(s.log)
		return s, fmt.Errorf("the stack did not become ready:\n%s", tail)
	}
	if err := s.watch.learn(home); err != nil {
		return s, err
	}
	s.app, err = client.New(s.env("HONGBAO_URL"), s.env("HONGBAO_APP_KEY"), client.WithHTTPClient(s.http), client.WithRetry(patience))
	return s, err
}

// stop ends the stack by SIGTERM to its process group and waits at most 30 s. Then it searches the
// files that are left for secrets.
func (s *stack) stop() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	s.lookAtCommands()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // its exit code does not matter after SIGTERM
		close(done)
	}()
	select {
	case <-done:
		return s.leaks()
	case <-time.After(wait.Limit()):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		return fmt.Errorf("not gone after %v", wait.Limit())
	}
}

// env reads one variable of dev.env.
func (s *stack) env(name string) string {
	b, err := os.ReadFile(filepath.Join(s.home, "dev.env"))
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		line = strings.TrimPrefix(line, "export ")
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.ReplaceAll(strings.Trim(value, "'"), `'\''`, "'")
		}
	}
	return ""
}

func (s *stack) pid(t testing.TB, child string) int {
	t.Helper()
	var pid int
	wait.Until(t, child+" has a pid", func() bool {
		pid, _ = strconv.Atoi(s.env("HONGBAO_PID_" + child))
		return pid > 0
	})
	return pid
}

// answer is one HTTP answer.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    []byte
}

func (a answer) str(path ...string) string { s, _ := a.at(path...).(string); return s }
func (a answer) num(path ...string) int64 {
	n, _ := a.at(path...).(json.Number)
	i, _ := n.Int64()
	return i
}
func (a answer) at(path ...string) any {
	var v any = a.body
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func (a answer) items() []answer {
	list, _ := a.body["items"].([]any)
	out := make([]answer, len(list))
	for i, it := range list {
		out[i].body, _ = it.(map[string]any)
	}
	return out
}

// try makes one request; the error is of the connection.
func (s *stack) try(ctx context.Context, method, url, key string, body any, header ...string) (answer, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if a.raw, err = io.ReadAll(resp.Body); err != nil {
		return answer{}, err
	}
	dec := json.NewDecoder(bytes.NewReader(a.raw))
	dec.UseNumber()
	_ = dec.Decode(&a.body)
	return a, nil
}

func (s *stack) do(t testing.TB, method, url, key string, body any, header ...string) answer {
	t.Helper()
	a, err := s.try(t.Context(), method, url, key, body, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func (s *stack) api(path string) string { return s.env("HONGBAO_URL") + path }

// create creates a packet and waits until it is no longer funding.
func (s *stack) create(t testing.TB, r wire.CreatePacket) *wire.Packet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := s.app.CreateAndWait(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// packet reads a packet once; without an answer its status is empty.
func (s *stack) packet(t testing.TB, id string) *wire.Packet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p, err := s.app.Packet(ctx, id)
	if err != nil {
		return &wire.Packet{ID: id}
	}
	return p
}

func (s *stack) awaitStatus(t testing.TB, id string, status wire.PacketStatus) *wire.Packet {
	t.Helper()
	var p *wire.Packet
	wait.Until(t, fmt.Sprintf("packet %s is %s", id, status), func() bool {
		p = s.packet(t, id)
		return p.Status == status
	})
	return p
}

// movements returns all movements of a packet at the provider.
func (s *stack) movements(t testing.TB, packetID string) []answer {
	t.Helper()
	var out []answer
	for after := int64(0); ; {
		var page []answer
		wait.Until(t, "movements are readable", func() bool { // the provider may have just been killed
			a, err := s.try(t.Context(), "GET", fmt.Sprintf("%s/_movements?after=%d&limit=1000", s.env("HONGBAO_PROVIDER_URL"), after), "", nil)
			page = a.items()
			return err == nil && a.status == 200
		})
		for _, m := range page {
			after = m.num("seq")
			if strings.Contains(m.str("order_no"), packetID) {
				out = append(out, m)
			}
		}
		if len(page) < 1000 {
			return out
		}
	}
}

// awaitBalanced waits until the proof is balanced with nothing in flight.
func (s *stack) awaitBalanced(t testing.TB, id string) {
	t.Helper()
	wait.Until(t, "proof of "+id, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p, err := s.app.Proof(ctx, id)
		return err == nil && p.Balanced && p.InFlight == 0
	})
}
