package main

import (
	"fmt"
	"strconv"
	"strings"

	"hongbao/api"
	"hongbao/internal/devstack"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/risk"
	"hongbao/internal/staff"
)

// setting is one configurable value. The table below declares all of them: flags, help texts, validation and the check for
// unknown variables derive from it.
type setting struct {
	flag         string   // long flag without dashes
	env          string   // environment variable
	fallback     string   // default; "" = none
	kind         kind     // what values are valid
	usage        string   // one line for --help
	secret       bool     // never printed
	required     bool     // "" is refused
	unless       string   // flag of a setting that replaces a required one
	commands     []string // commands that take it
	noDefaultFor []string // commands for which fallback does not apply
}

// Names of the commands in the table.
const (
	cmdAPI              = "api"
	cmdWorker           = "worker"
	cmdProvider         = "provider"
	cmdProviderTest     = "provider test"
	cmdMigrate          = "migrate"
	cmdLedger           = "ledger verify"
	cmdRecover          = "recover"
	cmdAudit            = "audit verify"
	cmdAppsCreate       = "apps create"
	cmdAppsList         = "apps list"
	cmdKeys             = "keys create|list|rotate|approve|revoke, ticket-keys add|list|revoke"
	cmdKeysDirectCreate = "keys direct create"
	cmdKeysDirectList   = "keys direct list|revoke"
	cmdKeysEnsure       = "keys ensure"
	cmdKeysToken        = "keys token"
	cmdDev              = "dev"
	cmdDevSetup         = "dev setup"
	cmdDevState         = "dev status|stop|reset"
	cmdPoolStatus       = "pool status"
	cmdPoolRebuild      = "pool rebuild"
	cmdPackets          = "packets create|list|show|claims|grab|watch|limits, campaigns"
	cmdDoctor           = "doctor"
	cmdFinance          = "payouts|refunds|charges|approvals|reconcile|close"
	cmdOps              = "staff, providers list|hold|release, holds, packets list|recall, packets show --staff, campaigns staff"
	cmdAuditor          = "audit list, audit verify --api"
)

// secretCommands are the commands that use the installation's own secrets.
var secretCommands = []string{cmdAPI, cmdWorker, cmdProvider, cmdProviderTest, cmdDoctor, cmdMigrate, cmdLedger, cmdRecover, cmdAudit,
	cmdAppsCreate, cmdAppsList,
	cmdKeysDirectCreate, cmdKeysDirectList, cmdKeysEnsure, cmdPoolStatus, cmdPoolRebuild}

// redisCommands are the commands that connect to Redis.
var redisCommands = []string{cmdAPI, cmdWorker, cmdRecover, cmdPoolStatus, cmdPoolRebuild, cmdDoctor}

// providerCommands are the commands that call the payment providers.
var providerCommands = []string{cmdAPI, cmdWorker, cmdRecover, cmdDoctor, cmdProviderTest}

// temporalCommands are the commands that connect to Temporal.
var temporalCommands = []string{cmdAPI, cmdWorker, cmdRecover, cmdPoolRebuild, cmdDoctor}

