package devstack

import (
	"slices"
	"strconv"
	"strings"
)

// Keys are the bearer keys of the local stack's apps and staff. They are secret.
type Keys struct {
	App      string `json:"app"`
	App2     string `json:"app2"`
	Finance  string `json:"finance"`
	Finance2 string `json:"finance2"`
	Ops      string `json:"ops"`
	Auditor  string `json:"auditor"`
	Admin    string `json:"admin"`
}

// Env holds the addresses and keys of a running stack: the content of dev.env. ProviderKey, MySQLDSN, SandboxWebhookSecret and
// Keys are secret.
type Env struct {
	URL                  string // public listener of the API
	StaffURL             string // staff listener of the API
	ProviderURL          string // sandbox payment provider
	ProviderKey          string // bearer key of API and worker there
	TemporalAddress      string // host:port
	TemporalNamespace    string
	TemporalUIURL        string
	RedisAddr            string // host:port
	MySQLDSN             string
	SandboxWebhookSecret string
	Keys                 Keys
}

// variable is one line of dev.env.
type variable struct{ name, value string }

// variables returns the content of dev.env in its order. pids maps the name of each child to its process id. A child that
// is down has no entry and gets an empty value.
func (e Env) variables(pids map[string]int) []variable {
	list := []variable{
		{"HONGBAO_URL", e.URL},
		{"HONGBAO_STAFF_URL", e.StaffURL},
		{"HONGBAO_PROVIDER_URL", e.ProviderURL},
		{"HONGBAO_PROVIDER_KEY", e.ProviderKey},
		{"HONGBAO_TEMPORAL_ADDRESS", e.TemporalAddress},
		{"HONGBAO_TEMPORAL_NAMESPACE", e.TemporalNamespace},
		{"HONGBAO_TEMPORAL_UI_URL", e.TemporalUIURL},
		{"HONGBAO_REDIS_ADDR", e.RedisAddr},
		{"HONGBAO_MYSQL_DSN", e.MySQLDSN},
		{"HONGBAO_SANDBOX_WEBHOOK_SECRET", e.SandboxWebhookSecret},
		{"HONGBAO_APP_KEY", e.Keys.App},
		{"HONGBAO_APP2_KEY", e.Keys.App2},
		{"HONGBAO_FINANCE_KEY", e.Keys.Finance},
		{"HONGBAO_FINANCE2_KEY", e.Keys.Finance2},
		{"HONGBAO_OPS_KEY", e.Keys.Ops},
		{"HONGBAO_AUDITOR_KEY", e.Keys.Auditor},
		{"HONGBAO_ADMIN_KEY", e.Keys.Admin},
	}
	for _, name := range childNames {
		value := ""
		if pid := pids[name]; pid != 0 {
			value = strconv.Itoa(pid)
		}
		list = append(list, variable{"HONGBAO_PID_" + strings.ToUpper(name), value})
	}
	return list
}

// formatEnv returns variables as assignments that any POSIX shell can source.
func formatEnv(list []variable) []byte {
	var b strings.Builder
	for _, v := range list {
		b.WriteString(v.name + "=" + ShellQuote(v.value) + "\n")
	}
	return []byte(b.String())
}

// ShellQuote returns value as one word of a POSIX shell: in single quotes, in which each single quote of value is escaped.
func ShellQuote(value string) string {
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// without returns base, in the form of os.Environ, without the variables of these names.
func without(base, names []string) []string {
	return slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// overlay returns base, in the form of os.Environ, with the variables of changes set. Of two equal names in changes the
// last one counts.
func overlay(base []string, changes ...variable) []string {
	set := map[string]bool{}
	for _, v := range changes {
		set[v.name] = true
	}
	var merged []string
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if !set[name] {
			merged = append(merged, entry)
		}
	}
	for _, v := range changes {
		merged = append(merged, v.name+"="+v.value)
	}
	return merged
}
