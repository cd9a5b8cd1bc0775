package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/pool"
)

// validSettings is a complete environment for every command.
func validSettings() map[string]string {
	return map[string]string{
		"HONGBAO_MYSQL_DSN":              "hongbao:s3cret-dsn@tcp(127.0.0.1:3306)/hongbao?parseTime=true",
		"HONGBAO_REDIS_ADDR":             "127.0.0.1:16379",
		"HONGBAO_SEED_KEY":               strings.Repeat("5eed", 16),
		"HONGBAO_SESSION_KEY":            strings.Repeat("5e55", 16) + "," + strings.Repeat("01d5", 16),
		"HONGBAO_PROVIDER_URL":           "http://127.0.0.1:8090",
		"HONGBAO_PROVIDER_KEY":           "s3cret-provider",
		"HONGBAO_SANDBOX_WEBHOOK_SECRET": "whsec_czNjcmV0LXdlYmhvb2stczNjcmV0LXdlYmhvb2s=",
		"HONGBAO_PROVIDER_DB":            "/tmp/provider.db",
		"HONGBAO_TEMPORAL_TLS":           "true",
		"HONGBAO_TEMPORAL_API_KEY":       "s3cret-temporal",
		"HONGBAO_APP_KEY":                "s3cret-app",
		"HONGBAO_FINANCE_KEY":            "s3cret-finance",
		"HONGBAO_KEY_ROLE":               "app",
		"HONGBAO_ENSURE_KEYS":            "demo=hb_app_abcdefghijkl_ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZDAQQJZG",
	}
}

// read reads the settings of a command from an environment and flags.
func read(t *testing.T, command string, env map[string]string, args ...string) (config, error) {
	t.Helper()
	var environ []string
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	var c config
	cmd := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		c, err = readConfig(cmd, command, newEnvironment(environ))
		return err
	}
	addSettings(cmd.Flags(), command)
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	return c, cmd.Execute()
}

