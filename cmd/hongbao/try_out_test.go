package main

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"hongbao/internal/access"
)

// openDefaults matches the variables of docker-compose.yml that hold no secret.
var openDefaults = regexp.MustCompile(`^HB_(\w+_PORT|VERSION|TRY_OUT)$`)

// composeDefaults returns the variables of docker-compose.yml and their defaults.
func composeDefaults(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`\$\{(\w+):-([^}]*)\}`).FindAllStringSubmatch(readRepo(t, "docker-compose.yml"), -1) {
		if m[1] != "NAME" { // an example in a comment of the file
			out[m[1]] = m[2]
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %v were found", out)
	}
	return out
}

// TestPublicSecretsAreListed: publicSecretValues holds each default secret of docker-compose.yml, and nothing else.
func TestPublicSecretsAreListed(t *testing.T) {
	listed := slices.Clone(publicSecretValues)
	for name, secret := range composeDefaults(t) {
		if openDefaults.MatchString(name) {
			continue
		}
		if !slices.Contains(publicSecretValues, secret) {
			t.Errorf("%s: %q is not among publicSecretValues", name, secret)
		}
		listed = slices.DeleteFunc(listed, func(s string) bool { return s == secret })
	}
	if len(listed) > 0 {
		t.Errorf("publicSecretValues has %q, which the file does not have", listed)
	}
	tokens := 0
	for _, s := range publicSecretValues {
		if _, ok := access.RoleOf(s); ok {
			tokens++
		}
	}
	if got := publicTokens(); len(got) != tokens || tokens != 5 {
		t.Errorf("%d hashes of %d tokens", len(got), tokens)
	}
}

// composeWith returns the project of docker-compose.yml with these variables.
func composeWith(t *testing.T, set map[string]string) *types.Project {
	t.Helper()
	details, err := composeDetails(readRepo(t, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	details.Environment = types.Mapping(set)
	p, err := loader.LoadWithContext(t.Context(), details, loader.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// publicRefusals returns the errors of the services of this repository about public secrets, one a line.
func publicRefusals(t *testing.T, p *types.Project) string {
	t.Helper()
	var refusals []string
	for _, s := range p.Services {
		if !ours(s) {
			continue
		}
		_, _, err := parseOurs(s, s.Command)
		if err == nil {
			continue
		}
		if !errors.Is(err, errPublicSecret) {
			t.Errorf("%s: %v", s.Name, err)
		}
		refusals = append(refusals, err.Error())
	}
	return strings.Join(refusals, "\n")
}

// TestPublicSecretsAreRefused: with HB_TRY_OUT=false, a service does not start with a default secret of docker-compose.yml, and
// its error names the setting.
func TestPublicSecretsAreRefused(t *testing.T) {
	names := map[string]string{"HB_MYSQL_PASSWORD": "HONGBAO_MYSQL_DSN", "HB_SEED_KEY": "HONGBAO_SEED_KEY",
		"HB_SESSION_KEY":  "HONGBAO_SESSION_KEY",
		"HB_PROVIDER_KEY": "HONGBAO_PROVIDER_KEY", "HB_WEBHOOK_SECRET": "HONGBAO_SANDBOX_WEBHOOK_SECRET",
		"HB_APP_KEY": "HONGBAO_ENSURE_KEYS (--keys) holds a secret that is public, of demo:", "HB_FINANCE_KEY": "of finance:",
		"HB_FINANCE2_KEY": "of finance2:", "HB_OPS_KEY": "of ops:", "HB_AUDITOR_KEY": "of auditor:",
		"HB_MYSQL_ROOT_PASSWORD": "of HB_MYSQL_ROOT_PASSWORD:", "HB_TEMPORAL_MYSQL_PASSWORD": "of HB_TEMPORAL_MYSQL_PASSWORD:",
		"HB_GRAFANA_PASSWORD": "of HB_GRAFANA_PASSWORD:"}
	own := map[string]string{"HB_TRY_OUT": "false"}
	for name := range composeDefaults(t) {
		switch {
		case openDefaults.MatchString(name):
		case name == "HB_SEED_KEY", name == "HB_SESSION_KEY":
			own[name] = strings.Repeat("0f", 32)
		case name == "HB_WEBHOOK_SECRET":
			own[name] = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
		case strings.HasSuffix(name, "_KEY") && name != "HB_PROVIDER_KEY":
			role, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(name, "HB_")), "_")
			own[name], _ = access.NewToken(access.Role(strings.TrimSuffix(role, "2")))
		default:
			own[name] = "s3cret"
		}
	}
	if refusals := publicRefusals(t, composeWith(t, own)); refusals != "" {
		t.Fatalf("with own secrets: %s", refusals)
	}
	for name, secret := range composeDefaults(t) {
		if openDefaults.MatchString(name) {
			continue
		}
		for _, public := range []string{secret, strings.ToUpper(secret)} {
			if public != secret && name != "HB_SEED_KEY" && name != "HB_SESSION_KEY" {
				continue // these are case-sensitive: in upper case they are other secrets
			}
			set := maps.Clone(own)
			set[name] = public
			refusals := publicRefusals(t, composeWith(t, set))
			if names[name] == "" || !strings.Contains(refusals, names[name]) || strings.Contains(refusals, public) {
				t.Errorf("%s=%s: %q, want %q", name, public, refusals, names[name])
			}
			set["HB_TRY_OUT"] = "true"
			if refusals := publicRefusals(t, composeWith(t, set)); refusals != "" {
				t.Errorf("%s=%s in a try-out: %s", name, public, refusals)
			}
		}
	}
}

// TestPublicSecretsOfEveryCommand: each command that has a secret of the installation refuses a public one.
func TestPublicSecretsOfEveryCommand(t *testing.T) {
	t.Parallel()
	for _, s := range settings {
		if !s.secret || s.kind.name == kindToken.name { // those are keys of clients and of other platforms
			continue
		}
		for _, command := range s.commands {
			c := config{command: command, values: map[string]string{"try-out": "false", s.flag: "x for-trying-out-only"}}
			if !slices.Contains(secretCommands, command) {
				t.Errorf("%s has %s and no --try-out", command, s.name())
			}
			if err := c.rejectPublicSecrets(); !errors.Is(err, errPublicSecret) || !strings.Contains(err.Error(), s.env) {
				t.Errorf("%s, %s: %v", command, s.name(), err)
			}
			for text, refused := range map[string]bool{"true": false, "1": false, "": true, "yes": true, "0": true} {
				c.values["try-out"] = text
				if err := c.rejectPublicSecrets(); (err != nil) != refused {
					t.Errorf("%s, HONGBAO_TRY_OUT=%s: %v", command, text, err)
				}
			}
		}
	}
}
