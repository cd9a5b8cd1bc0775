package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hongbao/api"
	"hongbao/internal/devstack"
	"hongbao/internal/health"
	"hongbao/test/wait"
)

// dashboard is what of Grafana's format the tests read.
type dashboard struct {
	UID, Title  string
	Annotations struct{ List []struct{ Expr string } }
	Panels      []struct {
		ID                       int
		Title, Description, Type string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(checkout, "deploy", "grafana", "dashboards", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%q %v", files, err)
	}
	found := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(file)] = d
	}
	return found
}

// rule is an alert or a recording rule.
type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T, file string) (all []rule) {
	t.Helper()
	var content struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(readRepo(t, "deploy/prometheus/"+file)), &content); err != nil {
		t.Fatal(err)
	}
	for _, g := range content.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", file)
	}
	return all
}

func prometheusTools(t *testing.T) devstack.Prometheus {
	t.Helper()
	dir, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	found, err := devstack.FindPrometheus(devstack.CacheDir(dir))
	if err != nil {
		t.Fatalf("%v; `make setup` gets them", err)
	}
	return found
}

// TestObservabilityRules: Prometheus takes configuration and rules, and every
// alert is shown to fire when it must and not before.
func TestObservabilityRules(t *testing.T) {
	t.Parallel()
	tools := prometheusTools(t)
	dir := filepath.Join(checkout, "deploy", "prometheus")
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"check", "rules", "recording.yml", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), tools.Promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
	var shown struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(readRepo(t, "deploy/prometheus/alerts_test.yml")), &shown); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range shown.Tests {
		for _, a := range test.AlertRuleTest {
			fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
			quiet[a.Alertname] = quiet[a.Alertname] || len(a.ExpAlerts) == 0
		}
	}
	for _, r := range rules(t, "alerts.yml") {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s is shown to fire: %t, not to fire: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
		if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has severity %q", r.Alert, severity)
		}
	}
}