func TestReadConfig(t *testing.T) {
	t.Run("FlagBeatsVariableBeatsDefault", func(t *testing.T) {
		env := validSettings()
		for _, step := range []struct {
			variable string
			args     []string
			want     int
		}{
			{"", nil, 8},
			{"", []string{"--redis-mode=cluster"}, 64},
			{"7", []string{"--redis-mode=cluster"}, 7},
			{"7", []string{"--lanes", "9"}, 9},
			{"7", []string{"--lanes=8"}, 8}, // the default, but said aloud
		} {
			env["HONGBAO_LANES"] = step.variable
			c, err := read(t, cmdAPI, env, step.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := redisConfig(c); err != nil || got.Lanes != step.want {
				t.Errorf("variable %q, flags %q: %d lanes, %v, want %d", step.variable, step.args, got.Lanes, err, step.want)
			}
		}
	})

	// One line a mistake: what is set, and what the error must hold.
	for _, c := range []struct{ command, name, value, want string }{
		{cmdAPI, "HONGBAO_LANES", "0", "HONGBAO_LANES (--lanes) is not a whole number from 1 to 256"},
		{cmdAPI, "HONGBAO_LANES", "257", "from 1 to 256"},
		{cmdAPI, "HONGBAO_LANES", "6.4", "from 1 to 256"},
		{cmdAPI, "HONGBAO_API_LISTEN", "8080", "HONGBAO_API_LISTEN (--listen) is not host:port"},
		{cmdAPI, "HONGBAO_API_LISTEN", "127.0.0.1:8081", "HONGBAO_API_LISTEN (--listen) and HONGBAO_STAFF_LISTEN (--staff-listen) are both"},
		{cmdAPI, "HONGBAO_REDIS_ADDR", ":6379", "HONGBAO_REDIS_ADDR"},
		{cmdAPI, "HONGBAO_REDIS_ADDR", "localhost:0", "HONGBAO_REDIS_ADDR"},
		{cmdAPI, "HONGBAO_REDIS_ADDR", "localhost:6379,", "HONGBAO_REDIS_ADDR (--redis-addr) is not host:port, or several"},
		{cmdWorker, "HONGBAO_REDIS_ADDR", "localhost:6379,localhost:6380", "needs HONGBAO_REDIS_MODE (--redis-mode) cluster or sentinel"},
		{cmdAPI, "HONGBAO_REDIS_MODE", "primary", "HONGBAO_REDIS_MODE (--redis-mode) is none of single, cluster, sentinel"},
		{cmdAPI, "HONGBAO_REDIS_MODE", "sentinel", "HONGBAO_REDIS_MASTER (--redis-master) need each other"},
		{cmdWorker, "HONGBAO_REDIS_MASTER", "hongbao", "HONGBAO_REDIS_MASTER (--redis-master) need each other"},
		{cmdRecover, "HONGBAO_REDIS_USERNAME", "hongbao", "HONGBAO_REDIS_USERNAME (--redis-username) needs HONGBAO_REDIS_PASSWORD " +
			"(--redis-password)"},
		{cmdPoolStatus, "HONGBAO_REDIS_USERNAME", "a\tb", "HONGBAO_REDIS_USERNAME (--redis-username) holds a control character"},
		{cmdPoolRebuild, "HONGBAO_REDIS_PASSWORD", "a\n", "HONGBAO_REDIS_PASSWORD (--redis-password) holds a control character"},
		{cmdAPI, "HONGBAO_REDIS_SENTINEL_PASSWORD", "s3cret", "HONGBAO_REDIS_SENTINEL_PASSWORD (--redis-sentinel-password) needs " +
			"HONGBAO_REDIS_MODE (--redis-mode) sentinel"},
		{cmdWorker, "HONGBAO_REDIS_TLS", "yes", "HONGBAO_REDIS_TLS (--redis-tls) is neither 1, true, 0 nor false"},
		{cmdWorker, "HONGBAO_REDIS_CA_FILE", "config_test.go", "HONGBAO_REDIS_CA_FILE (--redis-ca-file) holds no PEM certificate"},
		{cmdDoctor, "HONGBAO_REDIS_CA_FILE", "/nowhere/ca.pem", "HONGBAO_REDIS_CA_FILE (--redis-ca-file) cannot be read (no such file or " +
			"directory): \"/nowhere/ca.pem\""},
		{cmdAPI, "HONGBAO_REDIS_CA_FILE", "testdata", "HONGBAO_REDIS_CA_FILE (--redis-ca-file) cannot be read"},
		{cmdWorker, "HONGBAO_REDIS_CA_FILE", "-----BEGIN CERTIFICATE-----", "HONGBAO_REDIS_CA_FILE (--redis-ca-file) must be the name of a " +
			"file, not what is in it"},
		{cmdAPI, "HONGBAO_REDIS_ADDR", "redis://u:s3cret-url@127.0.0.1:6379/0", "HONGBAO_REDIS_ADDR (--redis-addr) is not host:port, or several"},
		{cmdWorker, "HONGBAO_REDIS_ADDR", "s3cret-url@127.0.0.1:6379", "HONGBAO_REDIS_ADDR (--redis-addr) is not host:port, or several"},
		{cmdPoolStatus, "HONGBAO_REDIS_ADDR", "", "HONGBAO_REDIS_ADDR (--redis-addr) is required"},
		{cmdPoolRebuild, "HONGBAO_REDIS_ADDR", "", "HONGBAO_REDIS_ADDR (--redis-addr) is required"},
		{cmdAPI, "HONGBAO_MYSQL_DSN", "", "HONGBAO_MYSQL_DSN (--mysql-dsn) is required"},
		{cmdAPI, "HONGBAO_MYSQL_DSN", "mysql://localhost/hongbao", "HONGBAO_MYSQL_DSN"},
		{cmdAPI, "HONGBAO_MYSQL_DSN", "u:p@tcp(localhost:3306)/", "names no database"},
		{cmdAPI, "HONGBAO_SEED_KEY", strings.Repeat("0", 63), "64 hex digits"},
		{cmdAPI, "HONGBAO_SEED_KEY", strings.Repeat("g", 64), "64 hex digits"},
		{cmdAPI, "HONGBAO_SESSION_KEY", "", "HONGBAO_SESSION_KEY (--session-key) is required"},
		{cmdAPI, "HONGBAO_SESSION_KEY", strings.Repeat("0", 64) + ",", "64 hex digits (32 bytes), or several separated by commas"},
		{cmdAPI, "HONGBAO_SESSION_KEY", strings.Repeat("0", 64) + ", " + strings.Repeat("1", 64), "64 hex digits"},
		{cmdAPI, "HONGBAO_PROVIDER_URL", "127.0.0.1:8090", "not an http or https URL"},
		{cmdAPI, "HONGBAO_PROVIDER_URL", "ftp://127.0.0.1", "not an http or https URL"},
		{cmdAPI, "HONGBAO_PROVIDER_URL", "http://u:s3cret-url@127.0.0.1", "user name or password"},
		{cmdAPI, "HONGBAO_PROVIDER_URL", "http://127.0.0.1:8090/api", "HONGBAO_PROVIDER_URL (--provider-url) is more than http(s)://host:port"},
		{cmdWorker, "HONGBAO_PROVIDER_URL", "http://127.0.0.1:8090?key=1", "holds a query or fragment"},
		{cmdDoctor, "HONGBAO_PROVIDER_URL", "http://127.0.0.1:80900", "port that is not from 1 to 65535"},
		{cmdFinance, "HONGBAO_STAFF_URL", "http://127.0.0.1:8081/#top", "HONGBAO_STAFF_URL (--staff-url) holds a query or fragment"},
		{cmdPackets, "HONGBAO_URL", "http://127.0.0.1:8080/?a=b", "HONGBAO_URL (--url) holds a query or fragment"},
		{cmdAPI, "HONGBAO_SANDBOX_WEBHOOK_SECRET", "whsec_%", "whsec_ and base64"},
		{cmdAPI, "HONGBAO_SANDBOX_WEBHOOK_SECRET", "c2VjcmV0", "whsec_ and base64"},
		{cmdAPI, "HONGBAO_SANDBOX_WEBHOOK_SECRET", "whsec_c2VjcmV0", "24 bytes"},
		{cmdAPI, "HONGBAO_APPROVAL_AMOUNT", "-1", "HONGBAO_APPROVAL_AMOUNT"},
		{cmdAPI, "HONGBAO_APPROVAL_AMOUNT", "9007199254740992", "HONGBAO_APPROVAL_AMOUNT"},
		{cmdAPI, "HONGBAO_LIMIT_USER", "20", "HONGBAO_LIMIT_USER (--limit-user) is not 0, or a number and a span of time such as 20/1m"},
		{cmdAPI, "HONGBAO_LIMIT_ADDRESS", "0/1s", "HONGBAO_LIMIT_ADDRESS (--limit-address) is not 0, or"},
		{cmdAPI, "HONGBAO_LIMIT_KEY", "1/25h", "HONGBAO_LIMIT_KEY (--limit-key) is not 0, or"},
		{cmdAPI, "HONGBAO_RISK_URL", "risk:80", "HONGBAO_RISK_URL (--risk-url) is not an http or https URL"},
		{cmdAPI, "HONGBAO_RISK_URL", "http://risk/check", "HONGBAO_RISK_URL (--risk-url) and HONGBAO_RISK_KEY (--risk-key) need each other"},
		{cmdAPI, "HONGBAO_RISK_KEY", "s3cret-risk", "HONGBAO_RISK_URL (--risk-url) and HONGBAO_RISK_KEY (--risk-key) need each other"},
		{cmdAPI, "HONGBAO_RISK_KEY", "s3cret risk", "HONGBAO_RISK_KEY (--risk-key) has other than visible ASCII"},
		{cmdAPI, "HONGBAO_RISK_TIMEOUT", "3s", "HONGBAO_RISK_TIMEOUT (--risk-timeout) is not a duration from 10ms to 2s"},
		{cmdAPI, "HONGBAO_RISK_TIMEOUT", "300", "HONGBAO_RISK_TIMEOUT (--risk-timeout) is not a duration from 10ms to 2s"},
		{cmdAPI, "HONGBAO_RISK_UNANSWERED", "maybe", "HONGBAO_RISK_UNANSWERED (--risk-unanswered) is none of allow, refuse"},
		{cmdAPI, "HONGBAO_ALLOW_VOLATILE_REDIS", "maybe", "HONGBAO_ALLOW_VOLATILE_REDIS"},
		{cmdAPI, "HONGBAO_LOG_FORMAT", "xml", "is none of json, text"},
		{cmdAPI, "HONGBAO_LOG_LEVEL", "wran", `is none of debug, info, warn, error (did you mean warn?): "wran"`},
		{cmdWorker, "HONGBAO_LOG_LEVEL", "loud", "is none of debug, info, warn, error"},
		{cmdWorker, "HONGBAO_TEMPORAL_NAMESPACE", "a\nb", "control character"},
		{cmdAPI, "HONGBAO_TEMPORAL_TLS", "on", "HONGBAO_TEMPORAL_TLS (--temporal-tls) is neither 1, true, 0 nor false"},
		{cmdAPI, "HONGBAO_TEMPORAL_TLS", "", "HONGBAO_TEMPORAL_API_KEY (--temporal-api-key) needs HONGBAO_TEMPORAL_TLS (--temporal-tls)"},
		{cmdRecover, "HONGBAO_TEMPORAL_TLS", "0", "HONGBAO_TEMPORAL_API_KEY (--temporal-api-key) needs HONGBAO_TEMPORAL_TLS (--temporal-tls)"},
		{cmdPoolRebuild, "HONGBAO_TEMPORAL_CERT_FILE", "a.pem", "HONGBAO_TEMPORAL_CERT_FILE (--temporal-cert-file) and " +
			"HONGBAO_TEMPORAL_KEY_FILE " +
			"(--temporal-key-file) need each other"},
		{cmdDoctor, "HONGBAO_TEMPORAL_KEY_FILE", "a.key", "HONGBAO_TEMPORAL_CERT_FILE (--temporal-cert-file) and HONGBAO_TEMPORAL_KEY_FILE " +
			"(--temporal-key-file) need each other"},
		{cmdWorker, "HONGBAO_TEMPORAL_CA_FILE", "nowhere/ca.pem", "HONGBAO_TEMPORAL_CA_FILE (--temporal-ca-file) cannot be used: open " +
			"nowhere/ca.pem"},
		{cmdWorker, "HONGBAO_TEMPORAL_CA_FILE", "a\nb", "HONGBAO_TEMPORAL_CA_FILE (--temporal-ca-file) must be the name of a file, not what " +
			"is in it"},
		{cmdWorker, "HONGBAO_TEMPORAL_API_KEY", "a b", "HONGBAO_TEMPORAL_API_KEY (--temporal-api-key) has other than visible ASCII"},
		{cmdWorker, "HONGBAO_TEMPORAL_SERVER_NAME", "temporal:7233", "HONGBAO_TEMPORAL_SERVER_NAME (--temporal-server-name) is not the name " +
			"of a host"},
		{cmdWorker, "HONGBAO_RECONCILE_AT", "24:00", "HONGBAO_RECONCILE_AT (--reconcile-at) is not a time of day"},
		{cmdWorker, "HONGBAO_RETAIN_BREAKS", "399", "HONGBAO_RETAIN_BREAKS (--retain-breaks) is not a whole number from 400 to 36500, and not 0"},
		{cmdWorker, "HONGBAO_RETAIN_STAFF_IDEMPOTENCY", "-1", "is not a whole number from 381"},
		{cmdProvider, "HONGBAO_PROVIDER_DB", "", "HONGBAO_PROVIDER_DB (--db) is required"},
		{cmdAppsCreate, "HONGBAO_APP_NAME", "a\tb", "HONGBAO_APP_NAME (--name) is not 1 to 64 visible characters"},
		{cmdKeysDirectCreate, "HONGBAO_KEY_ROLE", "root", "is none of app, finance, ops, auditor, admin"},
		{cmdKeysDirectCreate, "HONGBAO_KEY_APP", "Mall", "HONGBAO_KEY_APP (--app) is not 1 to 32 characters of a-z"},
		{cmdKeysEnsure, "HONGBAO_ENSURE_KEYS", "", "HONGBAO_ENSURE_KEYS (--keys) is required"},
		{cmdKeysEnsure, "HONGBAO_ENSURE_KEYS", "demo", "holds no token in pair 1"},
		{cmdDev, "HONGBAO_PORT_API", "8081", "HONGBAO_PORT_API (--port-api) and HONGBAO_PORT_STAFF (--port-staff) are both"},
		{cmdDev, "HONGBAO_PORT_TEMPORAL_UI", "65536", "HONGBAO_PORT_TEMPORAL_UI (--port-temporal-ui)"},
		{cmdMigrate, "HONGBAO_LANE", "64", "unknown environment variable HONGBAO_LANE; did you mean HONGBAO_LANES?"},
		{cmdDev, "HONGBAO_HOMES", "x", "did you mean HONGBAO_HOME?"},
	} {
		t.Run(c.command+"/"+c.name+"="+strings.ReplaceAll(c.value, "/", "_"), func(t *testing.T) {
			env := validSettings()
			if _, err := read(t, c.command, env); err != nil {
				t.Fatalf("without the mistake: %v", err)
			}
			env[c.name] = c.value
			_, err := read(t, c.command, env)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}

	t.Run("AllMistakesAtOnce", func(t *testing.T) {
		_, err := read(t, cmdAPI, map[string]string{"HONGBAO_NONSENSE": "1", "HONGBAO_LANES": "x"}, "--listen=nowhere")
		for _, want := range []string{"HONGBAO_NONSENSE", "HONGBAO_LANES", "HONGBAO_API_LISTEN", "HONGBAO_MYSQL_DSN", "HONGBAO_SEED_KEY"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no word of %s in %q", want, err)
			}
		}
	})

	t.Run("DevEnvIsKnown", func(t *testing.T) {
		env := validSettings()
		for _, name := range scriptVariables {
			env[name] = ""
		}
		if _, err := read(t, cmdAPI, env); err != nil {
			t.Error(err)
		}
	})
}

// TestSecrets looks for secrets in everything that shows settings.
func TestSecrets(t *testing.T) {
	env := validSettings()
	c, err := read(t, cmdAPI, env)
	if err != nil {
		t.Fatal(err)
	}
	secret := c.secret("mysql-dsn")
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("started", slog.Any("dsn", secret), slog.Any("config", c))
	_, _ = fmt.Fprintf(&out, "%v %+v %#v %s %q", secret, c, secret, secret, secret)
	encoded, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	for name := range env {
		env[name] = "s3cret\x01" // wrong in every way
	}
	_, err = read(t, cmdAPI, env)
	_, _ = fmt.Fprint(&out, strings.ReplaceAll(fmt.Sprint(err), fmt.Sprintf("%q", env["HONGBAO_PROVIDER_URL"]), "")) // not a secret
	if strings.Contains(out.String(), "s3cret") {
		t.Errorf("a secret is shown: %s", out.String())
	}
	if secret.Reveal() != validSettings()["HONGBAO_MYSQL_DSN"] {
		t.Error("the secret itself has changed")
	}
}

// TestRedisConfig: every command that reaches Redis uses the same settings, and shows no
// password.
func TestRedisConfig(t *testing.T) {
	authority := stacktest.NewAuthority(t)
	env := validSettings()
	for name, value := range map[string]string{
		"HONGBAO_REDIS_ADDR": "a:1,b:2", "HONGBAO_REDIS_MODE": "sentinel", "HONGBAO_REDIS_MASTER": "m", "HONGBAO_LANES": "32",
		"HONGBAO_REDIS_USERNAME": "u", "HONGBAO_REDIS_PASSWORD": "s3cret-own", "HONGBAO_REDIS_SENTINEL_PASSWORD": "s3cret-sentinel",
		"HONGBAO_REDIS_TLS": "true", "HONGBAO_REDIS_CA_FILE": authority.File,
	} {
		env[name] = value
	}
	for _, command := range redisCommands {
		c, err := read(t, command, env)
		if err != nil {
			t.Fatal(err)
		}
		got, err := redisConfig(c)
		if err != nil || got.Access.Authorities == nil || !got.Access.Authorities.Equal(authority.Pool) {
			t.Errorf("%s: %v, authorities %v", command, err, got.Access.Authorities)
		}
		got.Access.Authorities = nil
		want := pool.Config{Addr: "a:1,b:2", Mode: pool.ModeSentinel, Master: "m", Lanes: 32,
			Access: pool.Access{Username: "u", Password: "s3cret-own", SentinelPassword: "s3cret-sentinel", TLS: true}}
		if got != want {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("started", slog.Any("config", got))
		_, _ = fmt.Fprintf(&out, "%v %+v %#v", got, c, poolConfig{Redis: got})
		if strings.Contains(out.String(), "s3cret") {
			t.Errorf("a secret is shown: %s", &out)
		}
	}
	delete(env, "HONGBAO_REDIS_TLS")
	if _, err := read(t, cmdAPI, env); err == nil ||
		!strings.Contains(err.Error(), "HONGBAO_REDIS_CA_FILE (--redis-ca-file) needs HONGBAO_REDIS_TLS (--redis-tls)") {
		t.Errorf("authorities without TLS: %v", err)
	}
}

// TestHelp compares what --help says with the table.
func TestHelp(t *testing.T) {
	paths := map[string][]string{
		cmdAPI: {"api"}, cmdWorker: {"worker"}, cmdProvider: {"provider"}, cmdProviderTest: {"provider", "test"},
		cmdMigrate:    {"migrate", "up"},
		cmdAppsCreate: {"apps", "create"}, cmdAppsList: {"apps", "list"}, cmdKeysDirectCreate: {"keys", "direct", "create"},
		cmdKeysToken:  {"keys", "token"},
		cmdKeysEnsure: {"keys", "ensure"}, cmdKeysDirectList: {"keys", "direct", "list"}, cmdKeys: {"keys", "list"},
		cmdDev: {"dev"}, cmdDevSetup: {"dev", "setup"}, cmdDevState: {"dev", "status"},
		cmdPackets: {"packets", "claims"}, cmdAudit: {"audit", "verify"}, cmdLedger: {"ledger", "verify"}, cmdRecover: {"recover"},
		cmdPoolStatus: {"pool", "status"}, cmdPoolRebuild: {"pool", "rebuild"},
		cmdDoctor: {"doctor"}, cmdFinance: {"payouts", "show"}, cmdOps: {"providers", "list"}, cmdAuditor: {"audit", "list"},
	}
	// flags that are no settings
	own := map[string]int{cmdPackets: 3, cmdKeys: 4, cmdAudit: 5, cmdLedger: 1, cmdRecover: 5, cmdPoolRebuild: 2,
		cmdDoctor: 1, cmdProviderTest: 1, cmdFinance: 2,
		cmdOps: 2, cmdAuditor: 10}
	for command, path := range paths {
		t.Run(command, func(t *testing.T) {
			var out bytes.Buffer
			if code := execute(t.Context(), append(path, "--help"), nil, &out, io.Discard); code != exitOK {
				t.Fatalf("exit code %d", code)
			}
			for _, s := range settingsOf(command) {
				line := lineWith(out.String(), "      --"+s.flag+" ")
				if !strings.Contains(line, s.env) || !strings.Contains(line, s.usage) || !strings.Contains(line, s.fallback) {
					t.Errorf("--%s: help says %q", s.flag, line)
				}
			}
			flags := strings.Count(out.String(), "\n      --")
			if want := len(settingsOf(command)) + own[command]; flags != want {
				t.Errorf("help lists %d flags, not %d", flags, want)
			}
		})
	}
	for _, s := range settings {
		for _, command := range s.commands {
			if paths[command] == nil {
				t.Errorf("%s belongs to an unknown command %q", s.env, command)
			}
		}
	}
}

// lineWith returns the first line that holds text.
func lineWith(output, text string) string {
	for line := range strings.Lines(output) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// TestSettings checks the table itself.
func TestSettings(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings {
		if seen[s.env] {
			t.Errorf("%s stands twice", s.env)
		}
		seen[s.env] = true
		if s.fallback != "" && s.kind.check(s.fallback) != nil {
			t.Errorf("%s: the default %q is not valid", s.env, s.fallback)
		}
		if slices.Contains(scriptVariables, s.env) {
			t.Errorf("%s is a setting and in the other list", s.env)
		}
		if s.secret && s.fallback != "" {
			t.Errorf("%s: a secret with a default", s.env)
		}
	}
}

func TestExecute(t *testing.T) {
	for _, c := range []struct {
		args   string
		env    []string
		code   int
		stderr string
	}{
		{"version", nil, exitOK, ""},
		{"version extra", nil, exitUsage, "extra"},
		{"nonsense", nil, exitUsage, "nonsense"},
		{"api --nonsense", nil, exitUsage, "nonsense"},
		{"api", nil, exitUsage, "HONGBAO_MYSQL_DSN"},
		{"apps list", []string{"HONGBAO_NONSENSE=1"}, exitUsage, "unknown environment variable HONGBAO_NONSENSE"},
		{"dev status --home " + filepath.Join(t.TempDir(), "none"), []string{"HONGBAO_NONSENSE=1"}, exitFailed,
			"warning: unknown environment variable HONGBAO_NONSENSE; did you mean "},
		{"dev stop --home " + filepath.Join(t.TempDir(), "none"), []string{"HONGBAO_NONSENSE=1"}, exitOK,
			"warning: unknown environment variable HONGBAO_NONSENSE; did you mean "},
		{"dev reset --home " + filepath.Join(t.TempDir(), "none"), []string{"HONGBAO_NONSENSE=1"}, exitOK,
			"warning: unknown environment variable HONGBAO_NONSENSE; did you mean "},
		{"dev --port-api 0", []string{"HONGBAO_NONSENSE=1"}, exitUsage, "warning: unknown environment variable HONGBAO_NONSENSE; did you mean "},
		{"dev status --home " + filepath.Join(t.TempDir(), "none"), nil, exitFailed, ""},
		{"dev stop --home " + filepath.Join(t.TempDir(), "none"), nil, exitOK, ""},
		{"dev reset --home " + filepath.Join(t.TempDir(), "none"), nil, exitOK, ""},
		{"dev reset --home " + t.TempDir(), nil, exitFailed, "not a folder of hongbao dev"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := execute(t.Context(), strings.Fields(c.args), c.env, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, &stdout, &stderr)
			}
			if !strings.Contains(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), c.stderr)
			}
		})
	}
	if _, err := os.Stat(".hongbao"); err == nil {
		t.Error("a command has made a home folder")
	}
}

