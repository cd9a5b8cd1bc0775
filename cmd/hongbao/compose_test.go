package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	// The parser that `docker compose` itself uses: what it makes of the file, with
	// anchors, defaults and short forms, is what would run. Pinned, so that this
	// test fails because of the file and not because of a new release.
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/go-sql-driver/mysql"
	"github.com/spf13/cobra"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack"
	"hongbao/workflows"
)

// checkout is the top of the repository, seen from this package's folder.
var checkout = filepath.Join("..", "..")

func readRepo(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// composeDetails is a compose file of the given text at the top of the repository,
// with no variable set, as after a clone.
func composeDetails(text string) (types.ConfigDetails, error) {
	dir, err := filepath.Abs(checkout)
	return types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml"), Content: []byte(text)}},
		Environment: types.Mapping{},
	}, err
}

func loadCompose(ctx context.Context, text string) (*types.Project, error) {
	details, err := composeDetails(text)
	if err != nil {
		return nil, err
	}
	return loader.LoadWithContext(ctx, details, loader.WithProfiles([]string{"*"}))
}

// composeRule is a rule about docker-compose.yml. Replacing breaks[0] by
// breaks[1] in the file must be caught, for each of breaks.
type composeRule struct {
	name, why string
	check     func(p *types.Project, offend func(service, format string, args ...any))
	breaks    [][2]string
}

// ours reports whether a service runs our binary.
func ours(s types.ServiceConfig) bool {
	return strings.HasPrefix(s.Image, "hongbao:") || s.Image == "hongbao"
}

