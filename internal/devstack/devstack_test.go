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
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/test/wait"
)

// TestShellQuote: a shell reads back the value that ShellQuote has quoted.
func TestShellQuote(t *testing.T) {
	for _, value := range []string{"", "plain", "it's", `'`, `''\`, `$HOME`, "`id`", `"double"`, "two\nlines", "a b", `\`, "红包", "!x", "*"} {
		output, err := exec.Command("sh", "-c", "v="+ShellQuote(value)+`; printf %s "$v"`).Output()
		if err != nil || string(output) != value {
			t.Errorf("%q becomes %q (%v)", value, output, err)
		}
	}
}

func TestOverlay(t *testing.T) {
	got := overlay([]string{"A=1", "B=2=2", "EMPTY="}, variable{"B", "3"}, variable{"C", ""})
	if want := []string{"A=1", "EMPTY=", "B=3", "C="}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDropVariables: the programs inherit the environment without the variables that they would refuse.
func TestDropVariables(t *testing.T) {
	t.Setenv("HONGBAO_NONSENSE", "1")
	t.Setenv("HONGBAO_NONSENSE_TOO", "") // programs refuse the name, also with an empty value
	t.Setenv("HONGBAO_LOG_LEVEL", "warn")
	for name, part := range makeParts(Home{t.TempDir()}, testPorts(t), Tools{}, "hongbao", secrets{}, nil, "HONGBAO_NONSENSE",
		"HONGBAO_NONSENSE_TOO") {
		if name != childAPI && name != childWorker && name != childProvider {
			continue
		}
		cmd, err := part.Command(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(cmd.Env, "HONGBAO_LOG_LEVEL=warn") ||
			slices.ContainsFunc(cmd.Env, func(entry string) bool { return strings.HasPrefix(entry, "HONGBAO_NONSENSE") }) {
			t.Errorf("%s gets %q", name, cmd.Env)
		}
	}
}

func TestPortsCheck(t *testing.T) {
	ports := testPorts(t)
	if err := ports.check(); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", hostPort(ports.MySQL))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	ports.Staff = ports.API
	err = ports.check()
	want := fmt.Sprintf("port %d: given to two parts of the stack; set HONGBAO_PORT_STAFF to a free port\n"+
		"port %d: already used by another program; set HONGBAO_PORT_MYSQL to a free port", ports.API, ports.MySQL)
	if err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if !errors.Is(err, ErrPortBusy) || !errors.Is(err, ErrPortTwice) {
		t.Errorf("causes of %v", err)
	}
}

// TestMariaDBInit: after an interrupted initialisation the next one creates a complete data folder.
func TestMariaDBInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mysql")
	server := MariaDB{Tools: testTools(t), Dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := make(chan error)
	go func() { interrupted <- server.Init(ctx) }()
	wait.Until(t, "the initialisation writes files", func() bool {
		files, err := filepath.Glob(dir + ".init-*/*")
		return err == nil && len(files) > 2
	})
	cancel()
	if err := <-interrupted; err == nil {
		t.Fatal("an interrupted initialisation has succeeded")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an interrupted initialisation has left a data folder: %v", err)
	}
	// The temporary folder of a process that was killed.
	stale := dir + ".init-123"
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := server.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ibdata1")); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(dir + ".init*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestMariaDBTempDir: a start deletes no temporary tables of other servers.
func TestMariaDBTempDir(t *testing.T) {
	shared := t.TempDir()
	t.Setenv("TMPDIR", shared)
	others := filepath.Join(shared, "#sql-temptable-1-2-3.MAD")
	if err := os.WriteFile(others, []byte("in use"), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server := MariaDB{Tools: testTools(t), Dir: filepath.Join(t.TempDir(), "mysql"), Port: port, User: "hongbao", Password: "secret",
		Database: "hongbao"}
	limit, cancel := context.WithTimeout(t.Context(), wait.Limit())
	defer cancel()
	log := filepath.Join(t.TempDir(), "mysql.log")
	p, err := Start(limit, server, log)
	if err != nil {
		text, _ := os.ReadFile(log)
		t.Fatalf("%v\n%s", err, text)
	}
	defer p.Kill()
	if _, err := os.Stat(others); err != nil {
		t.Errorf("another server's table is gone: %v", err)
	}
}

// TestSetup: on a machine without the tools the error names all packages. The test installs none.
func TestSetup(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Setup{Checkout: t.TempDir(), NoInstall: true, Tests: true}.Run(t.Context())
	if !errors.Is(err, ErrInstallForbidden) {
		t.Fatalf("error: %v", err)
	}
	for _, want := range []string{packageRedis, packageMariaDB, packageMariaDBClient, "gcc", Browsers[0], packageChineseFont,
		"apt-get install", "HONGBAO_NO_INSTALL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if _, err = (Setup{Checkout: t.TempDir()}).Run(t.Context()); !errors.Is(err, ErrCannotInstall) {
		t.Errorf("without apt-get: %v", err)
	}
}

// TestFindPrometheus: it finds both programs or fails.
func TestFindPrometheus(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	for i, program := range []string{"prometheus", "promtool", ""} {
		found, err := FindPrometheus(dir)
		if (err == nil) != (i == 2) || err == nil && found.Promtool != filepath.Join(dir, "promtool") {
			t.Errorf("with %d of them: %+v %v", i, found, err)
		}
		if program != "" {
			if err := os.WriteFile(filepath.Join(dir, program), nil, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestProcessStop: Stop kills a child that ignores SIGTERM, after the grace period.
func TestProcessStop(t *testing.T) {
	deaf := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do read line; done")
	output, err := deaf.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := deaf.StdinPipe() // keeps read waiting
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	p, err := Launch(deaf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 6)); err != nil { // the trap is set
		t.Fatal(err)
	}
	began := time.Now()
	if p.Stop(200 * time.Millisecond) {
		t.Error("a child that ignores SIGTERM has ended by itself")
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > wait.Bound(5*time.Second) {
		t.Errorf("stopping took %v", took)
	}
}

func TestIdentify(t *testing.T) {
	me, ok := identify(os.Getpid())
	if !ok || !me.alive() {
		t.Fatalf("this process: %v, %v", me, ok)
	}
	if other := (procID{PID: me.PID, Start: me.Start + "0"}); other.alive() {
		t.Error("a process with a reused id counts as the same process")
	}
	if (procID{}).alive() {
		t.Error("the zero procID is alive")
	}
}

func TestSecrets(t *testing.T) {
	home, err := NewHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, second := mustSecrets(t, home), mustSecrets(t, home)
	if first != second {
		t.Error("the secrets change at a restart")
	}
	info, err := os.Stat(home.path(homeSecrets))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets file: %v, %v", info, err)
	}
	for _, value := range []string{first.MySQLPassword, first.SeedKey, first.ProviderKey, first.WebhookSecret} {
		if len(value) < 26 || strings.Count(strings.Join([]string{first.MySQLPassword, first.SeedKey, first.ProviderKey, first.WebhookSecret},
			" "), value) != 1 {
			t.Errorf("a secret of %d characters, or used twice", len(value))
		}
	}
}

func TestRotateLogs(t *testing.T) {
	home, err := NewHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := home.create(); err != nil {
		t.Fatal(err)
	}
	for child, size := range map[string]int64{childAPI: maxLogBytes, childWorker: maxLogBytes - 1} {
		if err := os.WriteFile(home.LogFile(child), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(home.LogFile(child), size); err != nil {
			t.Fatal(err)
		}
	}
	if err := home.rotateLogs(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		home.LogFile(childAPI): false, rotated(home.LogFile(childAPI)): true,
		home.LogFile(childWorker): true, rotated(home.LogFile(childWorker)): false,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}

// TestFreePorts: no port is returned twice, although nothing listens on it.
func TestFreePorts(t *testing.T) {
	given := map[int]bool{}
	for range heldPorts {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if given[port] {
			t.Fatalf("%d was returned twice", port)
		}
		given[port] = true
	}
}
