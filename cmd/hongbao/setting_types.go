package main

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"hongbao/internal/access"
	"hongbao/internal/devstack"
	"hongbao/internal/pool"
	"hongbao/internal/risk"
)

// kind is a type of settings: its name in --help and its check. The error of a check says what the value must be, without
// the value, which may be secret.
type kind struct {
	name  string
	check func(value string) error
}

var (
	kindText      = kind{"string", checkText}
	kindToken     = kind{"key", checkToken}
	kindListen    = kind{"host:port", checkListen}
	kindAddress   = kind{"host:port", checkAddress}
	kindNodes     = kind{"host:port", checkNodes} // one or more, separated by commas
	kindRedisMode = kind{"mode", oneOf(string(pool.ModeSingle), string(pool.ModeCluster), string(pool.ModeSentinel))}
	kindRebuild   = kind{"auto|manual", oneOf(rebuildAuto, rebuildManual)}
	kindURL       = kind{"url", checkURL}
	kindBaseURL   = kind{"url", checkBaseURL} // prefix of other paths
	kindHostURL   = kind{"url", checkHostURL} // without a path
	kindDSN       = kind{"dsn", checkDSN}
	kindBool      = kind{"bool", checkBool}
	kindFile      = kind{"file", checkFile} // its user checks the content
	kindPort      = kind{"port", wholeNumber(1, 65535)}
	kindLanes     = kind{"int", wholeNumber(1, 256)}
	kindReplicas  = kind{"int", wholeNumber(0, 5)}
	// JSON numbers are exact up to 2^53 - 1.
	kindAmount         = kind{"fen", wholeNumber(0, 1<<53-1)}
	kindRate           = kind{"per second", wholeNumber(0, 1_000_000)}
	kindLimit          = kind{"number/span", checkLimit}
	kindRiskTimeout    = kind{"duration", checkRiskTimeout}
	kindRiskUnanswered = kind{"allow|refuse", oneOf(riskAllow, riskRefuse)}
	kindConns          = kind{"int", wholeNumber(1, 1_000_000)}
	kindConnsBound     = kind{"int", wholeNumber(0, 1_000_000)}
	kindClock          = kind{"hh:mm", checkClock}
	kindKey32          = kind{"hex", checkKey32}
	kindKeys32         = kind{"hex", checkKeys32} // several, separated by commas
	kindWebhookSecret  = kind{"secret", checkWebhookSecret}
	kindAppID          = kind{"id", checkAppID}
	kindAccount        = kind{"account", checkAccount}
	kindOwner          = kind{"name", checkOwner}
	kindRole           = kind{"role", oneOf(textsOf(access.Roles)...)}
	kindTokens         = kind{"owner=token", checkTokens}
	kindServerName     = kind{"name", checkServerName}
	kindLinks          = kind{"link=host:port", checkLinks} // several, separated by spaces
	kindSampler        = kind{"sampler", oneOf("always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
		"parentbased_traceidratio")}
	kindRatio        = kind{"ratio", checkRatio}
	kindCertificates = kind{"file", checkAuthorities} // PEM
	kindLogFormat    = kind{"format", oneOf("json", "text")}
	kindLogLevel     = kind{"level", oneOf("debug", "info", "warn", "error")}
)

// Decisions about a grab without an answer of the risk check.
const (
	riskAllow  = "allow"
	riskRefuse = "refuse"
)

// Modes of rebuilding lanes: by the worker, or by hongbao pool rebuild.
const (
	rebuildAuto   = "auto"
	rebuildManual = "manual"
)

func checkText(value string) error {
	for _, r := range value {
		if r < ' ' || r == 0x7f {
			return errors.New("holds a control character, such as a line end: remove it")
		}
	}
	return nil
}

func checkLimit(value string) error {
	_, err := access.ParseLimit(value)
	return err
}

// limit returns a setting that is checked to be a limit.
func (c config) limit(flag string) access.Limit {
	l, err := access.ParseLimit(c.text(flag))
	if err != nil {
		panic(flag + " was not checked: " + err.Error())
	}
	return l
}

func checkRiskTimeout(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d < risk.MinTimeout || d > risk.MaxTimeout {
		return fmt.Errorf("is not a duration from %v to %v, such as 300ms", risk.MinTimeout, risk.MaxTimeout)
	}
	return nil
}

// duration returns a setting that is checked to be a duration.
func (c config) duration(flag string) time.Duration {
	d, err := time.ParseDuration(c.text(flag))
	if err != nil {
		panic(flag + " was not checked: " + err.Error())
	}
	return d
}

func checkRatio(value string) error {
	if r, err := strconv.ParseFloat(value, 64); err != nil || !(r >= 0 && r <= 1) { // NaN is neither
		return errors.New("is not a number from 0 to 1, such as 0.01")
	}
	return nil
}

// checkToken checks a value of an HTTP header.
func checkToken(value string) error {
	for _, r := range value {
		if r <= ' ' || r > '~' {
			return errors.New("has other than visible ASCII characters: remove spaces and line ends")
		}
	}
	return nil
}

// checkFile checks the name of a file. The value may be the content of a key file by mistake, so no error holds it: base64
// is a valid file name.
func checkFile(value string) error {
	if checkText(value) != nil || strings.Contains(value, "-----BEGIN") {
		return errors.New("must be the name of a file, not what is in it")
	}
	return nil
}

// checkServerName checks the host name that a certificate must hold.
func checkServerName(value string) error {
	if net.ParseIP(value) == nil && (checkToken(value) != nil || strings.ContainsAny(value, ":/")) {
		return errors.New("is not the name of a host without a port, such as temporal.example.com")
	}
	return nil
}

func checkListen(value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return errors.New("is not host:port")
	}
	return wholeNumber(0, 65535)(port)
}

