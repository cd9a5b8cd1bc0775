package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
	"hongbao/worker"
)

// written puts texts into files of a folder of the test's own and returns their names.
func written(t *testing.T, texts ...[]byte) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		names = append(names, filepath.Join(dir, fmt.Sprintf("%d.pem", i)))
		if err := os.WriteFile(names[i], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// TestTemporalFiles: files that are no certificate, no key, or the key of another
// certificate are named before anything is done, by the setting at fault alone, and
// nothing of what is in them.
func TestTemporalFiles(t *testing.T) {
	authority := stacktest.NewAuthority(t)
	one, two := authority.Issue(t, "one", time.Hour), authority.Issue(t, "two", time.Hour)
	both := append(append([]byte(nil), one.Key...), one.Cert...)
	names := written(t, authority.PEM, one.Cert, one.Key, two.Key, []byte("s3cret"),
		[]byte("-----BEGIN CERTIFICATE-----\nczNjcmV0\n-----END CERTIFICATE-----\n"), both,
		[]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nczNjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	lines := strings.Split(string(one.Key), "\n")
	ca, cert, key, other, text, broken, whole, sealed := names[0], names[1], names[2], names[3], names[4], names[5], names[6], names[7]
	for _, row := range []struct{ ca, cert, key, want string }{
		{ca, cert, key, ""},
		{"", cert, key, ""},
		{ca, "", "", ""},
		{ca, whole, whole, ""}, // both in one file
		{text, cert, key, "HONGBAO_TEMPORAL_CA_FILE (--temporal-ca-file) cannot be used: the file holds no usable certificate in PEM"},
		{broken, cert, key, "HONGBAO_TEMPORAL_CA_FILE (--temporal-ca-file) cannot be used: the file holds no usable certificate in PEM"},
		{filepath.Dir(ca), cert, key, "HONGBAO_TEMPORAL_CA_FILE (--temporal-ca-file) cannot be used: read"},
		{ca, text, key, "HONGBAO_TEMPORAL_CERT_FILE (--temporal-cert-file) cannot be used: the file holds no usable certificate in PEM"},
		{ca, broken, key, "HONGBAO_TEMPORAL_CERT_FILE (--temporal-cert-file) cannot be used: the file holds no usable certificate in PEM"},
		{ca, key, cert, "HONGBAO_TEMPORAL_CERT_FILE (--temporal-cert-file) cannot be used: the file holds no usable certificate in PEM"},
		{ca, cert, text, "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: the file holds no private key in PEM"},
		{ca, cert, cert, "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: the file holds no private key in PEM"},
		{ca, cert, other, "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: the file holds no key that can be used with the " +
			"client certificate"},
		{ca, cert, sealed, "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: the file holds no key that can be used with the " +
			"client certificate"},
		{ca, cert, filepath.Join(filepath.Dir(key), "none"), "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: open"},
		{ca, cert, "-----BEGIN PRIVATE KEY-----s3cret", "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) must be the name of a file, not what " +
			"is in it"},
		{ca, cert, string(one.Key), "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) must be the name of a file, not what is in it"},
		{ca, cert, base64.StdEncoding.EncodeToString(one.Key), "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: open"},
		{ca, cert, lines[1], "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: open"},
		{ca, cert, "s3cret", "HONGBAO_TEMPORAL_KEY_FILE (--temporal-key-file) cannot be used: open"}, // the API key
	} {
		env := validSettings()
		env["HONGBAO_TEMPORAL_CA_FILE"], env["HONGBAO_TEMPORAL_CERT_FILE"], env["HONGBAO_TEMPORAL_KEY_FILE"] = row.ca, row.cert, row.key
		_, err := read(t, cmdWorker, env)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v", row, err)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), lines[1]) ||
			strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(one.Key))) {
			t.Errorf("what is in a file is shown: %v", err)
		}
		// Without TLS each of them is refused, whatever is in it.
		env["HONGBAO_TEMPORAL_TLS"], env["HONGBAO_TEMPORAL_SERVER_NAME"] = "false", "x"
		_, err = read(t, cmdWorker, env)
		for name, value := range map[string]string{"CA_FILE": row.ca, "CERT_FILE": row.cert, "KEY_FILE": row.key, "API_KEY": "x",
			"SERVER_NAME": "x"} {
			if refused := "HONGBAO_TEMPORAL_" + name + " (--temporal-" + kebab(name) +
				") needs HONGBAO_TEMPORAL_TLS (--temporal-tls)"; value != "" && !strings.Contains(fmt.Sprint(err), refused) {
				t.Errorf("without TLS, %s %q: %v", name, value, err)
			}
		}
	}
}