// oneShot reports whether a service ends by itself.
func oneShot(p *types.Project, name string) bool {
	for _, s := range p.Services {
		if s.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// needs reports whether service waits for other, itself or through what it waits for.
func needs(p *types.Project, service, other string) bool {
	for name := range p.Services[service].DependsOn {
		if name == other || needs(p, name, other) {
			return true
		}
	}
	return false
}

// environ is the environment of a service in the form of os.Environ.
func environ(s types.ServiceConfig) []string {
	var list []string
	for name, value := range s.Environment {
		if value != nil {
			list = append(list, name+"="+*value)
		}
	}
	slices.Sort(list)
	return list
}

func value(s types.ServiceConfig, name string) string {
	if v := s.Environment[name]; v != nil {
		return *v
	}
	return ""
}

// settingsCommand names the entry in the table of settings of a command line.
var settingsCommand = map[string]string{
	"hongbao api": cmdAPI, "hongbao worker": cmdWorker, "hongbao provider": cmdProvider, "hongbao migrate up": cmdMigrate,
	"hongbao keys ensure": cmdKeysEnsure,
}

// parseOurs parses a command line with the program's own tree and reads the
// settings of its command, as main would, and stops there.
func parseOurs(s types.ServiceConfig, args []string) (*cobra.Command, config, error) {
	root := newRoot(environ(s))
	cmd, rest, err := root.Find(args)
	if err != nil {
		return nil, config{}, err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, config{}, err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return nil, config{}, err
	}
	name, ok := settingsCommand[cmd.CommandPath()]
	if !ok {
		return cmd, config{}, nil
	}
	c, err := readConfig(cmd, name, newEnvironment(environ(s)))
	return cmd, c, err
}

var composeRules = []composeRule{
	{
		name: "images are pinned", why: "what was tested is what starts",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for _, s := range p.Services {
				_, tag, _ := strings.Cut(s.Image, ":")
				if !ours(s) && (tag == "latest" || !strings.ContainsAny(tag, "0123456789")) || ours(s) && (tag == "" || tag == "latest") {
					offend(s.Name, "image %q", s.Image)
				}
			}
		},
		breaks: [][2]string{{"mysql:8.4", "mysql"}, {"redis:8.2", "redis:latest"}, {"temporalio/ui:2.54.1", "temporalio/ui:stable"},
			{"hongbao:${HB_VERSION:-local}", "hongbao"}},
	},
	{
		name: "Temporal's server and tools have one version", why: "the tools carry the schema of their own version",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			_, server, _ := strings.Cut(p.Services["temporal"].Image, ":")
			for _, name := range []string{"temporal-schema", "temporal-namespace"} {
				if _, tools, _ := strings.Cut(p.Services[name].Image, ":"); tools != server {
					offend(name, "version %s, the server has %s", tools, server)
				}
			}
		},
		breaks: [][2]string{{"temporalio/server:1.32.0", "temporalio/server:1.32.1"}},
	},
	{
		name: "any number of workers", why: "a name or a port on the host can be had once only",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for _, s := range p.Services {
				if s.ContainerName != "" {
					offend(s.Name, "container_name %s", s.ContainerName)
				}
			}
			if w := p.Services["worker"]; len(w.Ports) > 0 || len(w.Volumes) > 0 || w.Hostname != "" {
				offend("worker", "ports %v, volumes %v, host name %q", w.Ports, w.Volumes, w.Hostname)
			}
		},
		breaks: [][2]string{{"command: [worker]", "command: [worker]\n    container_name: w"},
			{"command: [worker]", "command: [worker]\n    ports: [\"127.0.0.1:8082:8082\"]"}},
	},
	{
		name: "published ports", why: "only what people call, and only from this machine: the keys are public and there is no TLS",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			want := []string{"api:8080", "api:8081", "grafana:3000", "prometheus:9090", "temporal-ui:8080"}
			var got []string
			for _, s := range p.Services {
				for _, port := range s.Ports {
					got = append(got, fmt.Sprintf("%s:%d", s.Name, port.Target))
					if port.HostIP != "127.0.0.1" || port.Published == "" {
						offend(s.Name, "port %d is published on %q", port.Target, port.HostIP)
					}
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				offend("", "published %v, want %v", got, want)
			}
		},
		breaks: [][2]string{
			{`"127.0.0.1:${HB_API_PORT:-28080}:8080"`, `"8080:8080"`}, {`"127.0.0.1:${HB_API_PORT:-28080}:8080"`, `"0.0.0.0:8080:8080"`},
			{`volumes: ["redis:/data"]`, `volumes: ["redis:/data"]` + "\n    ports: [\"127.0.0.1:6379:6379\"]"},
		},
	},
	{
		name: "observability", why: "who does not ask for it does not start it, and what it scrapes is where the processes listen",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for _, s := range p.Services {
				wanted := s.Name == "prometheus" || s.Name == "grafana"
				if wanted != slices.Equal(s.Profiles, []string{"observability"}) || !wanted &&
					(needs(p, s.Name, "prometheus") || needs(p, s.Name, "grafana")) {
					offend(s.Name, "profiles %q, waits for %v", s.Profiles, s.DependsOn)
				}
			}
			config, err := os.ReadFile(filepath.Join(checkout, "deploy", "prometheus", "prometheus.yml"))
			if err != nil {
				offend("prometheus", "%v", err)
			}
			_, staff, _ := net.SplitHostPort(value(p.Services["api"], "HONGBAO_STAFF_LISTEN"))
			_, worker, _ := net.SplitHostPort(value(p.Services["worker"], "HONGBAO_WORKER_LISTEN"))
			for _, line := range []string{`targets: ["api:` + staff + `"]`, "names: [worker]", "port: " + worker} {
				if !strings.Contains(string(config), line) {
					offend("prometheus", "it does not scrape %s", line)
				}
			}
		},
		breaks: [][2]string{{"    profiles: [observability]\n", ""}, {"HONGBAO_STAFF_LISTEN: 0.0.0.0:8081", "HONGBAO_STAFF_LISTEN: 0.0.0.0:8083"},
			{"HONGBAO_WORKER_LISTEN: 0.0.0.0:8082", "HONGBAO_WORKER_LISTEN: 0.0.0.0:8084"},
			{"      temporal: {condition: service_healthy}\n    healthcheck:\n      test: [CMD, wget",
				"      prometheus: {condition: service_healthy}\n    healthcheck:\n      test: [CMD, wget"}},
	},
	{
		name: "dependencies", why: "a circle never starts; `up --wait` fails when nothing that runs waits for a one-shot",
		check: checkDependencies,
		breaks: [][2]string{
			{"redis: {condition: service_healthy}", "redis: {condition: service_started}"},
			{"keys: {condition: service_completed_successfully}", "keys: {condition: service_healthy}"},
			{"      keys: {condition: service_completed_successfully}\n", ""},
			{"redis: {condition: service_healthy}", "nobody: {condition: service_healthy}"},
			{"    volumes: [\"redis:/data\"]\n", "    volumes: [\"redis:/data\"]\n    depends_on:\n      api: {condition: service_healthy}\n"},
		},
	},
	{
		name: "what runs is watched", why: "a service without a health check counts as healthy, one without a restart policy stays down",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for _, s := range p.Services {
				healthy := s.HealthCheck != nil && !s.HealthCheck.Disable && len(s.HealthCheck.Test) > 1
				switch {
				case oneShot(p, s.Name):
					if !strings.HasPrefix(s.Restart, "on-failure:") || s.HealthCheck != nil {
						offend(s.Name, "a one-shot with restart %q, health check %v", s.Restart, s.HealthCheck)
					}
				case s.Restart != types.RestartPolicyUnlessStopped, !healthy:
					offend(s.Name, "restart %q, health check %v", s.Restart, s.HealthCheck)
				}
			}
		},
		breaks: [][2]string{
			{"restart: unless-stopped", "restart: \"no\""}, {"restart: on-failure:5", "restart: always"},
			{"test: [CMD, nc, -z, 127.0.0.1, \"7233\"]", "disable: true"},
		},
	},
	{
		name: "what is mounted is there", why: "Docker makes an empty folder of a file that is not, and starts",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for _, s := range p.Services {
				for _, v := range s.Volumes {
					switch v.Type {
					case types.VolumeTypeBind:
						if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
							offend(s.Name, "%s, read only %t: %v", v.Source, v.ReadOnly, err)
						}
					case types.VolumeTypeVolume:
						if _, ok := p.Volumes[v.Source]; !ok || v.Source == "" {
							offend(s.Name, "volume %q is not declared", v.Source)
						}
					default:
						offend(s.Name, "a mount of type %s", v.Type)
					}
				}
				for _, word := range s.Entrypoint {
					if strings.HasPrefix(word, "/deploy/") &&
						!slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == word }) {
						offend(s.Name, "runs %s, which is not mounted", word)
					}
				}
			}
		},
		breaks: [][2]string{
			{"./deploy/temporal/schema.sh:/deploy/schema.sh:ro", "./deploy/temporal/schemas.sh:/deploy/schema.sh:ro"},
			{"/deploy/namespace.sh:ro", "/deploy/namespaces.sh:ro"}, {"dynamicconfig:ro", "dynamicconfig"}, {"redis:/data", "redis7:/data"},
		},
	},
	{
		name: "state is in volumes", why: "what is in a container goes with it",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for name, target := range map[string]string{"mysql": "/var/lib/mysql", "redis": "/data", "prometheus": "/prometheus",
				"grafana": "/var/lib/grafana", "provider": filepath.Dir(value(p.Services["provider"], "HONGBAO_PROVIDER_DB"))} {
				if !slices.ContainsFunc(p.Services[name].Volumes, func(v types.ServiceVolumeConfig) bool {
					return v.Type == types.VolumeTypeVolume && v.Target == target
				}) {
					offend(name, "no volume on %s", target)
				}
			}
		},
		breaks: [][2]string{{"redis:/data", "redis:/var/data"}, {"/data/provider.db", "/provider.db"}},
	},
	{
		name: "MySQL", why: "the store counts on READ COMMITTED, and on a user of its own",
		check: checkMySQL,
		breaks: [][2]string{{"--transaction-isolation=READ-COMMITTED", "--transaction-isolation=REPEATABLE-READ"},
			{"MYSQL_USER: hongbao", "MYSQL_USER: hb"},
			{"SQL_PASSWORD: ${HB_TEMPORAL_MYSQL_PASSWORD", "SQL_PASSWORD: ${HB_MYSQL_PASSWORD:-x}${HB_TEMPORAL_MYSQL_PASSWORD"},
			{"tcp(mysql:3306)/hongbao", "tcp(mysql:3306)/other"}},
	},
	{
		name: "our commands", why: "a container that ends at once reports no cause",
		check: checkCommands,
		breaks: [][2]string{
			{"command: [migrate, up]", "command: [migrate, upwards]"}, {"command: [worker]", "command: [worker, --lane=1]"},
			{"command: [api]", "command: [api, now]"}, {"command: [api]", "command: [version]"},
			{"command: [provider]", "command: [provider]\n    entrypoint: [/bin/sh]"}, {"HONGBAO_WORKER_LISTEN", "HONGBAO_WORKERS_LISTEN"},
			{"HONGBAO_PROVIDER_DB: /data/provider.db", "HONGBAO_PROVIDER_DB: \"\""},
			{"HONGBAO_PROVIDER_DB: /data/provider.db", "HONGBAO_PROVIDER_DB: /data/provider.db\n      HONGBAO_LANES: \"64\""},
			{"OUTONLY222222222222222222222BARPGK5", "OUTONLY222222222222222222222BARPGK6"},
		},
	},
	{
		name: "addresses", why: "a default such as 127.0.0.1 is valid and leads nowhere in a container",
		check: checkAddresses,
		breaks: [][2]string{
			{"HONGBAO_REDIS_ADDR: redis:6379", "HONGBAO_REDIS_ADDR: reddis:6379"}, {"  HONGBAO_REDIS_ADDR: redis:6379\n", ""},
			{"http://provider:8090", "http://provider:8091"}, {"http://api:8080/v1", "http://api:8081/v1"},
			{"HONGBAO_API_LISTEN: 0.0.0.0:8080", "HONGBAO_API_LISTEN: 127.0.0.1:8080"},
			{"http://api:8080/v1/provider-notifications/sandbox", "http://api:8080/v1/notifications"},
			{"HONGBAO_CONSOLE_URL: http://127.0.0.1:${HB_STAFF_PORT:-28081}", "HONGBAO_CONSOLE_URL: http://127.0.0.1:8080"},
			{"      redis: {condition: service_healthy}\n      provider: {condition: service_healthy}\n    healthcheck:\n      test: [CMD, " +
				"/hongbao, healthcheck, \"http://127.0.0.1:8082/readyz\"]", "      provider: {condition: service_healthy}\n    healthcheck:\n      " +
				"test: [CMD, /hongbao, healthcheck, \"http://127.0.0.1:8082/readyz\"]"},
		},
	},
	{
		name: "one value for one setting", why: "API and worker with other keys or lanes would not understand each other",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			first := map[string]string{}
			for _, name := range p.ServiceNames() {
				for variable, v := range p.Services[name].Environment {
					if !strings.HasPrefix(variable, envPrefix) || v == nil {
						continue
					}
					if other, ok := first[variable]; ok && other != *v {
						offend(name, "another %s than others have", variable)
					}
					first[variable] = *v
				}
			}
		},
		breaks: [][2]string{{"HONGBAO_SANDBOX_WEBHOOK_SECRET: ${HB_WEBHOOK_SECRET:-whsec_",
			"HONGBAO_SANDBOX_WEBHOOK_SECRET: ${HB_WEBHOOK_SECRET:-whsec_AAAA"}},
	},
	{
		name: "our health checks", why: "a check of another port or of liveness says nothing about readiness",
		check: checkHealthchecks,
		breaks: [][2]string{
			{"http://127.0.0.1:8080/readyz", "http://127.0.0.1:8081/"}, {"http://127.0.0.1:8082/readyz", "http://127.0.0.1:8083/readyz"},
			{"[CMD, /hongbao, healthcheck, \"http://127.0.0.1:8090/readyz\"]", "[CMD, /hongbao, health, \"http://127.0.0.1:8090/readyz\"]"},
			{"[CMD, /hongbao, healthcheck, \"http://127.0.0.1:8090/readyz\"]", "[CMD-SHELL, \"curl http://127.0.0.1:8090/readyz\"]"},
			{"readyz\"]\n      interval: 3s\n      timeout: 5s", "readyz\"]\n      interval: 3s\n      timeout: 2s"},
		},
	},
	{
		name: "time to stop", why: "a payment call that is killed ends as unknown, a request without an answer",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for name, least := range map[string]time.Duration{
				"worker": workflows.WorkerStopTimeout + 5*time.Second, "api": api.DefaultDrainTime + 5*time.Second, "mysql": 30 * time.Second,
			} {
				if grace := p.Services[name].StopGracePeriod; grace == nil || time.Duration(*grace) < least {
					offend(name, "stop_grace_period %v, at least %v", grace, least)
				}
			}
		},
		breaks: [][2]string{{"restart: unless-stopped\n    stop_grace_period: 30s\n\n  api:",
			"restart: unless-stopped\n    stop_grace_period: 12s\n\n  api:"}, {"    stop_grace_period: 20s\n", ""}},
	},
	{
		name: "our containers may do little", why: "they need no root, no capability and no place to write but a volume",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			for _, s := range p.Services {
				if ours(s) && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") ||
					s.User != "" || s.Privileged) {
					offend(s.Name, "read only %t, capabilities dropped %v, %v, user %q", s.ReadOnly, s.CapDrop, s.SecurityOpt, s.User)
				}
			}
		},
		breaks: [][2]string{{"  read_only: true\n", ""}, {"cap_drop: [ALL]", "cap_drop: [CHOWN]"},
			{"command: [api]", "command: [api]\n    user: root"}},
	},
	{
		name: "Temporal's namespace", why: "the relay and the watch count on seven days of history",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			s := p.Services["temporal-namespace"]
			if d, err := time.ParseDuration(value(s, "RETENTION")); err != nil || d < devstack.Retention {
				offend(s.Name, "retention %q, at least %v", value(s, "RETENTION"), devstack.Retention)
			}
			for _, name := range []string{"api", "worker"} {
				if ns := value(p.Services[name], "HONGBAO_TEMPORAL_NAMESPACE"); ns != value(s, "TEMPORAL_NAMESPACE") {
					offend(name, "namespace %q, made is %q", ns, value(s, "TEMPORAL_NAMESPACE"))
				}
			}
			folder := filepath.Dir(value(p.Services["temporal"], "DYNAMIC_CONFIG_FILE_PATH"))
			for _, v := range p.Services["temporal"].Volumes {
				if _, err := os.Stat(filepath.Join(v.Source,
					filepath.Base(value(p.Services["temporal"], "DYNAMIC_CONFIG_FILE_PATH")))); v.Target != folder || err != nil {
					offend("temporal", "dynamic settings are not where the server looks: %v", err) // it does not start without
				}
			}
		},
		breaks: [][2]string{{"RETENTION: 168h", "RETENTION: 72h"},
			{"TEMPORAL_NAMESPACE: hongbao\n      RETENTION", "TEMPORAL_NAMESPACE: default\n      RETENTION"},
			{"dynamicconfig/server.yaml", "dynamicconfig/docker.yaml"}},
	},
}

