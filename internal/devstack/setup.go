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

// Setup installs the tools of a stack: Debian's packages of Redis and MariaDB, and the Temporal CLI, built from the source
// that internal/devstack/tools pins.
type Setup struct {
	Checkout  string // root of the source tree; see FindCheckout
	NoInstall bool   // refuse to install packages
	// Tests also installs the tools of the tests: a C compiler for the race detector, Prometheus, and a browser and a Chinese
	// font for the console.
	Tests bool
	Out   io.Writer // receives lines about the progress; nil discards them
}

// Errors of Setup.
var (
	// ErrInstallForbidden means that packages are missing and NoInstall is set.
	ErrInstallForbidden = errors.New("packages are missing and installing is forbidden by HONGBAO_NO_INSTALL")
	// ErrCannotInstall means that packages are missing and that this system has no apt-get, or this user no way to root.
	ErrCannotInstall = errors.New("packages are missing and cannot be installed from here")
)

// Run installs and builds what is missing and returns the tools. It prints each step before the step, and nothing when nothing
// is missing. Its errors wrap ErrInstallForbidden or ErrCannotInstall, or hold the end of
// the output of the command that failed.
func (s Setup) Run(ctx context.Context) (Tools, error) {
	cache := CacheDir(s.Checkout)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Tools{}, fmt.Errorf("tool cache: %w", err)
	}
	// Two runs at once would wait for the lock of apt and build the same program twice.
	lock, err := s.lock(ctx, filepath.Join(filepath.Dir(cache), "setup.lock"))
	if err != nil {
		return Tools{}, err
	}
	tools, err := s.run(ctx, cache)
	return tools, errors.Join(err, lock.Unlock())
}

// lockPollInterval is the pause between two attempts to take the lock.
const lockPollInterval = 200 * time.Millisecond

// lock takes the lock when no other run holds it. It fails when ctx ends first.
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
		packages = append(packages, Browsers[0]) // the tests of the console use it
	}
	if s.Tests && !haveChineseFont(ctx) {
		packages = append(packages, packageChineseFont) // without one, Chromium displays boxes
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

// haveCCompiler reports whether there is a C compiler, which cgo and the race detector need.
func haveCCompiler() bool {
	for _, compiler := range []string{os.Getenv("CC"), "gcc", "clang"} {
		if _, err := exec.LookPath(compiler); err == nil && compiler != "" {
			return true
		}
	}
	return false
}

// Browsers are the browsers that the tests of the console can use. Setup installs the first,
// which has no window and starts fewer processes for a tab.
var Browsers = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// haveBrowser reports whether one of Browsers is on PATH.
func haveBrowser() bool {
	return slices.ContainsFunc(Browsers, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// packageChineseFont is Debian's smallest sufficient package, 1.6 MB.
const packageChineseFont = "fonts-wqy-microhei"

// haveChineseFont reports whether fontconfig, which browsers depend on, finds a font with Chinese characters.
func haveChineseFont(ctx context.Context) bool {
	list, err := exec.CommandContext(ctx, "fc-list", ":lang=zh-cn", "file").Output()
	return err == nil && len(bytes.TrimSpace(list)) > 0
}

// install installs Debian packages with apt-get, as root or through sudo.
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
	s.printf("installing %s with apt-get (the packages start no system service)", strings.Join(packages, " "))
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
	// The most frequent cause is old package lists, whose files are gone from the server.
	s.printf("apt-get install failed; running apt-get update and trying once more")
	if err := s.apt(ctx, prefix, "apt-get", "update"); err != nil {
		return err
	}
	return s.apt(ctx, prefix, install...)
}

// rootPrefix returns the words before a command that needs root. Without root and sudo the error wraps ErrCannotInstall and
// names the command to run as root.
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

// haveAptLists reports whether apt has package lists.
func haveAptLists() bool {
	lists, err := filepath.Glob("/var/lib/apt/lists/*_Packages*")
	return err == nil && len(lists) > 0
}

// apt runs an apt-get command. Its output is printed only when the command fails.
func (s Setup) apt(ctx context.Context, prefix []string, args ...string) error {
	args = append(append(prefix[:len(prefix):len(prefix)], args...), "-o", "DPkg::Lock::Timeout=120")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = os.Stdin // sudo may ask for a password
	return s.quietly(cmd, "apt-get")
}

// quietly runs a command without its output. Every 20 s it prints that the command still runs. Its error holds the end of the
// output.
func (s Setup) quietly(cmd *exec.Cmd, what string) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// SIGTERM instead of SIGKILL: an interrupted apt-get or compiler cleans up.
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
				s.printf("%s: still running after %.0f s", what, time.Since(began).Seconds())
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

// buildTemporal builds the Temporal CLI unless the cache holds it in the version that internal/devstack/tools pins.
func (s Setup) buildTemporal(ctx context.Context, cache string) error {
	module := filepath.Join(s.Checkout, "internal", "devstack", "tools")
	want, err := moduleStamp(module)
	if err != nil {
		return err
	}
	binary := filepath.Join(cache, "temporal")
	stamp := binary + ".stamp"
	have, _ := os.ReadFile(stamp) // a missing file differs from want
	if _, err := os.Stat(binary); err == nil && string(have) == want {
		return nil
	}
	s.printf("building the Temporal CLI from source, once: three to four minutes on two cores")
	if err := removeFile(stamp); err != nil {
		return err
	}
	temp := binary + ".new"
	// -s -w omits the debug tables, a third of the file.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", temp, temporalPackage)
	cmd.Dir = module
	cmd.Env = overlay(os.Environ(), variable{"GOWORK", "off"})
	began := time.Now()
	if err := s.quietly(cmd, "go build"); err != nil {
		return err
	}
	if err := os.Rename(temp, binary); err != nil {
		return fmt.Errorf("store the Temporal CLI: %w", err)
	}
	if err := replaceFile(stamp, []byte(want)); err != nil {
		return fmt.Errorf("store the Temporal CLI: %w", err)
	}
	s.printf("the Temporal CLI is built (%.0f s)", time.Since(began).Seconds())
	return nil
}

// moduleStamp returns a hash of the files that determine the versions of a module's dependencies.
func moduleStamp(dir string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("read the versions of the tools: %w", err)
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