// cloud is a Temporal server behind TLS, and behind a gateway that asks for keys.
type cloud struct {
	t              *testing.T
	front, gateway string
	namespace      string
	ca             string // file
	key, reader    string
	issue          func(lasts time.Duration) (cert, key string) // files of a client certificate
}

const cloudName = "temporal.test"

func newCloud(t *testing.T) *cloud {
	backend, ns := stacktest.Temporal(t)
	servers, clients := stacktest.NewAuthority(t), stacktest.NewAuthority(t)
	own := tls.Config{Certificates: []tls.Certificate{servers.Issue(t, cloudName, time.Hour).TLS(t)}}
	mutual := own.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool
	c := &cloud{t: t, namespace: ns, ca: written(t, servers.PEM)[0], key: "s3cret-" + rand.Text(), reader: "s3cret-" + rand.Text()}
	c.front, c.gateway = stacktest.NewFront(t, backend, mutual).Addr, stacktest.NewGateway(t, backend, &own, c.key, c.reader)
	c.issue = func(lasts time.Duration) (string, string) {
		p := clients.Issue(t, "hongbao", lasts)
		names := written(t, p.Cert, p.Key)
		return names[0], names[1]
	}
	return c
}

// env is how the server at an address is reached, with some changed: name, value, name, value.
func (c *cloud) env(address string, changed ...string) (env []string) {
	values := map[string]string{"ADDRESS": address, "NAMESPACE": c.namespace, "TLS": "1", "CA_FILE": c.ca, "SERVER_NAME": cloudName}
	for i := 0; i < len(changed); i += 2 {
		values[changed[i]] = changed[i+1]
	}
	for name, value := range values {
		env = append(env, "HONGBAO_TEMPORAL_"+name+"="+value)
	}
	return env
}