// TestObservabilityRunbook: every alert leads to its section of the runbook, and
// every section about an alert belongs to one that is there.
func TestObservabilityRunbook(t *testing.T) {
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (Hongbao\w+)$`).FindAllStringSubmatch(readRepo(t, "docs/runbook.md"), -1) {
		sections[m[1]] = true
	}
	for _, r := range rules(t, "alerts.yml") {
		if want := "{{ $externalLabels.runbook }}#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if !sections[r.Alert] {
			t.Errorf("docs/runbook.md has no section %s", r.Alert)
		}
		delete(sections, r.Alert)
	}
	for name := range sections {
		t.Errorf("docs/runbook.md has a section %s, and there is no such alert", name)
	}
}

// TestObservabilityDashboards: Grafana finds what is provisioned, and nothing on
// the dashboards covers anything else.
func TestObservabilityDashboards(t *testing.T) {
	if source := readRepo(t, "deploy/grafana/provisioning/datasources/prometheus.yml"); !strings.Contains(source, "uid: prometheus\n") ||
		!strings.Contains(source, "url: http://prometheus:9090\n") {
		t.Error("the data source is another")
	}
	compose, err := loadCompose(t.Context(), readRepo(t, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	provisioned := readRepo(t, "deploy/grafana/provisioning/dashboards/hongbao.yml")
	found := false
	for _, v := range compose.Services["grafana"].Volumes {
		found = found || filepath.Base(v.Source) == "dashboards" && strings.Contains(provisioned, "path: "+v.Target+"\n")
	}
	if !found {
		t.Error("the dashboards are not where they are provisioned from")
	}
	var titles []string
	for file, d := range dashboards(t) {
		titles = append(titles, d.Title)
		type cell struct{ x, y int }
		taken, ids := map[cell]string{}, map[int]bool{}
		for _, p := range d.Panels {
			if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %d %q is incomplete, or its id is not its own", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := cell{p.GridPos.X + x, p.GridPos.Y + y}
					if other := taken[at]; other != "" {
						t.Fatalf("%s: %q covers %q", file, p.Title, other)
					}
					taken[at] = p.Title
				}
			}
			for _, target := range p.Targets {
				if target.Datasource.UID != "prometheus" {
					t.Errorf("%s: %q asks data source %q", file, p.Title, target.Datasource.UID)
				}
			}
		}
	}
	if slices.Sort(titles); !slices.Equal(titles, []string{"Engine and platform", "Money and payouts"}) {
		t.Errorf("dashboards %q", titles)
	}
}

// watcher is Debian's Prometheus with our configuration, on a platform's metrics.
type prometheusPart struct {
	tools devstack.Prometheus
	dir   string
	addr  string
}

func (w *prometheusPart) Command(context.Context) (*exec.Cmd, error) {
	return exec.Command(w.tools.Server, "--config.file="+filepath.Join(w.dir, "prometheus.yml"), "--storage.tsdb.path="+
		filepath.Join(w.dir, "data"),
		"--web.listen-address="+w.addr), nil
}

func (w *prometheusPart) Ready(ctx context.Context) error {
	_, err := w.ask(ctx, "/api/v1/query", url.Values{"query": {"1"}})
	return err
}

// ask calls Prometheus' API and returns its data.
func (w *prometheusPart) ask(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.addr+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", query.Get("query"), answer.Error)
	}
	return answer.Data, nil
}

// series counts what a query returns.
func (w *prometheusPart) series(t *testing.T, query string) int {
	t.Helper()
	data, err := w.ask(t.Context(), "/api/v1/query", url.Values{"query": {query}})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Result []any }
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	return len(answer.Result)
}

// watch starts Prometheus with deploy/prometheus, with the platform's addresses
// in the place of those of the compose file, and a second for a quarter of a minute.
func (p *platform) watch(t *testing.T) *prometheusPart {
	t.Helper()
	ports, err := devstack.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	w := &prometheusPart{tools: prometheusTools(t), dir: t.TempDir(), addr: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	config := readRepo(t, "deploy/prometheus/prometheus.yml")
	for _, change := range [][2]string{
		{`"api:8081"`, `"` + p.staff + `"`}, {"_interval: 15s", "_interval: 1s"},
		{"dns_sd_configs:\n      - names: [worker]\n        type: A\n        port: 8082\n        refresh_interval: 5s\n",
			"static_configs:\n      - targets: [\"" + p.worker + "\"]\n"},
	} {
		if !strings.Contains(config, change[0]) {
			t.Fatalf("prometheus.yml has no %q", change[0])
		}
		config = strings.ReplaceAll(config, change[0], change[1])
	}
	files := map[string]string{"prometheus.yml": config}
	for _, name := range []string{"recording.yml", "alerts.yml"} {
		files[name] = readRepo(t, "deploy/prometheus/"+name)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	proc, err := devstack.Start(t.Context(), w, filepath.Join(w.dir, "log"))
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(w.dir, "log"))
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(proc.Kill)
	return w
}

// selector finds the metrics that a query names, with what it selects of them.
var selector = regexp.MustCompile(`\b(?:hongbao|temporal|go|process)[_:][a-z0-9_:]+(?:\{(?:[^{}"]|"[^"]*")*\})?|\bup\b(?:\{[^}]*\})?`)

// TestObservabilityLive: every query of every dashboard and rule is asked of what
// real processes expose: each finds series, and so does every metric in it by itself.
func TestObservabilityLive(t *testing.T) {
	p := newPlatform(t)
	w := p.watch(t)
	id := p.packet(t, "observed", 5)
	for _, user := range []string{"a", "b", "b"} {
		p.grab(t, id, user, nil)
	}
	p.paid(t, id, "a", "b")
	wait.Until(t, "both are scraped", func() bool { return w.series(t, `up{job=~"hongbao-.+"} == 1`) == 2 })
	// The share of errors needs one: Redis hangs for a moment.
	p.redis.Pause(t)
	status, text := p.grab(t, id, "c", nil)
	p.redis.Resume(t)
	if status != http.StatusServiceUnavailable {
		t.Errorf("without Redis: %d %s", status, text)
	}
	asked := 0
	ask := func(where, query string) {
		asked++
		wait.Until(t, where+" finds series: "+query, func() bool { return w.series(t, query) > 0 })
	}
	for file, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				ask(file+", "+panel.Title, target.Expr)
				for _, s := range selector.FindAllString(target.Expr, -1) {
					ask(file+", "+panel.Title, s)
				}
			}
		}
	}
	for _, file := range []string{"recording.yml", "alerts.yml"} {
		for _, r := range rules(t, file) {
			if r.Record != "" {
				ask(file, r.Record)
			}
			found := selector.FindAllString(r.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s: %q names no metric", file, r.Expr)
			}
			for _, s := range found {
				ask(file+", "+r.Alert+r.Record, s)
			}
		}
	}
	if asked < 120 {
		t.Errorf("only %d queries were asked", asked)
	}
	p.judge(t, w)
}

// judge looks at the rules as Prometheus has evaluated them: none failed, and no
// alert about money is raised where all is well.
func (p *platform) judge(t *testing.T, w *prometheusPart) {
	t.Helper()
	data, err := w.ask(t.Context(), "/api/v1/rules", nil)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Groups []struct {
			Name  string
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, g := range answer.Groups {
		for _, r := range g.Rules {
			seen++
			if r.Health != "ok" || g.Name == "hongbao-money" && r.State != "inactive" {
				t.Errorf("%s: %+v", g.Name, r)
			}
		}
	}
	if want := len(rules(t, "alerts.yml")) + len(rules(t, "recording.yml")); seen != want {
		t.Errorf("%d rules are evaluated, %d written", seen, want)
	}
}

// TestObservabilityAlarms: what docs/metrics.md says to raise an alarm about has a
// rule, and what the runbook sends people to is asked for as the API understands it.
func TestObservabilityAlarms(t *testing.T) {
	var asked strings.Builder
	for _, r := range rules(t, "alerts.yml") {
		asked.WriteString(r.Expr + "\n")
	}
	document, _, _ := strings.Cut(readRepo(t, "docs/metrics.md"), "\n## What a process counts itself") // there, no column is about alarms
	rows := regexp.MustCompile("(?m)^\\| `(hongbao_\\w+)[^|]*\\|[^|]*\\|([^|]*)\\|$").FindAllStringSubmatch(document, -1)
	alarms := 0
	for _, row := range rows {
		if strings.TrimSpace(row[2]) == "" {
			continue
		}
		if alarms++; !regexp.MustCompile(`\b` + row[1] + `\b`).MatchString(asked.String()) {
			t.Errorf("docs/metrics.md wants an alarm about %s (%s), and no rule asks for it", row[1], strings.TrimSpace(row[2]))
		}
	}
	if alarms < 20 {
		t.Errorf("%d alarms were found", alarms)
	}
	raw, err := api.Document("test")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct{ Parameters []struct{ Name, In string } }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile("`(GET|POST) (/v1/staff/[^`? ]+)(?:\\?([^`]*))?`").FindAllStringSubmatch(readRepo(t, "docs/runbook.md"), -1)
	if len(calls) < 10 {
		t.Errorf("%d calls were found", len(calls))
	}
	for _, call := range calls {
		op, ok := doc.Paths[call[2]][strings.ToLower(call[1])]
		if !ok {
			t.Errorf("docs/runbook.md: there is no %s %s", call[1], call[2])
		}
		query, err := url.ParseQuery(call[3])
		if err != nil {
			t.Errorf("docs/runbook.md: %s: %v", call[0], err)
		}
		for name := range query {
			if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.In == "query" && p.Name == name }) {
				t.Errorf("docs/runbook.md: %s %s has no parameter %s", call[1], call[2], name)
			}
		}
	}
}

// TestObservabilityLimits: the alert rules fire beyond the limits of the list of checks. With -update
// it writes their expressions.
func TestObservabilityLimits(t *testing.T) {
	const file = "deploy/prometheus/alerts.yml"
	text := readRepo(t, file)
	for _, c := range health.Checks() {
		if c.Alert == "" {
			continue
		}
		rule := regexp.MustCompile(`(- alert: ` + c.Alert + `\n +expr: ')([^\n]*)(')`)
		found := rule.FindStringSubmatch(text)
		if found == nil {
			t.Errorf("no alert %s", c.Alert)
			continue
		}
		if *updateDocs {
			text = strings.Replace(text, found[0], found[1]+c.Expression()+found[3], 1)
		} else if found[2] != c.Expression() {
			t.Errorf("%s fires at %s, the check %s is beyond its limit at %s: run with -update", c.Alert, found[2], c.Name, c.Expression())
		}
	}
	if *updateDocs {
		if err := os.WriteFile(filepath.Join(checkout, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