func checkDependencies(p *types.Project, offend func(string, string, ...any)) {
	for _, s := range p.Services {
		if !acyclic(p, s.Name, nil) {
			offend(s.Name, "waits for itself")
		}
		for name, d := range s.DependsOn {
			other, ok := p.Services[name]
			switch {
			case !ok:
				offend(s.Name, "waits for %s, which is not a service", name)
			case d.Condition == types.ServiceConditionHealthy && other.HealthCheck == nil:
				offend(s.Name, "waits for the health of %s, which has no check", name)
			case d.Condition == types.ServiceConditionStarted:
				offend(s.Name, "waits for %s to be started only", name)
			}
		}
		if s.Restart != types.RestartPolicyUnlessStopped && !awaited(p, s.Name) {
			offend(s.Name, "ends by itself, and nothing that runs waits for it")
		}
	}
}

func acyclic(p *types.Project, name string, above []string) bool {
	if slices.Contains(above, name) {
		return false
	}
	for next := range p.Services[name].DependsOn {
		if !acyclic(p, next, append(slices.Clone(above), name)) {
			return false
		}
	}
	return true
}

func awaited(p *types.Project, name string) bool {
	for _, s := range p.Services {
		if !oneShot(p, s.Name) && s.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

func checkMySQL(p *types.Project, offend func(string, string, ...any)) {
	server, temporal, schema := p.Services["mysql"], p.Services["temporal"], p.Services["temporal-schema"]
	if !slices.Contains(server.Command, "--transaction-isolation=READ-COMMITTED") {
		offend("mysql", "command %v", server.Command)
	}
	for _, s := range p.Services {
		dsn := value(s, "HONGBAO_MYSQL_DSN")
		if dsn == "" {
			continue
		}
		c, err := mysql.ParseDSN(dsn)
		if err != nil || c.User != value(server, "MYSQL_USER") || c.Passwd != value(server, "MYSQL_PASSWORD") ||
			c.DBName != value(server, "MYSQL_DATABASE") || c.Addr != "mysql:3306" {
			offend(s.Name, "its DSN does not lead to what the server creates: %v", err)
		}
	}
	password := value(server, "TEMPORAL_PASSWORD")
	if password == "" || value(schema, "SQL_PASSWORD") != password || value(temporal, "MYSQL_PWD") != password {
		offend("temporal", "Temporal's password is not the same everywhere")
	}
	if value(schema, "SQL_USER") != "temporal" || value(temporal, "MYSQL_USER") != "temporal" {
		offend("temporal", "Temporal's user is not the one of temporal-user.sh")
	}
}

func checkCommands(p *types.Project, offend func(string, string, ...any)) {
	for _, s := range p.Services {
		if !ours(s) {
			continue
		}
		if len(s.Entrypoint) > 0 {
			offend(s.Name, "another entrypoint than the image's: %v", s.Entrypoint)
		}
		cmd, c, err := parseOurs(s, s.Command)
		if err != nil {
			offend(s.Name, "%v: %v", s.Command, err)
			continue
		}
		if c.command == "" {
			offend(s.Name, "%v is no command of a service", s.Command)
			continue
		}
		for name := range s.Environment {
			if !slices.ContainsFunc(settingsOf(c.command), func(k setting) bool { return k.env == name }) {
				offend(s.Name, "%s is not a setting of %s", name, cmd.CommandPath())
			}
		}
	}
}

// checkAddresses follows every address among our settings to the service that
// listens there.
func checkAddresses(p *types.Project, offend func(string, string, ...any)) {
	listens := map[string]bool{"mysql:3306": true, "redis:6379": true, "temporal:7233": true}
	for _, s := range p.Services {
		for _, k := range settings {
			if k.kind.name == kindListen.name && strings.HasSuffix(k.flag, "listen") && value(s, k.env) != "" {
				host, port, err := net.SplitHostPort(value(s, k.env))
				if err != nil || host != "0.0.0.0" {
					offend(s.Name, "%s listens on %q, where others cannot reach it", k.env, value(s, k.env))
				}
				if k.env != "HONGBAO_STAFF_LISTEN" { // for people
					listens[net.JoinHostPort(s.Name, port)] = true
				}
			}
		}
	}
	for _, s := range p.Services {
		_, c, err := parseOurs(s, s.Command)
		if !ours(s) || err != nil || c.command == "" {
			continue
		}
		for _, k := range settingsOf(c.command) {
			address := addressIn(k, c.text(k.flag))
			if address == "" {
				continue
			}
			host, _, _ := net.SplitHostPort(address)
			if !listens[address] {
				offend(s.Name, "%s leads to %s, where nobody listens", k.env, address)
			} else if k.env != "HONGBAO_PROVIDER_WEBHOOK_URL" && !needs(p, s.Name, host) { // notifications are repeated
				offend(s.Name, "uses %s without waiting for it", host)
			}
		}
	}
	hook := value(p.Services["provider"], "HONGBAO_PROVIDER_WEBHOOK_URL")
	if u, err := url.Parse(hook); err != nil || u.Path != "/v1/provider-notifications/sandbox" {
		offend("provider", "notifications go to %q", hook)
	}
	if ui := value(p.Services["api"], "HONGBAO_TEMPORAL_UI_URL"); ui != "http://127.0.0.1:"+published(p, "temporal-ui") {
		offend("api", "links lead to %q", ui)
	}
	if desk := value(p.Services["worker"], "HONGBAO_CONSOLE_URL"); desk != "http://127.0.0.1:"+publishedAs(p, "api", 8081) {
		offend("worker", "links lead to %q", desk)
	}
}

// addressIn returns host:port of a setting that leads to another service, or "".
func addressIn(k setting, text string) string {
	switch {
	case text == "" || k.env == "HONGBAO_TEMPORAL_UI_URL" || k.env == "HONGBAO_CONSOLE_URL": // for browsers
		return ""
	case k.kind.name == kindDSN.name:
		c, err := mysql.ParseDSN(text)
		if err != nil {
			return "?"
		}
		return c.Addr
	case k.kind.name == kindURL.name:
		u, err := url.Parse(text)
		if err != nil {
			return "?"
		}
		return u.Host
	case k.kind.name == kindAddress.name && !strings.HasSuffix(k.flag, "listen"):
		return text
	}
	return ""
}

func published(p *types.Project, service string) string {
	for _, port := range p.Services[service].Ports {
		return port.Published
	}
	return ""
}

// publishedAs is the port under which one port of a service is found from outside.
func publishedAs(p *types.Project, service string, target uint32) string {
	for _, port := range p.Services[service].Ports {
		if port.Target == target {
			return port.Published
		}
	}
	return ""
}

func checkHealthchecks(p *types.Project, offend func(string, string, ...any)) {
	for _, s := range p.Services {
		if !ours(s) || s.HealthCheck == nil {
			continue
		}
		test := s.HealthCheck.Test
		if len(test) != 4 || test[0] != "CMD" || test[1] != "/hongbao" {
			offend(s.Name, "health check %q", test)
			continue
		}
		cmd, _, err := parseOurs(s, test[2:])
		if err != nil || cmd.Name() != "healthcheck" {
			offend(s.Name, "health check %q: %v", test, err)
			continue
		}
		u, err := url.Parse(test[3])
		if err != nil || u.Hostname() != "127.0.0.1" || u.Path != "/readyz" {
			offend(s.Name, "health check asks %q", test[3])
			continue
		}
		own := false
		for _, entry := range environ(s) {
			name, text, _ := strings.Cut(entry, "=")
			own = own || strings.HasSuffix(name, "_LISTEN") && strings.HasSuffix(text, ":"+u.Port())
		}
		if !own {
			offend(s.Name, "health check asks port %s, where it does not listen", u.Port())
		}
		if t := s.HealthCheck.Timeout; t == nil || time.Duration(*t) <= healthTimeout {
			offend(s.Name, "health check is killed after %v, before its own %v", t, healthTimeout)
		}
	}
}

// composeOffences loads a file and checks it against a rule. A file that does
// not load is an offence too.
func (r composeRule) offences(ctx context.Context, text string) (out []string) {
	p, err := loadCompose(ctx, text)
	if err != nil {
		return []string{err.Error()}
	}
	r.check(p, func(service, format string, args ...any) {
		out = append(out, service+": "+fmt.Sprintf(format, args...))
	})
	return out
}

// TestR8_TemporalComparesUserIDsExactly: ids of runs hold users' ids. What Temporal's own tool
// would create compares them by MySQL's default, which neither sees case nor accents.
func TestR8_TemporalComparesUserIDsExactly(t *testing.T) {
	const want = "CREATE DATABASE IF NOT EXISTS temporal CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin;"
	if script := readRepo(t, "deploy/mysql/temporal-user.sh"); !strings.Contains(script, want) {
		t.Errorf("Temporal's database is not created by\n%s\n%s", want, script)
	}
}

func TestCompose(t *testing.T) {
	text := readRepo(t, "docker-compose.yml")
	p, err := loadCompose(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mysql", "redis", "temporal", "temporal-ui", "temporal-schema", "temporal-namespace", "migrate", "keys",
		"provider", "worker", "api"} {
		if _, ok := p.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	for _, rule := range slices.Concat(composeRules, composeBuildRules) {
		t.Run(rule.name, func(t *testing.T) {
			for _, offence := range rule.offences(t.Context(), text) {
				t.Errorf("%s (%s)", offence, rule.why)
			}
		})
	}
}

func TestComposeRulesCatch(t *testing.T) {
	t.Parallel()
	text := readRepo(t, "docker-compose.yml")
	for _, rule := range slices.Concat(composeRules, composeBuildRules) {
		for i, b := range rule.breaks {
			t.Run(rule.name+"/"+strconv.Itoa(i), func(t *testing.T) {
				if !strings.Contains(text, b[0]) {
					t.Fatalf("the file has no %q any more: say another way to break the rule", b[0])
				}
				if len(rule.offences(t.Context(), strings.Replace(text, b[0], b[1], 1))) == 0 {
					t.Errorf("not caught: %q instead of %q", b[1], b[0])
				}
			})
		}
	}
}

// TestComposeVariables: .env.example names every variable of docker-compose.yml
// with the value it has without that line, and no other. HB_TRY_OUT alone differs: with
// the file as it is nothing of ours starts.
func TestComposeVariables(t *testing.T) {
	details, err := composeDetails(readRepo(t, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	model, err := loader.LoadModelWithContext(t.Context(), details, func(o *loader.Options) {
		o.SkipInterpolation = true
		o.SkipConsistencyCheck = true
		o.SkipNormalization = true
	})
	if err != nil {
		t.Fatal(err)
	}
	variables := template.ExtractVariables(model, template.DefaultPattern)
	if len(variables) < 10 {
		t.Fatalf("%d variables are found", len(variables))
	}
	said := map[string]string{}
	for line := range strings.Lines(readRepo(t, ".env.example")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			name, v, _ := strings.Cut(line, "=")
			said[name] = v
			if _, ok := variables[name]; !ok {
				t.Errorf(".env.example: %s is read nowhere", name)
			}
		}
	}
	if said["HB_TRY_OUT"] != "false" || variables["HB_TRY_OUT"].DefaultValue != "true" {
		t.Errorf("HB_TRY_OUT is %q in .env.example, %q without", said["HB_TRY_OUT"], variables["HB_TRY_OUT"].DefaultValue)
	}
	delete(said, "HB_TRY_OUT")
	for name, v := range variables {
		if name == "HB_TRY_OUT" {
			continue
		}
		if got, ok := said[name]; !ok || got != v.DefaultValue || v.DefaultValue == "" {
			t.Errorf("%s: .env.example says %q, the default is %q", name, got, v.DefaultValue)
		}
		if strings.HasPrefix(name, envPrefix) {
			t.Errorf("%s could be set by a shell that has read dev.env", name)
		}
	}
	// Every default stands in the file as often as the variable, and is the same.
	for _, m := range regexp.MustCompile(`\$\{(\w+)(:-([^}]*))?\}`).FindAllStringSubmatch(readRepo(t, "docker-compose.yml"), -1) {
		if m[1] != "NAME" && m[3] != variables[m[1]].DefaultValue {
			t.Errorf("%s has the default %q here and %q there", m[1], m[3], variables[m[1]].DefaultValue)
		}
	}
	for name, role := range map[string]access.Role{"HB_APP_KEY": access.RoleApp, "HB_FINANCE_KEY": access.RoleFinance,
		"HB_FINANCE2_KEY": access.RoleFinance,
		"HB_OPS_KEY":      access.RoleOps, "HB_AUDITOR_KEY": access.RoleAuditor} {
		if got, ok := access.RoleOf(said[name]); !ok || got != role {
			t.Errorf("%s is no token of role %s", name, role)
		}
	}
	if doc := readRepo(t, "docs/docker.md"); !strings.Contains(doc, said["HB_APP_KEY"]) {
		t.Error("docs/docker.md shows another key of the app demo")
	}
}