// TestDoctorTemporalTLS: doctor distinguishes the reasons of a refusal by Temporal,
// and names the setting to see to.
func TestDoctorTemporalTLS(t *testing.T) {
	c := newCloud(t)
	cert, key := c.issue(60 * 24 * time.Hour)
	soonCert, soonKey := c.issue(3 * 24 * time.Hour)
	oldCert, oldKey := c.issue(-time.Hour)
	stranger := written(t, stacktest.NewAuthority(t).PEM)[0]
	for _, row := range []struct {
		what                     string
		env                      []string
		check, verdict, says, do string
	}{
		{"right", c.env(c.front, "CERT_FILE", cert, "KEY_FILE", key), "temporal", verdictOK, "answers", ""},
		{"attributes", c.env(c.front, "CERT_FILE", cert, "KEY_FILE", key), "search attributes", verdictOK, "All exist.", ""},
		{"valid for long", c.env(c.front, "CERT_FILE", cert, "KEY_FILE", key), "temporal certificate", verdictOK, "is valid until", ""},
		{"ends soon", c.env(c.front, "CERT_FILE", soonCert, "KEY_FILE", soonKey), "temporal certificate", verdictWarning, "only",
			"HONGBAO_TEMPORAL_CERT_FILE and HONGBAO_TEMPORAL_KEY_FILE"},
		{"has ended", c.env(c.front, "CERT_FILE", oldCert, "KEY_FILE", oldKey), "temporal certificate", verdictWrong, "expired at",
			"HONGBAO_TEMPORAL_CERT_FILE"},
		{"ended at the server", c.env(c.front, "CERT_FILE", oldCert, "KEY_FILE", oldKey), "temporal", verdictWrong, string(worker.WhyHandshake),
			"HONGBAO_TEMPORAL_CERT_FILE"},
		{"no certificate", c.env(c.front), "temporal", verdictWrong, string(worker.WhyHandshake), "HONGBAO_TEMPORAL_CERT_FILE"},
		{"other authority", c.env(c.front, "CA_FILE", stranger), "temporal", verdictWrong, string(worker.WhyAuthority),
			"HONGBAO_TEMPORAL_CA_FILE"},
		{"other name", c.env(c.front, "SERVER_NAME", ""), "temporal", verdictWrong, string(worker.WhyName), "HONGBAO_TEMPORAL_SERVER_NAME"},
		{"no TLS", c.env(c.front, "TLS", "", "CA_FILE", "", "SERVER_NAME", ""), "temporal", verdictWrong, string(worker.WhyTLS),
			"HONGBAO_TEMPORAL_TLS to true"},
		{"key", c.env(c.gateway, "API_KEY", c.key), "temporal", verdictOK, "answers", ""},
		{"attributes by a key for a namespace", c.env(c.gateway, "API_KEY", c.key), "search attributes", verdictOK, "All exist.", ""},
		{"attributes of another namespace", c.env(c.gateway, "API_KEY", c.key, "NAMESPACE", "temporal-system"), "search attributes", verdictWrong,
			"App, PacketID", "tcld namespace search-attributes add"},
		{"no key", c.env(c.gateway), "temporal", verdictWrong, string(worker.WhyKey), "HONGBAO_TEMPORAL_API_KEY"},
		{"unknown key", c.env(c.gateway, "API_KEY", "s3cret-unknown"), "temporal", verdictWrong, string(worker.WhyKey),
			"HONGBAO_TEMPORAL_API_KEY"},
		{"key of readers", c.env(c.gateway, "API_KEY", c.reader), "temporal", verdictWrong, string(worker.WhyPermission),
			"HONGBAO_TEMPORAL_NAMESPACE"},
		{"contradiction", c.env(c.gateway, "API_KEY", c.key, "TLS", "0"), "settings", verdictWrong,
			"HONGBAO_TEMPORAL_API_KEY (--temporal-api-key) needs HONGBAO_TEMPORAL_TLS", "docs/configuration.md"},
		{"not looked at", c.env(c.gateway, "API_KEY", c.key, "TLS", "0"), "temporal", verdictSkipped, "contradict", "Correct"},
		{"no such file", c.env(c.front, "CERT_FILE", cert, "KEY_FILE", key+"x"), "temporal", verdictSkipped, "unusable files",
			"Correct"},
	} {
		t.Run(row.what, func(t *testing.T) {
			var out, errs bytes.Buffer
			_ = execute(t.Context(), []string{"doctor", "--json"}, row.env, &out, &errs)
			var said struct{ Findings []finding }
			if err := json.Unmarshal(out.Bytes(), &said); err != nil {
				t.Fatalf("%v: %s%s", err, &out, &errs)
			}
			if strings.Contains(out.String()+errs.String(), "s3cret") {
				t.Errorf("a key is shown: %s%s", &out, &errs)
			}
			found := 0
			for _, f := range said.Findings {
				if f.Check != row.check || row.check == "settings" && !strings.Contains(f.Says, row.says) {
					continue
				}
				found++
				if f.Verdict != row.verdict || !strings.Contains(f.Says, row.says) || !strings.Contains(f.Do, row.do) {
					t.Errorf("%+v, want %s, %q, %q", f, row.verdict, row.says, row.do)
				}
			}
			if found != 1 {
				t.Errorf("%d findings of %s: %s", found, row.check, &out)
			}
		})
	}
}

// TestAmends: for each way of being refused it is said what to do.
func TestAmends(t *testing.T) {
	for _, why := range []worker.Reason{worker.WhyAuthority, worker.WhyName, worker.WhyCertificate, worker.WhyHandshake, worker.WhyNotTLS,
		worker.WhyNotHTTP2, worker.WhyTLS, worker.WhyKey, worker.WhyPermission} {
		if temporalAdvice[why] == "" {
			t.Errorf("%s: nothing", why)
		}
	}
}

