package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Tools holds the absolute paths of the programs that the stack runs.
type Tools struct {
	RedisServer      string
	MariaDB          string // mariadbd, the server
	MariaDBInstallDB string // mariadb-install-db, creates a data folder
	Temporal         string // the Temporal CLI with `server start-dev`
}

// MissingToolsError names the programs that were not found and their Debian packages.
type MissingToolsError struct {
	Programs []string // those that were not found
	Packages []string // Debian packages that hold them; may be empty
}

func (e *MissingToolsError) Error() string {
	text := "not found: " + strings.Join(e.Programs, ", ")
	if len(e.Packages) > 0 {
		text += " (Debian packages: " + strings.Join(e.Packages, " ") + ")"
	}
	return text
}

// Debian packages of the servers that install no service. redis-tools holds the Redis binary under the name redis-check-rdb;
// under the name redis-server the same binary is the server.
const (
	packageRedis         = "redis-tools"
	packageMariaDB       = "mariadb-server-core"
	packageMariaDBClient = "mariadb-client-core" // my_print_defaults, needed by mariadb-install-db
)

// FindTools searches for the programs in cacheDir, then on PATH and in the folders of servers that are missing on the PATH of
// an ordinary user. When the system has the Redis binary but no redis-server, FindTools creates the link of that name in
// cacheDir. The error for missing programs is a *MissingToolsError.
func FindTools(cacheDir string) (Tools, error) {
	var tools Tools
	missing := &MissingToolsError{}
	want := func(target *string, pkg, program string) {
		path, ok := lookup(cacheDir, program)
		if !ok {
			missing.Programs = append(missing.Programs, program)
			if pkg != "" && !slices.Contains(missing.Packages, pkg) {
				missing.Packages = append(missing.Packages, pkg)
			}
		}
		*target = path
	}
	if err := linkRedisServer(cacheDir); err != nil {
		return Tools{}, err
	}
	var printDefaults string
	want(&tools.RedisServer, packageRedis, "redis-server")
	want(&tools.MariaDB, packageMariaDB, "mariadbd")
	want(&tools.MariaDBInstallDB, packageMariaDB, "mariadb-install-db")
	want(&printDefaults, packageMariaDBClient, "my_print_defaults")
	want(&tools.Temporal, "", "temporal")
	if len(missing.Programs) > 0 {
		return Tools{}, missing
	}
	return tools, nil
}

// lookup returns the absolute path of a program, and false when there is none.
func lookup(cacheDir, program string) (string, bool) {
	dirs := []string{cacheDir}
	dirs = append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
	dirs = append(dirs, "/usr/sbin", "/usr/local/sbin")
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		path, err := exec.LookPath(filepath.Join(dir, program))
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err == nil {
			return path, true
		}
	}
	return "", false
}

// linkRedisServer creates cacheDir/redis-server where only redis-check-rdb is installed. Several processes may run it at once.
func linkRedisServer(cacheDir string) error {
	if _, ok := lookup(cacheDir, "redis-server"); ok || cacheDir == "" {
		return nil
	}
	binary, ok := lookup("", "redis-check-rdb")
	if !ok {
		return nil // FindTools reports redis-server as missing
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return fmt.Errorf("tool cache: %w", err)
	}
	link := filepath.Join(cacheDir, "redis-server")
	temp := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(binary, temp); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("link redis-server: %w", err)
	}
	if err := os.Rename(temp, link); err != nil {
		return fmt.Errorf("link redis-server: %w", err)
	}
	return nil
}

// ErrNoCheckout means that a folder is not inside a source tree of hongbao.
var ErrNoCheckout = errors.New("not inside a checkout of hongbao")

// FindCheckout returns the root of the source tree that contains dir: the nearest folder upwards with the go.mod of module
// hongbao. The error is ErrNoCheckout when there is none.
func FindCheckout(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module hongbao\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNoCheckout
		}
		dir = parent
	}
}

// CacheDir returns the folder of the built and linked tools in a checkout. Setup creates its content again when it is deleted.
func CacheDir(checkout string) string { return filepath.Join(checkout, ".cache", "bin") }
