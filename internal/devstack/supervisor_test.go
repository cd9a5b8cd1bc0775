package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hongbao/test/wait"
)

// TestRun covers the lifetime of one home folder, from the first start to Reset. The path of the folder is too long for a Unix
// socket and holds characters that are special in shells and URLs.
func TestRun(t *testing.T) {
	base := t.TempDir()
	options := testOptions{
		Home:  filepath.Join(base, "it's a  home ?x=%41", strings.Repeat("long", 30)),
		Ports: testPorts(t), Tools: testTools(t),
	}
	if err := os.MkdirAll(options.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(options.Home, "not-ours.txt")
	if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startStack(t, options)
	s.awaitReady()

	t.Run("EnvFile", func(t *testing.T) { testEnvFile(t, s) })
	t.Run("OneProcessOwnsItsPort", func(t *testing.T) { testOwnership(t, s) })
	t.Run("SecondSupervisor", func(t *testing.T) { testSecondSupervisor(t, s) })
	t.Run("StoppedChildIsNotRestarted", func(t *testing.T) { testStoppedChild(t, s) })
	t.Run("KilledChildRestarts", func(t *testing.T) { testKilledChildren(t, s) })
	t.Run("StopWithStoppedChild", func(t *testing.T) {
		pids := s.pids()
		if err := syscall.Kill(s.pid(childMySQL), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if took := s.terminate(syscall.SIGTERM); took > wait.Bound(12*time.Second) {
			t.Errorf("stopping took %v", took)
		}
		if strings.Contains(s.output.String(), "was killed") {
			t.Errorf("a child did not stop by itself:\n%s", s.output.String())
		}
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if anyAlive(pids) {
			t.Error("children are left")
		}
		if _, err := os.Stat(s.home.EnvFile()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("dev.env is left: %v", err)
		}
	})

	t.Run("SecondStartAndSIGKILL", func(t *testing.T) {
		s := startStack(t, options)
		s.awaitReady()
		if got := s.env()["HONGBAO_APP2_KEY"]; got != testKeys.App2 {
			t.Errorf("key after a restart: %q", got)
		}
		wait.Until(t, "the Ready hook has run", func() bool {
			return strings.Contains(s.output.String(), "first start: false")
		})
		pids := s.pids()
		s.terminate(syscall.SIGKILL)
		wait.Until(t, "the children of a killed supervisor are gone", func() bool { return !anyAlive(pids) })
	})

	t.Run("StartAfterSIGKILL", func(t *testing.T) {
		s := startStack(t, options)
		// First, because a script that waits for dev.env must not read the old one.
		wait.Until(t, "the old dev.env is removed", func() bool {
			_, err := os.Stat(s.home.EnvFile())
			return errors.Is(err, fs.ErrNotExist)
		})
		s.awaitReady()
		pids := s.pids()
		if err := Stop(t.Context(), s.home); err != nil {
			t.Fatal(err)
		}
		if anyAlive(pids) {
			t.Error("children are left")
		}
		if err := Stop(t.Context(), s.home); !errors.Is(err, ErrNotRunning) {
			t.Errorf("second stop: %v", err)
		}
	})

	t.Run("Reset", func(t *testing.T) {
		if err := Reset(t.Context(), s.home); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(options.Home)
		if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(foreign) {
			t.Errorf("left: %v, %v", entries, err)
		}
		if err := Reset(t.Context(), s.home); !errors.Is(err, ErrNotAHome) {
			t.Errorf("reset of a folder without a marker: %v", err)
		}
	})
}

func testEnvFile(t *testing.T, s *stack) {
	info, err := os.Stat(s.home.EnvFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("dev.env: %v, %v", info, err)
	}
	env := s.env()
	ports := s.options.Ports
	want := map[string]string{
		"HONGBAO_URL":                "http://" + hostPort(ports.API),
		"HONGBAO_STAFF_URL":          "http://" + hostPort(ports.Staff),
		"HONGBAO_PROVIDER_URL":       "http://" + hostPort(ports.Provider),
		"HONGBAO_TEMPORAL_ADDRESS":   hostPort(ports.Temporal),
		"HONGBAO_TEMPORAL_NAMESPACE": "hongbao",
		"HONGBAO_TEMPORAL_UI_URL":    "http://" + hostPort(ports.TemporalUI),
		"HONGBAO_REDIS_ADDR":         hostPort(ports.Redis),
		"HONGBAO_APP_KEY":            testKeys.App,
		"HONGBAO_APP2_KEY":           testKeys.App2,
		"HONGBAO_FINANCE_KEY":        testKeys.Finance,
		"HONGBAO_FINANCE2_KEY":       testKeys.Finance2,
		"HONGBAO_OPS_KEY":            testKeys.Ops,
		"HONGBAO_AUDITOR_KEY":        testKeys.Auditor,
		"HONGBAO_ADMIN_KEY":          testKeys.Admin,
	}
	for name, value := range want {
		if env[name] != value {
			t.Errorf("%s = %q, want %q", name, env[name], value)
		}
	}
	if !strings.HasPrefix(env["HONGBAO_SANDBOX_WEBHOOK_SECRET"], "whsec_") || env["HONGBAO_PROVIDER_KEY"] == "" ||
		!strings.Contains(env["HONGBAO_MYSQL_DSN"], "/hongbao?parseTime=true") {
		t.Error("webhook secret, provider key or DSN has another form")
	}
	if len(env) != 23 {
		t.Errorf("%d variables", len(env))
	}
}

// testOwnership checks in /proc which process listens on each port.
func testOwnership(t *testing.T, s *stack) {
	ports := s.options.Ports
	for child, listen := range map[string][]int{
		childAPI: {ports.API, ports.Staff}, childProvider: {ports.Provider}, childRedis: {ports.Redis},
		childMySQL: {ports.MySQL}, childTemporal: {ports.Temporal, ports.TemporalUI},
	} {
		for _, port := range listen {
			if !ownsPort(t, s.pid(child), port) {
				t.Errorf("%s, process %d, does not listen on port %d", child, s.pid(child), port)
			}
		}
	}
	status, err := ReadStatus(t.Context(), s.home)
	if err != nil || !status.Healthy() || status.Supervisor != s.cmd.Process.Pid {
		t.Errorf("status: %+v, %v", status, err)
	}
	for _, child := range status.Children {
		if child.PID != s.pid(child.Name) {
			t.Errorf("status of %s: %+v", child.Name, child)
		}
	}
}

func ownsPort(t *testing.T, pid, port int) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("0100007F:%04X", port) // 127.0.0.1
	for _, line := range strings.Split(string(table), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[1] != address || fields[3] != "0A" { // 0A = listening
			continue
		}
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if target, _ := os.Readlink(link); target == "socket:["+fields[9]+"]" {
				return true
			}
		}
	}
	return false
}