// TestTemporalAtStart: what needs Temporal ends at start when Temporal does not take it,
// and names the setting; the API says so and goes on, because grabs need no Temporal. With
// the right settings it reaches it.
func TestTemporalAtStart(t *testing.T) {
	c := newCloud(t)
	dsn := stacktest.MariaDB(t)
	parts := []string{"HONGBAO_MYSQL_DSN=" + dsn, "HONGBAO_REDIS_ADDR=" + stacktest.FreshRedis(t).Addr, "HONGBAO_PROVIDER_URL=" +
		serveSandbox(t, "k"), "HONGBAO_PROVIDER_KEY=k",
		"HONGBAO_SEED_KEY=" + strings.Repeat("0f", 32), "HONGBAO_SESSION_KEY=" + strings.Repeat("5e", 32),
		"HONGBAO_SANDBOX_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"migrate", "up"}, parts[:1], &out, &errs); code != exitOK {
		t.Fatalf("%s%s", &out, &errs)
	}
	for _, command := range []string{"worker", "recover --by op", "pool rebuild --all"} {
		for says, env := range map[string][]string{"HONGBAO_TEMPORAL_CERT_FILE": c.env(c.front),
			"HONGBAO_TEMPORAL_API_KEY": c.env(c.gateway, "API_KEY", "s3cret-unknown")} {
			t.Run(command+", "+says, func(t *testing.T) {
				var out, errs bytes.Buffer
				code := execute(t.Context(), strings.Fields(command), append(env, parts...), &out, &errs)
				if all := out.String() + errs.String(); code != exitFailed || !strings.Contains(all, says) || strings.Contains(all, "s3cret") {
					t.Errorf("exit code %d: %s", code, all)
				}
			})
		}
	}
	cert, key := c.issue(time.Hour)
	for name, row := range map[string]struct {
		env            []string
		temporal, says string
	}{
		"Refused":     {c.env(c.front), "unavailable", "HONGBAO_TEMPORAL_CERT_FILE"},
		"Reader":      {c.env(c.gateway, "API_KEY", c.reader), "unavailable", "HONGBAO_TEMPORAL_NAMESPACE"},
		"Certificate": {c.env(c.front, "CERT_FILE", cert, "KEY_FILE", key), "ok", ""},
		"Key":         {c.env(c.gateway, "API_KEY", c.key), "ok", ""},
	} {
		t.Run("api/"+name, func(t *testing.T) {
			public, staff := freeAddress(t), freeAddress(t)
			ctx, cancel := context.WithCancel(t.Context())
			var log logBuffer
			ended := make(chan int, 1)
			go func() {
				ended <- execute(ctx, []string{"api"}, append(append(row.env, parts...), "HONGBAO_API_LISTEN="+public, "HONGBAO_STAFF_LISTEN="+staff),
					&log, &log)
			}()
			defer func() {
				if t.Failed() {
					t.Log(log.String())
				}
			}()
			wait.Until(t, "Temporal is "+row.temporal, func() bool {
				return temporalStatus(ctx, "http://"+public+"/readyz") == row.temporal && strings.Contains(log.String(), row.says)
			})
			cancel()
			if code := <-ended; code != exitOK || strings.Contains(log.String(), "s3cret") || row.says == "" &&
				strings.Contains(log.String(), "does not take") {
				t.Errorf("exit code %d: %s", code, log.String())
			}
		})
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := devstack.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
}

// temporalStatus returns the status of Temporal in /readyz, "" before the process is ready.
func temporalStatus(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	var ready struct {
		Dependencies map[string]struct{ Status string }
	}
	if res.StatusCode != http.StatusOK || json.NewDecoder(res.Body).Decode(&ready) != nil {
		return ""
	}
	return ready.Dependencies["temporal"].Status
}
