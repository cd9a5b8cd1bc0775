package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/health"
	"hongbao/internal/pool"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/wire"
	"hongbao/worker"
)

// ward is an installation of real parts that the test takes apart.
type doctorRig struct {
	*staffStack
	redis     *stacktest.Server
	mysql     *stacktest.Server
	temporal  *stacktest.Server
	namespace string
}

// settings are what doctor is given, with some changed: name, value, name, value.
func (w *doctorRig) settings(changed ...string) (env []string) {
	values := map[string]string{
		"HONGBAO_REDIS_ADDR": w.redis.Addr, "HONGBAO_TEMPORAL_ADDRESS": w.temporal.Addr, "HONGBAO_TEMPORAL_NAMESPACE": w.namespace,
		"HONGBAO_MYSQL_DSN": w.dsn.Reveal(), "HONGBAO_SEED_KEY": hex.EncodeToString(append([]byte{7}, make([]byte, 31)...)),
		"HONGBAO_PROVIDER_KEY": harness.ProviderKey, "HONGBAO_PROVIDER_URL": "http://127.0.0.1:1",
	}
	if w.staffStack != nil && w.provider != "" {
		values["HONGBAO_PROVIDER_URL"], values["HONGBAO_STAFF_URL"] = w.provider, w.staff
	}
	for i := 0; i < len(changed); i += 2 {
		values[changed[i]] = changed[i+1]
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env
}

// look runs the doctor and returns the findings by check, of several servers the
// worst. What it prints for people has to say the same.
func (w *doctorRig) look(changed ...string) (found map[string]finding, code int) {
	w.t.Helper()
	code, out, errs := w.doctor(w.settings(changed...), "--json")
	var said struct {
		Healthy  bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || errs != "" {
		w.t.Fatalf("%v: %s%s", err, out, errs)
	}
	if said.Healthy != (code == exitOK) {
		w.t.Errorf("healthy %v, exit code %d", said.Healthy, code)
	}
	found = map[string]finding{}
	for _, f := range said.Findings {
		if old, ok := found[f.Check]; !ok || old.Verdict == verdictOK {
			found[f.Check] = f
		}
		if f.Do == "" && f.Verdict != verdictOK {
			w.t.Errorf("%s is %s, and what to do is not said", f.Check, f.Verdict)
		}
	}
	return found, code
}

// doctor runs the doctor with these settings alone.
func (w *doctorRig) doctor(env []string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(w.t.Context(), append([]string{"doctor"}, args...), env, &out, &errs)
	for _, secret := range []string{"only-for-tests", "0700000000"} {
		if strings.Contains(out.String()+errs.String(), secret) {
			w.t.Errorf("a secret is shown: %s%s", &out, &errs)
		}
	}
	return code, out.String(), errs.String()
}

// finds expects what a check comes to, and how doctor ends.
func (w *doctorRig) expect(want int, check, verdict, says, do string, changed ...string) {
	w.t.Helper()
	found, code := w.look(changed...)
	f, there := found[check]
	if !there || f.Verdict != verdict || !strings.Contains(f.Says, says) || !strings.Contains(f.Do, do) {
		w.t.Errorf("%s: %+v, want %s, %q, %q", check, f, verdict, says, do)
	}
	if code != want {
		w.t.Errorf("%s taken away: exit code %d, want %d", check, code, want)
		for _, f := range found {
			if f.Verdict != verdictOK {
				w.t.Logf("%+v", f)
			}
		}
	}
}

// sql changes the database by hand.
func (w *doctorRig) sql(statements ...string) {
	w.t.Helper()
	db, err := store.OpenSQL(w.dsn.Reveal())
	w.check(err)
	defer db.Close()
	for _, text := range statements {
		_, err := db.ExecContext(w.t.Context(), text)
		w.check(err)
	}
}

// await looks until a check comes to a verdict.
func (w *doctorRig) await(check, verdict string) {
	w.t.Helper()
	var last finding
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s: %+v", check, last)
		}
	}()
	wait.Until(w.t, check+" is "+verdict, func() bool {
		found, _ := w.look()
		last = found[check]
		return last.Verdict == verdict
	})
}

