package devstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Setup gets what a stack needs onto this machine: Debian packages for Redis and
// MariaDB, and the Temporal CLI, built from the source that internal/devstack/tools pins; for
// the tests a C compiler and the two programs of Prometheus too.
type Setup struct {
	Checkout  string // root of the source tree; see FindCheckout
	NoInstall bool   // refuse to install packages
	// also get what the tests need: a C compiler for the race detector, Prometheus, a browser and a Chinese font for the console
	Tests bool
	Out   io.Writer
}

// Errors of Setup.
var (
	// ErrInstallForbidden means that packages are missing and NoInstall is set.
	ErrInstallForbidden = errors.New("packages are missing and installing is forbidden by HONGBAO_NO_INSTALL")
	// ErrCannotInstall means that packages are missing and this user or system
	// has no way to install them.
	ErrCannotInstall = errors.New("packages are missing and cannot be installed from here")
)

// Run installs and builds what is missing and returns the tools. It prints what
// it does before it does it. When nothing is missing it is quick and silent.
func (s Setup) Run(ctx context.Context) (Tools, error) {
	cache := CacheDir(s.Checkout)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Tools{}, fmt.Errorf("tool cache: %w", err)
	}
	// Two runs at once would fight over apt and build the same thing twice.
	lock, err := s.lock(ctx, filepath.Join(filepath.Dir(cache), "setup.lock"))
	if err != nil {
		return Tools{}, err
	}
	tools, err := s.run(ctx, cache)
	return tools, errors.Join(err, lock.Unlock())
}

// lockPollInterval is how often a run that waits for another one looks.
const lockPollInterval = 200 * time.Millisecond

// lock waits for another run to end, or for the end of ctx.
func (s Setup) lock(ctx context.Context, path string) (*FileLock, error) {
	for waited := false; ; waited = true {
		lock, err := LockFile(path, false)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		if !waited {
			s.printf("another process installs or builds; waiting for it")
		}
		pause(ctx, lockPollInterval)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("wait for another setup: %w", context.Cause(ctx))
		}
	}
}

func (s Setup) run(ctx context.Context, cache string) (Tools, error) {
	_, err := FindTools(cache)
	var missing *MissingToolsError
	if err != nil && !errors.As(err, &missing) {
		return Tools{}, err
	}
	var packages []string
	if missing != nil {
		packages = missing.Packages
	}
	if s.Tests && !haveCCompiler() {
		packages = append(packages, "gcc", "libc6-dev")
	}
	if s.Tests && !haveBrowser() {
		packages = append(packages, "chromium") // the tests of the console are done in it
	}
	if s.Tests && !haveChineseFont(ctx) {
		packages = append(packages, packageChineseFont) // chromium brings none: its pages would show boxes
	}
	if len(packages) > 0 {
		if err := s.install(ctx, packages); err != nil {
			return Tools{}, err
		}
	}
	if s.Tests {
		if err := s.unpackPrometheus(ctx, cache); err != nil {
			return Tools{}, err
		}
	}
	if err := s.buildTemporal(ctx, cache); err != nil {
		return Tools{}, err
	}
	return FindTools(cache)
}

// haveCCompiler reports whether cgo, and with it the race detector, can work.
func haveCCompiler() bool {
	for _, compiler := range []string{os.Getenv("CC"), "gcc", "clang"} {
		if _, err := exec.LookPath(compiler); err == nil && compiler != "" {
			return true
		}
	}
	return false
}