var settings = []setting{
	{flag: "listen", env: "HONGBAO_API_LISTEN", fallback: "127.0.0.1:8080", kind: kindListen, required: true,
		usage: "listen address of the public API", commands: []string{cmdAPI}},
	{flag: "staff-listen", env: "HONGBAO_STAFF_LISTEN", fallback: "127.0.0.1:8081", kind: kindListen, required: true,
		usage: "listen address of the staff API and the console", commands: []string{cmdAPI}},
	{flag: "max-connections", env: "HONGBAO_MAX_CONNECTIONS", fallback: strconv.Itoa(api.DefaultMaxConns), kind: kindConns, required: true,
		usage: "maximum of connections of the public listener; at the maximum the longest idle connection without a key is closed, " +
			"or else the new one is answered 503; lower where the limit of open files is lower", commands: []string{cmdAPI}},
	{flag: "connections-per-address", env: "HONGBAO_CONNECTIONS_PER_ADDRESS", fallback: "0", kind: kindConnsBound, required: true,
		usage: "maximum of connections of the public listener per network address (IPv6: per /64); more are answered 503; 0 = no " +
			"maximum, for use behind a gateway, which is one address", commands: []string{cmdAPI}},
	{flag: "limit-user", env: "HONGBAO_LIMIT_USER", fallback: "0", kind: kindLimit, required: true,
		usage: "maximum of grabs per user of an app, over all processes: number/duration such as 20/1m; more are answered 429, except " +
			"repeats of a won grab; 0 = no limit", commands: []string{cmdAPI}},
	{flag: "limit-address", env: "HONGBAO_LIMIT_ADDRESS", fallback: "0", kind: kindLimit, required: true,
		usage: "maximum of grabs per network address (IPv6: per /64), number/duration; it is the address of the connection, behind a " +
			"gateway the gateway's: headers of proxies are not trusted; 0 = no limit", commands: []string{cmdAPI}},
	{flag: "limit-key", env: "HONGBAO_LIMIT_KEY", fallback: "0", kind: kindLimit, required: true,
		usage: "maximum of requests of any kind per key of an app, number/duration; 0 = no limit", commands: []string{cmdAPI}},
	{flag: "limit-wins", env: "HONGBAO_LIMIT_WINS", fallback: "0", kind: kindLimit, required: true,
		usage: "maximum of won shares per user of an app, over all packets, number/duration; 0 = no limit", commands: []string{cmdAPI}},
	{flag: "risk-url", env: "HONGBAO_RISK_URL", kind: kindBaseURL,
		usage:    "URL of the risk check, called by POST for a grab that could win (docs/integrate.md); needs risk-key; empty = no risk check",
		commands: []string{cmdAPI}},
	{flag: "risk-key", env: "HONGBAO_RISK_KEY", kind: kindToken, secret: true,
		usage: "bearer token for the risk check; only with risk-url", commands: []string{cmdAPI}},
	{flag: "risk-timeout", env: "HONGBAO_RISK_TIMEOUT", fallback: risk.DefaultTimeout.String(), kind: kindRiskTimeout, required: true,
		usage: "time that a grab waits for the risk check, 10ms to 2s", commands: []string{cmdAPI}},
	{flag: "risk-unanswered", env: "HONGBAO_RISK_UNANSWERED", fallback: riskAllow, kind: kindRiskUnanswered, required: true,
		usage: "decision about a grab when the risk check does not answer: allow or refuse", commands: []string{cmdAPI}},
	{flag: "risk-refuse-from", env: "HONGBAO_RISK_REFUSE_FROM", fallback: "0", kind: kindAmount, required: true,
		usage:    "total_amount of a packet in fen from which a grab without an answer is refused even with risk-unanswered allow; 0 = off",
		commands: []string{cmdAPI}},
	{flag: "listen", env: "HONGBAO_WORKER_LISTEN", kind: kindListen,
		usage: "listen address for health and metrics; empty = none", commands: []string{cmdWorker}},
	{flag: "listen", env: "HONGBAO_PROVIDER_LISTEN", fallback: "127.0.0.1:8090", kind: kindListen, required: true,
		usage: "listen address of the sandbox provider", commands: []string{cmdProvider}},
	{flag: "redis-addr", env: "HONGBAO_REDIS_ADDR", fallback: "127.0.0.1:16379", kind: kindNodes, required: true,
		usage: "address of Redis; for Cluster some nodes, for Sentinel the sentinels, separated by commas", commands: redisCommands,
		// Compared with the MySQL of another installation, the Redis of this machine would look emptied.
		noDefaultFor: []string{cmdPoolStatus, cmdPoolRebuild}},
	{flag: "redis-mode", env: "HONGBAO_REDIS_MODE", fallback: "single", kind: kindRedisMode, required: true,
		usage: "single (one server), cluster (Redis Cluster) or sentinel (one master found by Redis Sentinel)", commands: redisCommands},
	{flag: "redis-master", env: "HONGBAO_REDIS_MASTER", kind: kindText,
		usage: "name of the master at the sentinels; only with redis-mode sentinel", commands: redisCommands},
	{flag: "redis-username", env: "HONGBAO_REDIS_USERNAME", kind: kindText,
		usage: "Redis user, with the rights that docs/scaling.md lists; empty = the default user", commands: redisCommands},
	{flag: "redis-password", env: "HONGBAO_REDIS_PASSWORD", kind: kindText, secret: true,
		usage: "password of the Redis user; empty = none", commands: redisCommands},
	{flag: "redis-sentinel-password", env: "HONGBAO_REDIS_SENTINEL_PASSWORD", kind: kindText, secret: true,
		usage: "password of the sentinels' default user; only with redis-mode sentinel; empty = none", commands: redisCommands},
	{flag: "redis-tls", env: "HONGBAO_REDIS_TLS", fallback: "false", kind: kindBool,
		usage: "connect to Redis and to the sentinels with TLS 1.2 or newer", commands: redisCommands},
	{flag: "redis-ca-file", env: "HONGBAO_REDIS_CA_FILE", kind: kindCertificates,
		usage:    "PEM file of the authorities that sign Redis' certificates; only with redis-tls; empty = those of the system",
		commands: redisCommands},
	{flag: "redis-replicas", env: "HONGBAO_REDIS_REPLICAS", fallback: "0", kind: kindReplicas, required: true,
		usage: "number of replicas that must have a creation or a grab before it is acknowledged; use all that may be promoted; 0 = the " +
			"disk of Redis is enough", commands: []string{cmdAPI, cmdWorker, cmdRecover, cmdDoctor}},
	{flag: "allow-volatile-redis", env: "HONGBAO_ALLOW_VOLATILE_REDIS", fallback: "false", kind: kindBool,
		usage: "accept grabs although Redis may lose acknowledged ones; for demonstrations", commands: []string{cmdAPI, cmdWorker, cmdRecover,
			cmdDoctor}},
	{flag: "mysql-dsn", env: "HONGBAO_MYSQL_DSN", kind: kindDSN, secret: true, required: true,
		usage: "MySQL data source name, user:password@tcp(host:port)/database",
		commands: []string{cmdAPI, cmdWorker, cmdDoctor, cmdMigrate, cmdLedger, cmdRecover, cmdAudit, cmdAppsCreate, cmdAppsList,
			cmdKeysDirectCreate,
			cmdKeysDirectList, cmdKeysEnsure, cmdPoolStatus, cmdPoolRebuild}},
	{flag: "lanes", env: "HONGBAO_LANES", kind: kindLanes,
		usage: fmt.Sprintf("number of Redis lanes, 1 to 256; fixed per installation; empty = %d, with redis-mode cluster %d", pool.DefaultLanes,
			pool.DefaultClusterLanes), commands: redisCommands},
	{flag: "pool-rebuild", env: "HONGBAO_POOL_REBUILD", fallback: "auto", kind: kindRebuild, required: true,
		usage:    "rebuild of lanes from MySQL after Redis has lost data: auto (by this worker) or manual (hongbao pool rebuild --all)",
		commands: []string{cmdWorker}},
	{flag: "seed-key", env: "HONGBAO_SEED_KEY", kind: kindKey32, secret: true, required: true,
		usage: "key that encrypts the seeds of packets, 64 hex digits", commands: []string{cmdAPI, cmdWorker, cmdRecover, cmdDoctor}},
	{flag: "session-key", env: "HONGBAO_SESSION_KEY", kind: kindKeys32, secret: true, required: true,
		usage: "keys of the console's sessions, 64 hex digits each, separated by commas: the first encrypts, all decrypt; the same for " +
			"every API process",
		commands: []string{cmdAPI}},
	{flag: "temporal-address", env: "HONGBAO_TEMPORAL_ADDRESS", fallback: "127.0.0.1:17233", kind: kindAddress, required: true,
		usage: "address of the Temporal frontend", commands: temporalCommands},
	{flag: "temporal-namespace", env: "HONGBAO_TEMPORAL_NAMESPACE", fallback: "hongbao", kind: kindText, required: true,
		usage: "Temporal namespace", commands: temporalCommands},
	{flag: "temporal-tls", env: "HONGBAO_TEMPORAL_TLS", fallback: "false", kind: kindBool,
		usage: "connect to Temporal with TLS 1.2 or newer", commands: temporalCommands},
	{flag: "temporal-ca-file", env: "HONGBAO_TEMPORAL_CA_FILE", kind: kindFile,
		usage: "PEM file of the authorities that sign Temporal's certificate; empty = those of the system", commands: temporalCommands},
	{flag: "temporal-cert-file", env: "HONGBAO_TEMPORAL_CERT_FILE", kind: kindFile,
		usage: "PEM file of the client certificate for Temporal; read again for each connection", commands: temporalCommands},
	{flag: "temporal-key-file", env: "HONGBAO_TEMPORAL_KEY_FILE", kind: kindFile,
		usage: "PEM file of the client certificate's key; read again for each connection", commands: temporalCommands},
	{flag: "temporal-api-key", env: "HONGBAO_TEMPORAL_API_KEY", kind: kindToken, secret: true,
		usage: "API key for Temporal, sent as a bearer token; needs TLS", commands: temporalCommands},
	{flag: "temporal-server-name", env: "HONGBAO_TEMPORAL_SERVER_NAME", kind: kindServerName,
		usage: "host name in Temporal's certificate; empty = the host of its address", commands: temporalCommands},
	{flag: "temporal-ui-url", env: "HONGBAO_TEMPORAL_UI_URL", kind: kindBaseURL,
		usage: "URL of the Temporal web UI, for links to workflows; empty = no links", commands: []string{cmdAPI}},
	{flag: "console-url", env: "HONGBAO_CONSOLE_URL", kind: kindBaseURL,
		usage:    "URL of the staff listener for browsers, for links from the Temporal UI to the console; empty = no links",
		commands: []string{cmdWorker, cmdRecover}},
	{flag: "providers-file", env: "HONGBAO_PROVIDERS_FILE", kind: kindFile,
		usage: "JSON file of the payment providers (docs/providers.md); it replaces provider-url, provider-key, provider-account and " +
			"provider-rate; empty = one sandbox named sandbox", commands: providerCommands},
	{flag: "charge-provider", env: "HONGBAO_CHARGE_PROVIDER", kind: kindText,
		usage:    "name of the provider that charges the senders of new packets; empty = the only provider of providers-file",
		commands: providerCommands},
	{flag: "payout-provider", env: "HONGBAO_PAYOUT_PROVIDER", kind: kindText,
		usage:    "name of the provider that pays the recipients of new packets; empty = the only provider of providers-file",
		commands: providerCommands},
	{flag: "provider-url", env: "HONGBAO_PROVIDER_URL", kind: kindHostURL, required: true, unless: "providers-file",
		usage: "URL of the payment provider", commands: providerCommands},
	{flag: "provider-key", env: "HONGBAO_PROVIDER_KEY", kind: kindText, secret: true, required: true, unless: "providers-file",
		usage: "bearer key of the payment provider", commands: append([]string{cmdProvider}, providerCommands...)},
	{flag: "provider-account", env: "HONGBAO_PROVIDER_ACCOUNT", fallback: provider.SandboxAccount, kind: kindAccount, required: true,
		usage: "our account at the payment provider, such as a merchant number; the first start stores it in MySQL, with another one " +
			"the provider is held",
		commands: append([]string{cmdProvider}, providerCommands...)},
	{flag: "provider-rate", env: "HONGBAO_PROVIDER_RATE", fallback: "0", kind: kindRate, required: true,
		usage: "maximum of charges, payouts and refunds per second that all workers together send to the provider; the same for every " +
			"process; 0 = no limit",
		commands: []string{cmdAPI, cmdWorker}},
	{flag: "reconcile-at", env: "HONGBAO_RECONCILE_AT", fallback: "04:10", kind: kindClock, required: true,
		usage:    "time of day of the reconciliation of the day before, in the time zone of the provider's statement (sandbox: UTC)",
		commands: []string{cmdWorker}},
	retainSetting(staff.RetainedNotifications),
	retainSetting(staff.RetainedEvents),
	retainSetting(staff.RetainedLines),
	retainSetting(staff.RetainedStaffIdempotency),
	retainSetting(staff.RetainedDecisions),
	retainSetting(staff.RetainedBreaks),
	retainSetting(staff.RetainedQuarantine),
	{flag: "sandbox-webhook-secret", env: "HONGBAO_SANDBOX_WEBHOOK_SECRET", kind: kindWebhookSecret, secret: true, required: true,
		unless: "providers-file",
		usage:  "secret that signs the sandbox provider's notifications, whsec_ and base64", commands: []string{cmdAPI, cmdProvider}},
	{flag: "webhook-url", env: "HONGBAO_PROVIDER_WEBHOOK_URL", kind: kindURL,
		usage: "URL that receives notifications; empty = none are sent", commands: []string{cmdProvider}},
	{flag: "db", env: "HONGBAO_PROVIDER_DB", kind: kindText, required: true,
		usage: "database file of the sandbox provider", commands: []string{cmdProvider}},
	{flag: "low-balance", env: "HONGBAO_LOW_BALANCE", fallback: "0", kind: kindAmount, required: true,
		usage:    "balance of an app in fen below which health warns; 0 = only when campaigns need more than it has",
		commands: []string{cmdAPI, cmdWorker, cmdDoctor}},
	{flag: "approval-amount", env: "HONGBAO_APPROVAL_AMOUNT", fallback: api.DefaultApprovalAmount.Digits(), kind: kindAmount, required: true,
		usage: "amount in fen from which a retry needs a second person; 0 = always", commands: []string{cmdAPI}},

	{flag: "try-out", env: "HONGBAO_TRY_OUT", fallback: "false", kind: kindBool,
		usage:    "accept the public secrets and keys of docker-compose.yml, which are refused otherwise",
		commands: secretCommands},
	{flag: "checked-secrets", env: "HONGBAO_CHECKED_SECRETS", kind: kindText, secret: true,
		usage:    "secrets of other parts, as name=secret name=secret: refused when public, not used otherwise",
		commands: []string{cmdMigrate}},

	{flag: "crash-points", env: "HONGBAO_CRASH_POINTS", kind: kindText,
		usage: "for tests only: folder of failpoints; a file named like a failpoint kills this process at that step; refused unless the " +
			"provider is on this machine",
		commands: []string{cmdAPI, cmdWorker, cmdRecover}},

	{flag: "name", env: "HONGBAO_APP_NAME", kind: kindOwner,
		usage: "display name of the app; empty = its id", commands: []string{cmdAppsCreate}},
	{flag: "role", env: "HONGBAO_KEY_ROLE", kind: kindRole, required: true,
		usage: "role of the key: app, finance, ops, auditor or admin", commands: []string{cmdKeysDirectCreate, cmdKeysToken}},
	{flag: "app", env: "HONGBAO_KEY_APP", kind: kindAppID,
		usage: "app of the key; only with role app", commands: []string{cmdKeysDirectCreate}},
	{flag: "owner", env: "HONGBAO_KEY_OWNER", kind: kindOwner,
		usage: "owner of the key: a member of staff; default with role app: the app's id", commands: []string{cmdKeysDirectCreate}},
	{flag: "keys", env: "HONGBAO_ENSURE_KEYS", kind: kindTokens, secret: true, required: true,
		usage: "tokens to accept, as owner=token owner=token", commands: []string{cmdKeysEnsure}},

	{flag: "home", env: "HONGBAO_HOME", fallback: ".hongbao", kind: kindText, required: true,
		usage: "folder of the local stack's state", commands: []string{cmdDev, cmdDevState}},
	portSetting("API", "the API's public listener", devstack.DefaultPorts.API),
	portSetting("STAFF", "the API's staff listener", devstack.DefaultPorts.Staff),
	portSetting("PROVIDER", "the sandbox provider", devstack.DefaultPorts.Provider),
	portSetting("REDIS", "Redis", devstack.DefaultPorts.Redis),
	portSetting("MYSQL", "MariaDB", devstack.DefaultPorts.MySQL),
	portSetting("TEMPORAL", "Temporal", devstack.DefaultPorts.Temporal),
	portSetting("TEMPORAL_UI", "Temporal's web UI", devstack.DefaultPorts.TemporalUI),
	{flag: "no-install", env: "HONGBAO_NO_INSTALL", fallback: "false", kind: kindBool,
		usage: "fail instead of installing missing packages", commands: []string{cmdDev, cmdDevSetup}},
	{flag: "first-packet", env: "HONGBAO_FIRST_PACKET", fallback: "true", kind: kindBool,
		usage: "run the demonstration packets after the first start", commands: []string{cmdDev}},
	{flag: "links", env: "HONGBAO_LINKS", kind: kindLinks,
		usage: "addresses at which api, worker and provider reach other parts, for proxies of tests: worker-redis=host:port " +
			"provider-api=host:port; default: direct",
		commands: []string{cmdDev}},

	{flag: "url", env: "HONGBAO_URL", fallback: "http://127.0.0.1:8080", kind: kindBaseURL, required: true,
		usage: "URL of the API", commands: []string{cmdPackets}},
	{flag: "app-key", env: "HONGBAO_APP_KEY", kind: kindToken, secret: true, required: true,
		usage: "key of the app", commands: []string{cmdPackets}},
	{flag: "staff-url", env: "HONGBAO_STAFF_URL", fallback: "http://127.0.0.1:8081", kind: kindBaseURL, required: true,
		usage: "URL of the API's staff listener", commands: []string{cmdKeys, cmdFinance, cmdOps, cmdAuditor, cmdDoctor}},
	{flag: "admin-key", env: "HONGBAO_ADMIN_KEY", kind: kindToken, secret: true, required: true,
		usage:    "key of an administrator; list accepts any staff key, keys approve also a finance key",
		commands: []string{cmdKeys}},
	{flag: "finance-key", env: "HONGBAO_FINANCE_KEY", kind: kindToken, secret: true, required: true,
		usage: "key of role finance; commands that only read accept any staff key", commands: []string{cmdFinance}},
	{flag: "ops-key", env: "HONGBAO_OPS_KEY", kind: kindToken, secret: true, required: true,
		usage: "key of role ops or finance", commands: []string{cmdOps}},
	{flag: "auditor-key", env: "HONGBAO_AUDITOR_KEY", kind: kindToken, secret: true, required: true,
		usage: "key of role auditor", commands: []string{cmdAuditor}},

	{flag: "otlp-endpoint", env: "OTEL_EXPORTER_OTLP_ENDPOINT", kind: kindBaseURL,
		usage:    "URL of a collector of traces (OTLP over HTTP), such as http://127.0.0.1:4318; empty = no tracing",
		commands: []string{cmdAPI, cmdWorker}},
	{flag: "traces-sampler", env: "OTEL_TRACES_SAMPLER", fallback: "parentbased_traceidratio", kind: kindSampler, required: true,
		usage: "requests to trace: always_on, always_off, traceidratio, or parentbased_ and one of these, which follows the caller's " +
			"traceparent", commands: []string{cmdAPI}},
	{flag: "traces-sampler-arg", env: "OTEL_TRACES_SAMPLER_ARG", fallback: "0.01", kind: kindRatio, required: true,
		usage: "ratio of traced requests with traceidratio, 0 to 1", commands: []string{cmdAPI}},
	{flag: "log-format", env: "HONGBAO_LOG_FORMAT", fallback: "json", kind: kindLogFormat, required: true,
		usage: "format of the log: json or text", commands: []string{cmdAPI, cmdWorker, cmdProvider, cmdMigrate, cmdPoolRebuild}},
	{flag: "log-level", env: "HONGBAO_LOG_LEVEL", fallback: "info", kind: kindLogLevel, required: true,
		usage: "least level that is logged: debug, info, warn or error", commands: []string{cmdAPI, cmdWorker, cmdProvider, cmdMigrate,
			cmdPoolRebuild}},
}

