package devstack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Home is the folder with the state of one local stack. The folder may hold other files too: the stack uses only the names
// below.
type Home struct{ dir string }

// ErrNotAHome means that hongbao dev has not created the folder.
var ErrNotAHome = errors.New("not a folder of hongbao dev")

// The names in a home folder.
const (
	homeMarker     = "hongbao-home" // marks a folder that create has made
	homeLock       = "lock"         // locked by the running supervisor
	homeState      = "stack.json"   // the running processes, for status and stop
	homeSecrets    = "secrets.json"
	homeEnv        = "dev.env"
	homeFirstStart = "first-packet" // exists after the first successful call of Options.Ready
	homeData       = "data"         // one folder for each server
	homeLogs       = "logs"
)

const markerText = "The state of a local hongbao stack. `make reset` deletes it.\n"

// NewHome returns the home in a folder. It creates nothing. The error is that of filepath.Abs.
func NewHome(dir string) (Home, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Home{}, fmt.Errorf("home folder: %w", err)
	}
	return Home{dir: absolute}, nil
}

// Dir returns the absolute path of the folder.
func (h Home) Dir() string { return h.dir }

// EnvFile returns the path of dev.env.
func (h Home) EnvFile() string { return h.path(homeEnv) }

// LogFile returns the path of the log of a child, such as "api".
func (h Home) LogFile(child string) string { return h.path(homeLogs, child+".log") }

// providerDB returns the path of the sandbox provider's database file.
func (h Home) providerDB() string { return h.path(homeData, childProvider, "provider.db") }

func (h Home) path(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

// create makes the folder, with mode 0700 when it is new, its subfolders and its marker.
func (h Home) create() error {
	for _, dir := range []string{h.dir, h.path(homeData), h.path(homeLogs)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("home folder: %w", err)
		}
	}
	if err := os.WriteFile(h.path(homeMarker), []byte(markerText), 0o600); err != nil {
		return fmt.Errorf("home folder: %w", err)
	}
	return nil
}

// check returns ErrNotAHome unless create has made the folder.
func (h Home) check() error {
	text, err := os.ReadFile(h.path(homeMarker))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(text) != markerText {
		return fmt.Errorf("%s: %w", h.dir, ErrNotAHome)
	}
	if err != nil {
		return fmt.Errorf("home folder: %w", err)
	}
	return nil
}

// remove deletes the files of hongbao dev, and the folder itself when nothing else is in it. The caller holds the lock,
// whose file is deleted last.
func (h Home) remove() error {
	names := []string{homeEnv, homeState, homeSecrets, homeFirstStart, homeMarker, homeLock}
	for _, child := range childNames {
		for _, path := range []string{h.path(homeData, child), h.LogFile(child), rotated(h.LogFile(child))} {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("delete state: %w", err)
			}
		}
	}
	// Unfinished data folders and generated files beside the data folders.
	leftovers, err := filepath.Glob(filepath.Join(globEscape(h.path(homeData)), "mysql.init*"))
	if err != nil {
		return fmt.Errorf("delete state: %w", err)
	}
	for _, path := range append(leftovers, MariaDB{Dir: h.path(homeData, childMySQL)}.tempDir()) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("delete state: %w", err)
		}
	}
	removeIfEmpty(h.path(homeData))
	removeIfEmpty(h.path(homeLogs))
	for _, name := range names {
		if err := os.Remove(h.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete state: %w", err)
		}
	}
	removeIfEmpty(h.dir)
	return nil
}

// removeIfEmpty deletes an empty folder. It ignores errors: other files, a mount point or missing permissions keep the folder.
func removeIfEmpty(dir string) { _ = os.Remove(dir) }

// maxLogBytes is the size from which a child's log is rotated at a start.
const maxLogBytes = 8 << 20

// rotateLogs renames large logs to *.1, over earlier ones.
func (h Home) rotateLogs() error {
	for _, child := range childNames {
		info, err := os.Stat(h.LogFile(child))
		if err != nil || info.Size() < maxLogBytes {
			continue
		}
		if err := os.Rename(h.LogFile(child), rotated(h.LogFile(child))); err != nil {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	return nil
}

func rotated(path string) string { return path + ".1" }

// secrets are generated once for each home and kept over restarts.
type secrets struct {
	MySQLPassword string `json:"mysql_password"`
	SeedKey       string `json:"seed_key"`     // 32 bytes in hex
	SessionKey    string `json:"session_key"`  // the same
	ProviderKey   string `json:"provider_key"` // bearer key of API and worker at the sandbox provider
	WebhookSecret string `json:"sandbox_webhook_secret"`
	Keys          Keys   `json:"keys"`
}

// loadSecrets reads the secrets of a home. It generates and stores those that are missing.
func (h Home) loadSecrets() (secrets, error) {
	var s secrets
	text, err := os.ReadFile(h.path(homeSecrets))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return s, fmt.Errorf("secrets: %w", err)
	default:
		if err := json.Unmarshal(text, &s); err != nil {
			return s, fmt.Errorf("secrets in %s: %w", h.path(homeSecrets), err)
		}
	}
	before := s
	fill(&s.MySQLPassword, func([]byte) string { return strings.ToLower(rand.Text()) })
	fill(&s.SeedKey, hex.EncodeToString)
	fill(&s.SessionKey, hex.EncodeToString)
	fill(&s.ProviderKey, func([]byte) string { return "sandbox_" + strings.ToLower(rand.Text()) })
	fill(&s.WebhookSecret, func(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) })
	if s != before {
		return s, h.saveSecrets(s)
	}
	return s, nil
}

// fill sets an empty secret to the encoding of 32 random bytes.
func fill(target *string, encode func([]byte) string) {
	if *target != "" {
		return
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	*target = encode(key)
}

func (h Home) saveSecrets(s secrets) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	if err := replaceFile(h.path(homeSecrets), text); err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	return nil
}