// TestApprovalAmount: 0 is from the first fen on, and not the default of who has set nothing.
func TestApprovalAmount(t *testing.T) {
	for value, want := range map[string]money.Fen{"": api.DefaultApprovalAmount, "0": 1, "1": 1, "2": 2, "9007199254740991": money.Max} {
		env := validSettings()
		if value != "" {
			env["HONGBAO_APPROVAL_AMOUNT"] = value
		}
		c, err := read(t, cmdAPI, env)
		if got := approvalAmount(c.number("approval-amount")); err != nil || got != want {
			t.Errorf("%q: from %d fen on, want %d, %v", value, got, want, err)
		}
	}
}

// TestLimitSettings: limits are off unless they are set.
func TestLimitSettings(t *testing.T) {
	env := validSettings()
	c, err := read(t, cmdAPI, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"limit-user", "limit-address", "limit-key"} {
		if got := c.limit(flag); got != (access.Limit{}) {
			t.Errorf("%s: %+v", flag, got)
		}
	}
	env["HONGBAO_LIMIT_USER"], env["HONGBAO_LIMIT_KEY"] = "20/1m", "0"
	if c, err = read(t, cmdAPI, env, "--limit-address", "5/1s"); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]access.Limit{"limit-user": {N: 20, Span: time.Minute}, "limit-address": {N: 5, Span: time.Second},
		"limit-key": {}} {
		if got := c.limit(flag); got != want {
			t.Errorf("%s: %+v, want %+v", flag, got, want)
		}
	}
}
