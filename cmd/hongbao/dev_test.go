package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hongbao/internal/devstack"
	"hongbao/test/wait"
)

// TestDevClaimsFirst: a busy port is reported, and the dev.env of a killed stack is gone,
// while another process installs or builds.
func TestDevClaimsFirst(t *testing.T) {
	checkout, err := devstack.FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	other, err := devstack.LockFile(filepath.Join(filepath.Dir(devstack.CacheDir(checkout)), "setup.lock"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Unlock() })
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	home := t.TempDir()
	old := filepath.Join(home, "dev.env")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(busy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"dev", "--home", home, "--no-install", "--port-api", port}
	free, err := devstack.FreePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"staff", "provider", "redis", "mysql", "temporal", "temporal-ui"} {
		args = append(args, "--port-"+name, strconv.Itoa(free[i]))
	}
	var out bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- execute(t.Context(), args, nil, &out, &out) }()
	code := wait.For(t, "hongbao dev ends beside the program that has its port", ended)
	if code == exitOK || !strings.Contains(out.String(), "port "+port+": already used by another program; set HONGBAO_PORT_API") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old dev.env: %v", err)
	}
}