// Browsers are the programs that the tests of the console can be done in, the one
// that setup installs first.
var Browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// haveBrowser reports whether one of Browsers is there.
func haveBrowser() bool {
	return slices.ContainsFunc(Browsers, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// packageChineseFont is the smallest of Debian's packages that will do, 1.6 MB.
const packageChineseFont = "fonts-wqy-microhei"

// haveChineseFont reports whether fontconfig, which comes with a browser, knows a
// font that can write Chinese.
func haveChineseFont(ctx context.Context) bool {
	list, err := exec.CommandContext(ctx, "fc-list", ":lang=zh-cn", "file").Output()
	return err == nil && len(bytes.TrimSpace(list)) > 0
}

// install gets Debian packages with apt-get, as root or through sudo.
func (s Setup) install(ctx context.Context, packages []string) error {
	install := append([]string{"apt-get", "install", "-y", "--no-install-recommends"}, packages...)
	command := strings.Join(install, " ")
	if s.NoInstall {
		return fmt.Errorf("%w: %s; install them with: %s", ErrInstallForbidden, strings.Join(packages, " "), command)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: this system has no apt-get; install Redis >= 7.0 and MariaDB >= 10.11 so that redis-server, mariadbd, "+
			"mariadb-install-db and my_print_defaults are on PATH", ErrCannotInstall)
	}
	prefix, err := rootPrefix("apt-get update && " + command)
	if err != nil {
		return err
	}
	s.printf("installing %s with apt-get (they bring no system service)", strings.Join(packages, " "))
	if !haveAptLists() {
		s.printf("the package lists are empty: apt-get update")
		if err := s.apt(ctx, prefix, "apt-get", "update"); err != nil {
			return err
		}
		return s.apt(ctx, prefix, install...)
	}
	if err := s.apt(ctx, prefix, install...); err == nil || ctx.Err() != nil {
		return err
	}
	// Most often the lists are old and name files that are gone.
	s.printf("that failed; again after apt-get update")
	if err := s.apt(ctx, prefix, "apt-get", "update"); err != nil {
		return err
	}
	return s.apt(ctx, prefix, install...)
}

// rootPrefix is what stands before a command that needs root; without a way to become
// it the error names the commands to run by hand.
func rootPrefix(command string) ([]string, error) {
	prefix := []string{"env", "DEBIAN_FRONTEND=noninteractive"}
	if os.Geteuid() == 0 {
		return prefix, nil
	}
	if _, err := exec.LookPath("sudo"); err != nil {
		return nil, fmt.Errorf("%w: not root, and there is no sudo; run as root: %s", ErrCannotInstall, command)
	}
	return append([]string{"sudo"}, prefix...), nil
}

// haveAptLists reports whether apt knows any package.
func haveAptLists() bool {
	lists, err := filepath.Glob("/var/lib/apt/lists/*_Packages*")
	return err == nil && len(lists) > 0
}

// apt runs one apt-get command; its output is only shown when it fails.
func (s Setup) apt(ctx context.Context, prefix []string, args ...string) error {
	args = append(append(prefix[:len(prefix):len(prefix)], args...), "-o", "DPkg::Lock::Timeout=120")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = os.Stdin // sudo may ask for a password
	return s.quietly(cmd, "apt-get")
}

// quietly runs a command, says now and then that it still runs, and adds the end
// of its output to its error.
func (s Setup) quietly(cmd *exec.Cmd, what string) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// An interrupted apt-get or compiler gets the chance to clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	done := make(chan struct{})
	defer close(done)
	go func() {
		ticker := time.NewTicker(20 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				s.printf("%s: still working, %.0f s", what, time.Since(began).Seconds())
			}
		}
	}()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, lastLines(output.Bytes(), 20))
	}
	return nil
}

// temporalPackage is the main package of the Temporal CLI.
const temporalPackage = "github.com/temporalio/cli/cmd/temporal"

// buildTemporal builds the Temporal CLI unless the cache has it in the version
// that internal/devstack/tools asks for.
func (s Setup) buildTemporal(ctx context.Context, cache string) error {
	module := filepath.Join(s.Checkout, "internal", "devstack", "tools")
	want, err := moduleStamp(module)
	if err != nil {
		return err
	}
	binary := filepath.Join(cache, "temporal")
	stamp := binary + ".stamp"
	have, _ := os.ReadFile(stamp) // missing = other than wanted
	if _, err := os.Stat(binary); err == nil && string(have) == want {
		return nil
	}
	s.printf("building the Temporal CLI from source: three to four minutes on two cores, and only the first time")
	if err := removeFile(stamp); err != nil {
		return err
	}
	temp := binary + ".new"
	// -s -w leaves the debug tables out, a third of the file.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", temp, temporalPackage)
	cmd.Dir = module
	cmd.Env = overlay(os.Environ(), variable{"GOWORK", "off"})
	began := time.Now()
	if err := s.quietly(cmd, "go build"); err != nil {
		return err
	}
	if err := os.Rename(temp, binary); err != nil {
		return fmt.Errorf("keep the Temporal CLI: %w", err)
	}
	if err := replaceFile(stamp, []byte(want)); err != nil {
		return fmt.Errorf("keep the Temporal CLI: %w", err)
	}
	s.printf("the Temporal CLI is built (%.0f s)", time.Since(began).Seconds())
	return nil
}

// moduleStamp is a hash over what decides which versions a module builds.
func moduleStamp(dir string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("versions of the tools: %w", err)
		}
		hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func (s Setup) printf(format string, args ...any) {
	if s.Out == nil {
		return
	}
	_, _ = fmt.Fprintf(s.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