// TestDoctor takes an installation of real parts apart, one part after the other:
// each time the doctor says what is wrong and what to do, and is content when the
// part is back.
func TestDoctor(t *testing.T) {
	w := &doctorRig{redis: stacktest.FreshRedis(t)}
	var dsn string
	w.mysql, dsn = stacktest.FreshMariaDB(t)
	w.temporal, w.namespace = stacktest.FreshTemporal(t)
	w.staffStack = &staffStack{keysRig: keysRig{t, Secret{dsn}}}

	w.expect(exitFailed, "migrations", verdictWrong, "are missing, the first is 00100", "hongbao migrate up")
	w.expect(exitFailed, "backlogs", verdictSkipped, "", "Migrate")
	w.expect(exitFailed, "redis lanes", verdictWarning, "never used", "new installation")
	if found, _ := w.look(); found["redis lanes"].Verdict != verdictWarning {
		t.Error("looking has changed Redis")
	}
	w.check(runMigrate(t.Context(), migrateConfig{Action: migrateUp, MySQLDSN: w.dsn}, io.Discard, slog.New(slog.DiscardHandler)))
	w.staffStack = newStaffStackOn(w.keysRig, harness.Options{Redis: w.redis.Addr, Pool: func(c *pool.Config) { c.Lanes = pool.DefaultLanes },
		API: func(c *api.Config) {
			temporal, err := worker.Dial(w.temporal.Addr, w.namespace, slog.New(slog.DiscardHandler))
			w.check(err)
			t.Cleanup(temporal.Close)
			c.Probes["temporal"] = func(ctx context.Context) error { return worker.Ping(ctx, temporal, w.namespace) }
		}})
	w.expect(exitFailed, "workers", verdictWrong, "No worker polls: hongbao activity, hongbao workflow, hongbao-drain activity",
		"hongbao worker")

	c, err := read(t, cmdWorker, map[string]string{"HONGBAO_REDIS_ADDR": w.redis.Addr, "HONGBAO_MYSQL_DSN": w.dsn.Reveal(),
		"HONGBAO_SEED_KEY":         hex.EncodeToString(append([]byte{7}, make([]byte, 31)...)),
		"HONGBAO_TEMPORAL_ADDRESS": w.temporal.Addr, "HONGBAO_TEMPORAL_NAMESPACE": w.namespace,
		"HONGBAO_PROVIDER_URL": w.provider, "HONGBAO_PROVIDER_KEY": harness.ProviderKey})
	w.check(err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runWorker(ctx, c, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	w.await("workers", verdictOK)
	w.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1") // servers of tests are faster without

	t.Run("Healthy", func(t *testing.T) {
		w.await("redis durability", verdictOK) // Redis may still write its file after its start
		w.await("api", verdictOK)              // it waits for its parts no longer than a second
		found, code := w.look()
		for _, check := range []string{"settings", "redis", "redis rights", "redis durability", "clock of redis", "redis lanes",
			"mysql", "mysql isolation", "mysql durability", "clock of mysql",
			"migrations", "seed key", "provider account", "temporal", "temporal namespace", "search attributes", "workers", "provider",
			"payable", "api"} {
			if found[check].Verdict != verdictOK {
				t.Errorf("%s: %+v", check, found[check])
			}
			delete(found, check)
		}
		for _, c := range health.Checks() {
			if found[c.Title].Verdict != verdictOK && c.Name != "durable" {
				t.Errorf("%s: %+v", c.Title, found[c.Title])
			}
			delete(found, c.Title)
		}
		if code != exitOK || len(found) > 0 {
			t.Errorf("exit code %d, besides: %+v", code, found)
		}
		_, out, _ := w.doctor(w.settings())
		contains(t, out, "ok       redis durability", "HEALTHY: 52 ok, 0 warnings, 0 wrong, 0 skipped.")
	})
	for name, test := range map[string]func(*doctorRig){"Settings": (*doctorRig).testSettings, "Redis": (*doctorRig).testRedis,
		"MySQL":    (*doctorRig).testMySQL,
		"Temporal": (*doctorRig).testTemporal,
		"Provider": (*doctorRig).testProvider, "Waiting": (*doctorRig).testWaiting} {
		t.Run(name, func(t *testing.T) {
			own, ownDesk := *w, *w.staffStack
			own.staffStack = &ownDesk
			own.t, own.keysRig.t = t, t
			test(&own)
			for check, f := range first(own.look()) {
				if f.Verdict == verdictWrong {
					t.Errorf("put together again, and yet: %s: %+v", check, f)
				}
			}
		})
	}
}

func first(found map[string]finding, _ int) map[string]finding { return found }

func (w *doctorRig) testSettings() {
	w.expect(exitFailed, "settings", verdictWrong, "HONGBAO_LAENS; did you mean HONGBAO_LANES?", "docs/configuration.md", "HONGBAO_LAENS",
		"64")
	w.expect(exitFailed, "settings", verdictWrong, "HONGBAO_LANES", "", "HONGBAO_LANES", "many")
	w.expect(exitFailed, "redis", verdictSkipped, "a setting is missing or wrong", "HONGBAO_LANES", "HONGBAO_LANES", "many")
	w.expect(exitOK, "provider", verdictSkipped, "", "HONGBAO_PROVIDER_KEY", "HONGBAO_PROVIDER_KEY", "")
	w.expect(exitOK, "seed key", verdictSkipped, "", "HONGBAO_SEED_KEY", "HONGBAO_SEED_KEY", "")
	w.expect(exitFailed, "settings", verdictWrong, "HONGBAO_MYSQL_DSN (--mysql-dsn) is required", "", "HONGBAO_MYSQL_DSN", "")
	code, out, _ := w.doctor(w.settings("HONGBAO_LANES", "many"))
	contains(w.t, out, "WRONG    settings", "-> Correct it", "NOT HEALTHY: ")
	if code != exitFailed {
		w.t.Errorf("exit code %d", code)
	}
	if code, _, errs := w.doctor(nil, "now"); code != exitUsage {
		w.t.Errorf("exit code %d: %s", code, errs)
	}
}

func (w *doctorRig) testRedis() {
	volatile := stacktest.FreshRedis(w.t, "--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru")
	w.expect(exitFailed, "redis durability", verdictWrong, "appendfsync everysec (needs always), maxmemory-policy allkeys-lru", "redis.conf",
		"HONGBAO_REDIS_ADDR", volatile.Addr)
	w.expect(exitOK, "redis durability", verdictWarning, "allowed by configuration", "before you use real money", "HONGBAO_REDIS_ADDR",
		volatile.Addr, "HONGBAO_ALLOW_VOLATILE_REDIS", "1")
	w.expect(exitFailed, "redis lanes", verdictWrong, "HONGBAO_LANES is 32, but Redis was used with 8", "fixed per installation",
		"HONGBAO_LANES", "32")
	w.expect(exitFailed, "redis replicas", verdictWrong, "", "HONGBAO_REDIS_REPLICAS", "HONGBAO_REDIS_REPLICAS", "1")
	w.expect(exitFailed, "redis", verdictWrong, "does not answer", "HONGBAO_REDIS_ADDR", "HONGBAO_REDIS_ADDR", "127.0.0.1:1")
	w.testRedisAccess()
	w.redis.Kill()
	w.expect(exitFailed, "redis", verdictWrong, "does not answer", "no share grabbed")
	w.expect(exitFailed, "api", verdictWrong, "unavailable", "accepts no grabs")
	w.redis.Restart(w.t)
	w.await("api", verdictOK)
}

func (w *doctorRig) testRedisAccess() {
	authority := stacktest.NewAuthority(w.t)
	const secret = "only-for-tests-redis"
	locked := stacktest.FreshLockedRedis(w.t, stacktest.Lock{Password: secret, Authority: authority})
	let := func(more ...string) []string {
		return append([]string{"HONGBAO_REDIS_ADDR", locked.Addr, "HONGBAO_REDIS_TLS", "1", "HONGBAO_REDIS_CA_FILE", authority.File,
			"HONGBAO_REDIS_PASSWORD", secret}, more...)
	}
	w.expect(exitOK, "redis", verdictOK, "answers", "", let()...)
	w.expect(exitFailed, "redis", verdictWrong, "WRONGPASS", "HONGBAO_REDIS_PASSWORD", let("HONGBAO_REDIS_PASSWORD",
		"only-for-tests-wrong")...)
	w.expect(exitFailed, "redis", verdictWrong, "NOAUTH", "HONGBAO_REDIS_PASSWORD", let("HONGBAO_REDIS_PASSWORD", "")...)
	w.expect(exitFailed, "redis", verdictWrong, "TLS", "HONGBAO_REDIS_CA_FILE", let("HONGBAO_REDIS_CA_FILE", "")...)
	w.expect(exitFailed, "redis", verdictWrong, "requires it", "HONGBAO_REDIS_TLS", "HONGBAO_REDIS_ADDR", locked.Addr)
	w.expect(exitFailed, "redis", verdictSkipped, "needs HONGBAO_REDIS_PASSWORD", "Correct", "HONGBAO_REDIS_USERNAME", "hongbao")
	w.expect(exitFailed, "redis", verdictSkipped, "wrong", "HONGBAO_REDIS_CA_FILE", let("HONGBAO_REDIS_CA_FILE", "/nowhere.pem")...)
	c := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
	defer c.Close()
	w.check(c.Do(w.t.Context(), "ACL", "SETUSER", "poor", "on", ">"+secret, "~hb:*", "+@all", "-xadd", "-xgroup|create").Err())
	w.expect(exitFailed, "redis rights", verdictWrong, "+xadd +xgroup|create", "ACL SETUSER <user> +xadd +xgroup|create",
		"HONGBAO_REDIS_USERNAME", "poor", "HONGBAO_REDIS_PASSWORD", secret)
}

func (w *doctorRig) testMySQL() {
	w.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	w.expect(exitFailed, "mysql durability", verdictWrong, "innodb_flush_log_at_trx_commit is 0", "SET GLOBAL")
	w.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	w.expect(exitOK, "mysql durability", verdictWarning, "innodb_flush_log_at_trx_commit is 2", "SET GLOBAL")
	w.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	w.sql("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
	w.expect(exitOK, "migrations", verdictWarning, "1 migrations are newer than this version, the last is number 99999", "Use the version")
	w.sql("DELETE FROM goose_db_version WHERE version_id = 99999")
	w.sql("DELETE FROM goose_db_version WHERE version_id = 132")
	w.expect(exitFailed, "migrations", verdictWrong, "1 migrations are missing, the first is 00132", "hongbao migrate up")
	w.sql("INSERT INTO goose_db_version (version_id, is_applied) VALUES (132, 1)", "UPDATE data_format SET number = number + 1")
	w.expect(exitFailed, "migrations", verdictWrong, "the data was written by a newer build (MySQL", "docs/runbook.md#data-format")
	w.sql("UPDATE data_format SET number = number - 1")
	w.expect(exitFailed, "mysql", verdictWrong, "does not answer", "HONGBAO_MYSQL_DSN", "HONGBAO_MYSQL_DSN",
		"u:only-for-tests@tcp(127.0.0.1:1)/x")
	w.expect(exitFailed, "mysql", verdictWrong, "refuses the connection", "Correct user and password", "HONGBAO_MYSQL_DSN",
		"nobody:only-for-tests@tcp("+w.mysql.Addr+")/x")
	w.mysql.Kill()
	w.expect(exitFailed, "mysql", verdictWrong, "does not answer", "payouts wait")
	w.expect(exitFailed, "api", verdictWarning, "mysql", "grabs are still accepted")
	w.mysql.Restart(w.t)
	w.await("api", verdictOK)
}

func (w *doctorRig) testTemporal() {
	w.expect(exitFailed, "temporal namespace", verdictWrong, "There is no namespace nowhere", "namespace create --namespace nowhere",
		"HONGBAO_TEMPORAL_NAMESPACE", "nowhere")
	c, err := sdk.NewNamespaceClient(sdk.Options{HostPort: w.temporal.Addr, Logger: quietLogger{}})
	w.check(err)
	defer c.Close()
	w.check(c.Register(w.t.Context(), &workflowservice.RegisterNamespaceRequest{Namespace: "bare",
		WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)}))
	wait.Until(w.t, "every part of Temporal knows the namespace", func() bool {
		found, _ := w.look("HONGBAO_TEMPORAL_NAMESPACE", "bare")
		return found["search attributes"].Verdict == verdictWrong
	})
	w.expect(exitFailed, "search attributes", verdictWrong, "App, PacketID, UserID, Provider, PayoutStatus, FailureCode",
		"search-attribute create --namespace bare --type Keyword --name App", "HONGBAO_TEMPORAL_NAMESPACE", "bare")
	w.expect(exitFailed, "temporal namespace", verdictWarning, "deleted after 24h0m0s", "--retention 168h", "HONGBAO_TEMPORAL_NAMESPACE",
		"bare")
	w.expect(exitFailed, "workers", verdictWrong, "No worker polls", "hongbao worker", "HONGBAO_TEMPORAL_NAMESPACE", "bare")
	w.temporal.Kill()
	w.expect(exitFailed, "temporal", verdictWrong, "does not answer", "payouts wait")
	w.expect(exitFailed, "api", verdictWarning, "temporal", "grabs are still accepted")
	w.temporal.Restart(w.t)
	w.await("api", verdictOK)
	w.await("workers", verdictOK)
}

// quietLogger keeps the Temporal SDK quiet.
type quietLogger struct{}

func (quietLogger) Debug(string, ...any) {}
func (quietLogger) Info(string, ...any)  {}
func (quietLogger) Warn(string, ...any)  {}
func (quietLogger) Error(string, ...any) {}

func (w *doctorRig) testProvider() {
	w.expect(exitFailed, "provider", verdictWrong, "status 401", "HONGBAO_PROVIDER_KEY", "HONGBAO_PROVIDER_KEY", "another")
	w.expect(exitOK, "provider account", verdictOK, `account "sandbox" at provider "sandbox"`, "")
	w.expect(exitFailed, "provider account", verdictWrong, `the settings name account "another"`, "HONGBAO_PROVIDER_ACCOUNT",
		"HONGBAO_PROVIDER_ACCOUNT", "another")
	w.expect(exitFailed, "provider", verdictWrong, "gives no usable answer", "HONGBAO_PROVIDER_URL", "HONGBAO_PROVIDER_URL",
		"http://127.0.0.1:1")
	w.expect(exitFailed, "api", verdictWrong, "does not answer", "HONGBAO_STAFF_URL", "HONGBAO_STAFF_URL", "http://127.0.0.1:1")
	w.expect(exitFailed, "api", verdictWrong, "not the API", "HONGBAO_STAFF_URL", "HONGBAO_STAFF_URL", w.provider)
	w.sh(exitOK, "providers", "hold", "sandbox", "--reason", "statement does not tie")
	w.expect(exitOK, "provider hold", verdictWarning, "Nothing is sent to a provider, for ", "hongbao providers release")
	w.sh(exitOK, "providers", "release", "sandbox", "--reason", "solved")
	w.sh(exitOK, "holds", "place", "packet", "1c5emuasbbm9p6qmv2gr", "--reason", "stolen account")
	w.expect(exitOK, "holds", verdictWarning, "1 active holds of packets and payments, the oldest for", "hongbao holds list")
	w.sql("DELETE FROM holds")
}

func (w *doctorRig) testWaiting() {
	w.sql("INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen) VALUES ('mismatch', '', '', '', 'x', "+
		"NOW() - INTERVAL 1 HOUR, NOW())",
		"INSERT INTO quarantine (lane, entry_id, content, error, created_at) VALUES (0, '1-1', '{}', 'x', NOW())")
	w.expect(exitFailed, "quarantine", verdictWrong, "1 hand-offs", "quarantine")
	w.expect(exitFailed, "breaks", verdictWarning, "1 breaks that wait for a decision, the oldest for 1h",
		"hongbao reconcile breaks --open")
	w.sql("DELETE FROM breaks", "DELETE FROM quarantine")
	w.sql("UPDATE books SET state = 'restored', restored_at = UTC_TIMESTAMP(3)")
	w.expect(exitFailed, "books", verdictWrong, "was restored from a backup", "hongbao recover")
	w.sql("UPDATE books SET state = 'normal', restored_at = NULL")
	made, err := w.client.CreateAndWait(w.t.Context(), wire.CreatePacket{SenderID: "sender", TotalAmount: 100, ShareCount: 1})
	w.check(err)
	_, err = w.client.Grab(w.t.Context(), made.ID, wire.Grab{UserID: "late~frozen"})
	w.check(err)
	w.await("failed payouts", verdictWarning)
	w.expect(exitOK, "failed payouts", verdictWarning, "1 failed payouts, ¥1.00 in all", "hongbao payouts list --status failed")
	w.expect(exitFailed, "seed key", verdictWrong, "does not decrypt the seed of the newest packet", "HONGBAO_SEED_KEY", "HONGBAO_SEED_KEY",
		strings.Repeat("ab", 32))
	w.expect(exitOK, "seed key", verdictOK, "decrypts the seed of the newest packet", "")
}

// TestDoctorJudges: what cannot be brought about on this machine is judged, too:
// clocks apart, old versions, a connection at another isolation, ages.
func TestDoctorJudges(t *testing.T) {
	now := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	good := report.Examination{Version: "8.4.3", Isolation: "READ-COMMITTED", FlushAtCommit: "1", SyncBinlog: "1", LogBin: true}
	changed := func(change func(*report.Examination)) func(*doctor) {
		seen := good
		change(&seen)
		return func(d *doctor) { d.checkMySQLServer(seen) }
	}
	server := func(s pool.ServerReport) func(*doctor) { return func(d *doctor) { d.checkRedisServer(s) } }
	for name, c := range map[string]struct {
		judge          func(*doctor)
		check, verdict string
		says           string
	}{
		"redis behind": {server(pool.ServerReport{Version: "7.0.15", ClockAhead: -11 * time.Second}), "clock of redis", verdictWrong,
			"11s behind"},
		"redis a bit ahead": {server(pool.ServerReport{Version: "7.0.15", ClockAhead: 1500 * time.Millisecond}), "clock of redis", verdictWarning,
			"1.5s ahead of"},
		"redis in time": {server(pool.ServerReport{Version: "7.0.15", ClockAhead: 90 * time.Millisecond}), "clock of redis", verdictOK,
			"90ms ahead"},
		"redis 6":      {server(pool.ServerReport{Version: "6.2.14"}), "redis", verdictWrong, "6.2.14"},
		"redis 10":     {server(pool.ServerReport{Version: "10.0.0"}), "redis", verdictOK, "10.0.0"},
		"mysql ahead":  {changed(func(e *report.Examination) { e.Ahead = time.Hour }), "clock of mysql", verdictWrong, "1h0m0s ahead"},
		"mysql 8.0":    {changed(func(e *report.Examination) { e.Version = "8.0.39" }), "mysql", verdictWrong, "8.0.39"},
		"mysql 9":      {changed(func(e *report.Examination) { e.Version = "9.1.0-log" }), "mysql", verdictOK, "9.1.0"},
		"mariadb 10.6": {changed(func(e *report.Examination) { e.Version = "10.6.18-MariaDB" }), "mysql", verdictWrong, "10.6.18"},
		"mariadb 11":   {changed(func(e *report.Examination) { e.Version = "11.4.2-MariaDB" }), "mysql", verdictOK, "11.4.2"},
		"isolation": {changed(func(e *report.Examination) { e.Isolation = "REPEATABLE-READ" }), "mysql isolation", verdictWrong,
			"REPEATABLE-READ"},
		"binlog": {changed(func(e *report.Examination) { e.SyncBinlog = "0" }), "mysql durability", verdictWarning,
			"sync_binlog is 0"},
		"no binlog": {changed(func(e *report.Examination) { e.SyncBinlog, e.LogBin = "0", false }), "mysql durability", verdictOK, ""},
	} {
		d := &doctor{config: config{command: cmdDoctor, values: map[string]string{"redis-replicas": "0"}}, now: func() time.Time { return now }}
		c.judge(d)
		found := false
		for _, f := range d.findings {
			if f.Check == c.check {
				found = true
				if f.Verdict != c.verdict || !strings.Contains(f.Says, c.says) || (f.Do == "") != (f.Verdict == verdictOK) {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing about %s", name, c.check)
		}
	}
}

// TestHealthAdvice: every command in the advice of the list of checks exists, with its flags.
func TestHealthAdvice(t *testing.T) {
	command := regexp.MustCompile(`hongbao ((?:[a-z]+ )*[a-z]+(?: --[a-z]+(?: [a-z_<]+>?)?)*)`)
	n := 0
	for _, c := range health.Checks() {
		for _, found := range command.FindAllStringSubmatch(c.Do, -1) {
			cmd, rest, err := newRoot(nil).Find(strings.Fields(strings.ReplaceAll(found[1], "<day>", "2026-02-17")))
			if err != nil || cmd.CommandPath() == "hongbao" {
				t.Errorf("%s: %q: %v", c.Name, found[0], err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", c.Name, found[0], err)
			}
			n++
		}
	}
	if n < 15 {
		t.Errorf("only %d commands", n)
	}
}
