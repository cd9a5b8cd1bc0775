package devstack

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestParseLinks(t *testing.T) {
	got, err := ParseLinks("  worker-redis=127.0.0.1:7000\tprovider-api=[::1]:7001 ")
	if want := (Links{"worker-redis": "127.0.0.1:7000", "provider-api": "[::1]:7001"}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParseLinks(""); err != nil || len(got) != 0 {
		t.Errorf("no links: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"redis-worker=127.0.0.1:1":                          `"redis-worker" is none of`,
		"worker-redis":                                      "not host:port",
		"worker-redis=127.0.0.1":                            "not host:port",
		"worker-redis=:7000":                                "not host:port",
		"worker-redis=127.0.0.1:1 worker-redis=127.0.0.1:2": "given twice",
	} {
		if _, err := ParseLinks(text); !errors.Is(err, ErrLinks) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLinks: each link changes exactly one address of one child, and none changes dev.env.
func TestLinks(t *testing.T) {
	ports := Ports{API: 1, Staff: 2, Provider: 3, Redis: 4, MySQL: 5, Temporal: 6, TemporalUI: 7}
	const elsewhere = "127.0.0.1:9999"
	settingsOf := func(links Links) map[string][]variable {
		out := map[string][]variable{}
		for name, part := range makeParts(Home{"/home"}, ports, Tools{}, "", secrets{MySQLPassword: "p"}, links) {
			if f, ok := part.(partWithFolder); ok {
				part = f.Part
			}
			if p, ok := part.(*program); ok {
				out[name] = p.env
			}
		}
		return out
	}
	direct := settingsOf(nil)
	if len(direct) != 3 {
		t.Fatalf("programs: %v", direct)
	}
	for _, link := range LinkNames {
		from, _, _ := strings.Cut(link, "-")
		for name, settings := range settingsOf(Links{link: elsewhere}) {
			changed := 0
			for i, v := range settings {
				if was := direct[name][i]; v != was {
					changed++
					if !strings.Contains(v.value, elsewhere) {
						t.Errorf("%s: %s of %s is %q", link, v.name, name, v.value)
					}
				}
			}
			if want := map[bool]int{true: 1}[name == from]; changed != want {
				t.Errorf("%s changes %d settings of %s", link, changed, name)
			}
		}
	}
	if slices.ContainsFunc(makeEnv(ports, secrets{}).variables(nil), func(v variable) bool { return strings.Contains(v.value, "9999") }) {
		t.Error("a link changes dev.env")
	}
}

// TestPartsInPlainText: the programs do not inherit settings for TLS, users or replicas of another Redis or Temporal. The
// servers of a stack have none of these.
func TestPartsInPlainText(t *testing.T) {
	var names []string
	for prefix, settings := range map[string][]string{
		"HONGBAO_TEMPORAL_": {"TLS", "CA_FILE", "CERT_FILE", "KEY_FILE", "API_KEY", "SERVER_NAME"},
		"HONGBAO_REDIS_":    {"MODE", "MASTER", "USERNAME", "PASSWORD", "SENTINEL_PASSWORD", "TLS", "CA_FILE", "REPLICAS"},
	} {
		for _, name := range settings {
			names = append(names, prefix+name)
			t.Setenv(prefix+name, "of another")
		}
	}
	ports := Ports{API: 1, Staff: 2, Provider: 3, Redis: 4, MySQL: 5, Temporal: 6, TemporalUI: 7}
	parts := makeParts(Home{"/home"}, ports, Tools{}, "", secrets{MySQLPassword: "p"}, nil)
	for _, child := range []string{childAPI, childWorker} {
		cmd, err := parts[child].Command(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !slices.Contains(cmd.Env, name+"=") || slices.Contains(cmd.Env, name+"=of another") {
				t.Errorf("%s inherits %s", child, name)
			}
		}
	}
}
