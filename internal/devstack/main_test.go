package devstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain lets the test binary run as one of three: the tests; a supervisor in its own process, which tests can kill; one of
// the programs api, worker and provider that the supervisor starts. The servers are the real ones.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(superviseForTest())
		case childAPI:
			serveReady(os.Getenv("HONGBAO_API_LISTEN"), os.Getenv("HONGBAO_STAFF_LISTEN"))
		case childWorker:
			serveReady(os.Getenv("HONGBAO_WORKER_LISTEN"))
		case childProvider:
			serveReady(os.Getenv("HONGBAO_PROVIDER_LISTEN"))
		}
	}
	os.Exit(m.Run())
}

// serveReady returns 200 to every request on the addresses, until SIGTERM.
func serveReady(addrs ...string) {
	failed := make(chan error)
	for _, addr := range addrs {
		go func() {
			failed <- http.ListenAndServe(addr, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}()
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	select {
	case <-terminated:
		os.Exit(0)
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// testKeys hold characters that are special in a shell.
var testKeys = Keys{App: `it's`, App2: `$HOME "x" \`, Finance: "f", Finance2: "f2", Ops: "o", Auditor: "a", Admin: "ad"}

// testOptions are the options of a supervisor in its own process.
type testOptions struct {
	Home  string
	Ports Ports
	Tools Tools
}

const testOptionsEnv = "DEVSTACK_TEST_OPTIONS"

func superviseForTest() int {
	var options testOptions
	if err := json.Unmarshal([]byte(os.Getenv(testOptionsEnv)), &options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	binary, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = Run(ctx, Options{
		Home: options.Home, Ports: options.Ports, Tools: options.Tools, Binary: binary, Out: os.Stdout,
		Prepare: func(_ context.Context, env Env) (Keys, error) {
			if env.Keys == (Keys{}) {
				return testKeys, nil
			}
			return env.Keys, nil // those of the last start
		},
		Ready: func(_ context.Context, _ Env, first bool) error {
			fmt.Printf("first start: %v\n", first)
			return nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func testTools(t *testing.T) Tools {
	t.Helper()
	checkout, err := FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := FindTools(CacheDir(checkout))
	if err != nil {
		t.Fatalf("%v; `make test` installs and builds them", err)
	}
	return tools
}

func testPorts(t *testing.T) Ports {
	t.Helper()
	p, err := FreePorts(7)
	if err != nil {
		t.Fatal(err)
	}
	return Ports{API: p[0], Staff: p[1], Provider: p[2], Redis: p[3], MySQL: p[4], Temporal: p[5], TemporalUI: p[6]}
}