func testSecondSupervisor(t *testing.T, s *stack) {
	err := Run(t.Context(), Options{Home: s.options.Home, Ports: testPorts(t), Tools: s.options.Tools})
	if !errors.Is(err, ErrRunning) {
		t.Errorf("same home: %v", err)
	}
	other := t.TempDir()
	err = Run(t.Context(), Options{Home: other, Ports: s.options.Ports, Tools: s.options.Tools})
	if !errors.Is(err, ErrPortBusy) || !strings.Contains(fmt.Sprint(err), "HONGBAO_PORT_TEMPORAL_UI") {
		t.Errorf("same ports: %v", err)
	}
	if data, err := os.ReadDir(filepath.Join(other, "data")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(data) > 0 {
		t.Errorf("something was started: %v, %v", data, err)
	}
	if _, err := os.Stat(s.home.EnvFile()); err != nil {
		t.Errorf("dev.env of the running stack: %v", err)
	}
}

func testStoppedChild(t *testing.T, s *stack) {
	pid := s.pid(childRedis)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait.Holds(t, 3*time.Second, "the same process", func() bool { return s.pid(childRedis) == pid })
	status, err := ReadStatus(t.Context(), s.home)
	if err != nil || status.Healthy() {
		t.Errorf("status with a stopped Redis: %+v, %v", status, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	redis := Redis{Port: s.options.Ports.Redis}
	wait.Until(t, "Redis is ready again", func() bool { return redis.Ready(t.Context()) == nil })
}

// testKilledChildren kills each child several times. The restarts must not back off.
func testKilledChildren(t *testing.T, s *stack) {
	parts := makeParts(s.home, s.options.Ports, Tools{}, "", mustSecrets(t, s.home), nil)
	for _, child := range childNames {
		for round := range 4 {
			old := s.pid(child)
			if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
				t.Fatalf("kill %s, process %d: %v", child, old, err)
			}
			began := time.Now()
			wait.Until(t, child+" runs again", func() bool { pid := s.pid(child); return pid != 0 && pid != old })
			t.Logf("%s, round %d: started again after %v", child, round, time.Since(began).Round(time.Millisecond))
			if child == childWorker {
				continue // its health address changes with every start
			}
			wait.Until(t, child+" is ready again", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return parts[child].Ready(ctx) == nil
			})
			t.Logf("%s, round %d: ready again after %v", child, round, time.Since(began).Round(time.Millisecond))
		}
	}
}

func mustSecrets(t *testing.T, home Home) secrets {
	t.Helper()
	s, err := home.loadSecrets()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRunBusyPort: Run reports a busy port before it starts a child.
func TestRunBusyPort(t *testing.T) {
	ports := testPorts(t)
	listener, err := net.Listen("tcp", hostPort(ports.Provider))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	home := filepath.Join(t.TempDir(), "home")
	err = Run(t.Context(), Options{Home: home, Ports: ports})
	portErr, ok := errors.AsType[*PortError](err)
	if !ok || portErr.Name != "PROVIDER" || portErr.Port != ports.Provider || !errors.Is(err, ErrPortBusy) {
		t.Errorf("busy port: %v", err)
	}
	if want := fmt.Sprintf("port %d: already used by another program; set HONGBAO_PORT_PROVIDER to a free port", ports.Provider); err == nil ||
		err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// TestRunFailingChild: when a program cannot start, Run stops the other children and fails.
func TestRunFailingChild(t *testing.T) {
	var out lockedBuffer
	home := t.TempDir()
	err := Run(t.Context(), Options{
		Home: home, Ports: testPorts(t), Tools: testTools(t), Binary: "/bin/false", Out: &out,
		Prepare: func(context.Context, Env) (Keys, error) { return testKeys, nil },
	})
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("error: %v", err)
	}
	if !strings.Contains(out.String(), "provider keeps ending") {
		t.Errorf("printed:\n%s", out.String())
	}
	left, globErr := filepath.Glob(filepath.Join(home, "*.json"))
	if globErr != nil || len(left) != 1 { // secrets.json stays, stack.json does not
		t.Errorf("left: %v, %v", left, globErr)
	}
}

// TestRunFailingPrepare: when Prepare fails, Run fails and does not try again.
func TestRunFailingPrepare(t *testing.T) {
	refused, tried := errors.New("made by an older build"), 0
	err := Run(t.Context(), Options{
		Home: t.TempDir(), Ports: testPorts(t), Tools: testTools(t), Binary: "/bin/false",
		Prepare: func(context.Context, Env) (Keys, error) { tried++; return Keys{}, refused },
	})
	if !errors.Is(err, refused) || tried != 1 {
		t.Errorf("tried %d times: %v", tried, err)
	}
}