func checkAddress(value string) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil || host == "" || strings.Contains(host, "@") {
		return errors.New("is not host:port")
	}
	return wholeNumber(1, 65535)(port)
}

func checkNodes(value string) error {
	for address := range strings.SplitSeq(value, ",") {
		if checkAddress(address) != nil {
			return errors.New("is not host:port, or several separated by commas")
		}
	}
	return nil
}

func checkURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("is not an http or https URL")
	}
	if u.User != nil {
		return errors.New("holds a user name or password")
	}
	if port := u.Port(); port != "" && wholeNumber(1, 65535)(port) != nil {
		return errors.New("names a port that is not from 1 to 65535")
	}
	return nil
}

func checkBaseURL(value string) error {
	if err := checkURL(value); err != nil {
		return err
	}
	if strings.ContainsAny(value, "?#") {
		return errors.New("holds a query or fragment")
	}
	return nil
}

func checkHostURL(value string) error {
	if err := checkBaseURL(value); err != nil {
		return err
	}
	if u, err := url.Parse(value); err != nil || strings.Trim(u.Path, "/") != "" {
		return errors.New("is more than http(s)://host:port")
	}
	return nil
}

func checkDSN(value string) error {
	config, err := mysql.ParseDSN(value)
	if err != nil {
		return errors.New("is not user:password@tcp(host:port)/database")
	}
	if config.DBName == "" {
		return errors.New("names no database: write user:password@tcp(host:port)/database")
	}
	return nil
}

func checkBool(value string) error {
	if _, err := strconv.ParseBool(value); err != nil {
		return errors.New("is neither 1, true, 0 nor false")
	}
	return nil
}

func wholeNumber(low, high int64) func(string) error {
	return func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < low || n > high || strconv.FormatInt(n, 10) != value {
			return fmt.Errorf("is not a whole number from %d to %d", low, high)
		}
		return nil
	}
}

// kindDays returns the type of a retention in days: 0 for unlimited, or at least least.
func kindDays(least int64) kind {
	const most = 36_500
	enough := wholeNumber(least, most)
	return kind{"days", func(value string) error {
		if value != "0" && enough(value) != nil {
			return fmt.Errorf("is not a whole number from %d to %d, and not 0 for unlimited", least, most)
		}
		return nil
	}}
}

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(values, value) {
			return nil
		}
		meant := ""
		if best := nearest(value, values); distance(value, best) <= maxTypos {
			meant = " (did you mean " + best + "?)"
		}
		return errors.New("is none of " + strings.Join(values, ", ") + meant)
	}
}

func checkKey32(value string) error {
	key, err := hex.DecodeString(value)
	if err != nil || len(key) != 32 {
		return errors.New("is not 64 hex digits (32 bytes)")
	}
	return nil
}

func checkKeys32(value string) error {
	for key := range strings.SplitSeq(value, ",") {
		if checkKey32(key) != nil {
			return errors.New("is not 64 hex digits (32 bytes), or several separated by commas")
		}
	}
	return nil
}

func checkWebhookSecret(value string) error {
	encoded, found := strings.CutPrefix(value, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil {
		return errors.New("is not whsec_ and base64 of 24 bytes or more")
	}
	if len(key) < 24 {
		return errors.New("holds a key of less than 24 bytes: write whsec_ and base64 of 24 bytes or more")
	}
	return nil
}

func checkAppID(value string) error {
	if !access.ValidAppID(value) {
		return errors.New("is not 1 to 32 characters of a-z, 0-9, - and _, a letter or digit first")
	}
	return nil
}

func checkAccount(value string) error {
	if len(value) > 64 || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("is not 1 to 64 visible ASCII characters")
	}
	return nil
}

func checkOwner(value string) error {
	if !access.ValidOwner(value) {
		return errors.New("is not 1 to 64 visible characters")
	}
	return nil
}

func checkClock(value string) error {
	if _, err := time.Parse(clockLayout, value); err != nil {
		return errors.New("is not a time of day, 00:00 to 23:59")
	}
	return nil
}

const clockLayout = "15:04"

// clock returns the hour and minute of a setting that is checked to be a time of day.
func clock(value string) (hour, minute int) {
	at, err := time.Parse(clockLayout, value)
	if err != nil {
		panic("time of day was not checked: " + err.Error())
	}
	return at.Hour(), at.Minute()
}

func checkLinks(value string) error {
	_, err := devstack.ParseLinks(value)
	return err
}

func checkTokens(value string) error {
	_, err := parseTokens(value)
	return err
}

// Secret is a setting that must not be displayed. It formats and logs as [redacted]; Reveal returns the value.
type Secret struct{ value string }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return s.value }

const redacted = "[redacted]"

func (s Secret) String() string               { return redacted }
func (s Secret) GoString() string             { return redacted }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// deriveKey derives the key of one use from a secret (HKDF-SHA256). Keys of different uses are independent.
func deriveKey(secret [32]byte, use string) [32]byte {
	derived, err := hkdf.Key(sha256.New, secret[:], nil, use, 32)
	if err != nil {
		panic("derive the key of " + use + ": " + err.Error()) // cannot fail with this length
	}
	return [32]byte(derived)
}

// keys32 decodes a secret that kindKeys32 has checked.
func keys32(s Secret) (keys [][32]byte) {
	for key := range strings.SplitSeq(s.value, ",") {
		keys = append(keys, key32(Secret{key}))
	}
	return keys
}

// key32 decodes a secret that kindKey32 has checked.
func key32(s Secret) [32]byte {
	var key [32]byte
	if n, err := hex.Decode(key[:], []byte(s.value)); err != nil || n != len(key) {
		panic("a key of 32 bytes was not checked")
	}
	return key
}