// portFlag returns the flag of a port by its name in the environment.
func portFlag(name string) string { return "port-" + kebab(name) }

func portSetting(name, whose string, fallback int) setting {
	return setting{flag: portFlag(name), env: devstack.EnvPortPrefix + name, fallback: strconv.Itoa(fallback), kind: kindPort,
		required: true, usage: "port of " + whose, commands: []string{cmdDev}}
}

// scriptVariables are known variables that are no setting of a command: dev.env sets them for users and scripts.
var scriptVariables = []string{
	envFileName,
	"HONGBAO_APP2_KEY", "HONGBAO_FINANCE2_KEY",
	"HONGBAO_PID_API", "HONGBAO_PID_WORKER", "HONGBAO_PID_PROVIDER", "HONGBAO_PID_REDIS", "HONGBAO_PID_MYSQL", "HONGBAO_PID_TEMPORAL",
}

// retainFlag returns the flag of a table's retention.
func retainFlag(table staff.RetainedTable) string { return "retain-" + kebab(string(table)) }

func retainSetting(table staff.RetainedTable) setting {
	for _, r := range staff.Retentions {
		if r.Table == table {
			return setting{flag: retainFlag(table), env: "HONGBAO_RETAIN_" + strings.ToUpper(string(table)), fallback: strconv.FormatInt(r.Days, 10),
				kind: kindDays(r.Minimum), required: true, commands: []string{cmdWorker},
				usage: fmt.Sprintf("retention of %s in days, at least %d; 0 = unlimited", r.Rows, r.Minimum)}
		}
	}
	panic("no retention of " + table)
}
