package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Names inside the local stack.
const (
	mysqlDatabase = "hongbao"
	mysqlUser     = "hongbao"
	namespace     = "hongbao"
)

// makeEnv returns the addresses and keys of a stack.
func makeEnv(ports Ports, s secrets) Env {
	database := MariaDB{Port: ports.MySQL, User: mysqlUser, Password: s.MySQLPassword}
	return Env{
		URL:                  "http://" + hostPort(ports.API),
		StaffURL:             "http://" + hostPort(ports.Staff),
		ProviderURL:          "http://" + hostPort(ports.Provider),
		ProviderKey:          s.ProviderKey,
		TemporalAddress:      hostPort(ports.Temporal),
		TemporalNamespace:    namespace,
		TemporalUIURL:        "http://" + hostPort(ports.TemporalUI),
		RedisAddr:            hostPort(ports.Redis),
		MySQLDSN:             database.DSN(mysqlDatabase),
		SandboxWebhookSecret: s.WebhookSecret,
		Keys:                 s.Keys,
	}
}

// makeParts returns the parts of a stack by the names of their children. Each program gets exactly the settings that it
// needs, under the names in `hongbao <command> --help`. The programs reach the other parts through links, and do not get the
// variables of withhold from the environment.
func makeParts(home Home, ports Ports, tools Tools, binary string, s secrets, links Links, withhold ...string) map[string]Part {
	env := makeEnv(ports, s)
	own := func(command string, settings []variable, ready ...string) *program {
		return &program{binary: binary, command: command, dir: home.dir, env: settings, withhold: withhold, ready: ready}
	}
	shared := func(who string) []variable {
		database := MariaDB{User: mysqlUser, Password: s.MySQLPassword}
		return []variable{
			{"HONGBAO_REDIS_ADDR", links.resolve(who+"-redis", env.RedisAddr)},
			{"HONGBAO_MYSQL_DSN", database.dsnAt(links.resolve(who+"-mysql", hostPort(ports.MySQL)), mysqlDatabase)},
			{"HONGBAO_SEED_KEY", s.SeedKey},
			{"HONGBAO_PROVIDER_URL", "http://" + links.resolve(who+"-provider", hostPort(ports.Provider))},
			{"HONGBAO_PROVIDER_KEY", s.ProviderKey},
			{"HONGBAO_TEMPORAL_ADDRESS", links.resolve(who+"-temporal", env.TemporalAddress)},
			{"HONGBAO_TEMPORAL_NAMESPACE", env.TemporalNamespace},
			// The environment may be set up for another provider, Redis or Temporal. The servers of this stack are single
			// ones without TLS and authentication.
			{"HONGBAO_PROVIDER_ACCOUNT", ""},
			{"HONGBAO_REDIS_MODE", ""},
			{"HONGBAO_REDIS_MASTER", ""},
			{"HONGBAO_REDIS_USERNAME", ""},
			{"HONGBAO_REDIS_PASSWORD", ""},
			{"HONGBAO_REDIS_SENTINEL_PASSWORD", ""},
			{"HONGBAO_REDIS_TLS", ""},
			{"HONGBAO_REDIS_CA_FILE", ""},
			{"HONGBAO_REDIS_REPLICAS", ""},
			{"HONGBAO_TEMPORAL_TLS", ""},
			{"HONGBAO_TEMPORAL_CA_FILE", ""},
			{"HONGBAO_TEMPORAL_CERT_FILE", ""},
			{"HONGBAO_TEMPORAL_KEY_FILE", ""},
			{"HONGBAO_TEMPORAL_API_KEY", ""},
			{"HONGBAO_TEMPORAL_SERVER_NAME", ""},
		}
	}
	api := own(childAPI, append([]variable{
		{"HONGBAO_API_LISTEN", hostPort(ports.API)},
		{"HONGBAO_STAFF_LISTEN", hostPort(ports.Staff)},
		{"HONGBAO_SESSION_KEY", s.SessionKey},
		{"HONGBAO_SANDBOX_WEBHOOK_SECRET", s.WebhookSecret},
		{"HONGBAO_TEMPORAL_UI_URL", env.TemporalUIURL},
	}, shared(childAPI)...), env.URL+"/readyz", env.StaffURL+"/readyz")
	worker := own(childWorker, append([]variable{{"HONGBAO_CONSOLE_URL", env.StaffURL}}, shared(childWorker)...))
	worker.healthEnv = "HONGBAO_WORKER_LISTEN"
	provider := own(childProvider, []variable{
		{"HONGBAO_PROVIDER_LISTEN", hostPort(ports.Provider)},
		{"HONGBAO_PROVIDER_DB", home.providerDB()},
		{"HONGBAO_PROVIDER_ACCOUNT", ""},
		{"HONGBAO_PROVIDER_KEY", s.ProviderKey},
		{"HONGBAO_PROVIDER_WEBHOOK_URL", "http://" + links.resolve("provider-api", hostPort(ports.API)) + "/v1/provider-notifications/sandbox"},
		{"HONGBAO_SANDBOX_WEBHOOK_SECRET", s.WebhookSecret},
	}, env.ProviderURL+"/readyz")
	return map[string]Part{
		childAPI:      api,
		childWorker:   worker,
		childProvider: partWithFolder{provider, home.path(homeData, childProvider)},
		childRedis:    Redis{Tools: tools, Dir: home.path(homeData, childRedis), Port: ports.Redis},
		childMySQL: MariaDB{
			Tools: tools, Dir: home.path(homeData, childMySQL), Port: ports.MySQL,
			Database: mysqlDatabase, User: mysqlUser, Password: s.MySQLPassword,
		},
		childTemporal: Temporal{
			Tools: tools, DB: home.path(homeData, childTemporal, "temporal.db"),
			Port: ports.Temporal, UIPort: ports.TemporalUI, Namespace: namespace,
			Whole: exists(home.path(homeFirstStart)), // older homes have no marker file of their database
		},
	}
}

// makeChildren sets the env and the children of s.
func (s *supervisor) makeChildren() {
	s.env = makeEnv(s.options.Ports, s.secrets)
	for name, part := range makeParts(s.home, s.options.Ports, s.options.Tools, s.options.Binary, s.secrets, s.options.Links,
		s.options.DropVariables...) {
		if database, ok := part.(MariaDB); ok {
			database.preparing = s.prepares
			part = database
		}
		s.children[name] = newChild(name, part, s.home.LogFile(name))
	}
}

// prepares records the processes that create a data folder. If this process is killed, the next supervisor or Stop ends
// them.
func (s *supervisor) prepares(group processGroup) {
	s.mu.Lock()
	s.preparing = group
	s.mu.Unlock()
	s.changed()
}

// partWithFolder creates a folder before each start of a part.
type partWithFolder struct {
	Part
	folder string
}

// Command implements Part.
func (w partWithFolder) Command(ctx context.Context) (*exec.Cmd, error) {
	if err := os.MkdirAll(w.folder, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return w.Part.Command(ctx)
}
