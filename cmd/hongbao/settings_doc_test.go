package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "rewrite generated documents")

// settingsDocument renders docs/configuration.md from the one settings table.
func settingsDocument() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\nEvery command takes its settings as flags or from the environment; a flag beats the environment, the " +
		"environment beats the default.\n`HONGBAO_ENV_FILE` names a file of lines NAME='value', such as the dev.env of the " +
		"local stack, for variables that are not set.\n" +
		"An unknown `HONGBAO_*` variable, a value out of range and settings that contradict each other are " +
		"errors at start that name the key;\nunder `hongbao dev` and its commands (`make run`) an unknown variable is a warning, and the " +
		"parts of the stack do not get it.\nSecrets are never printed. Generated from `cmd/hongbao/settings.go`: `go test ./cmd/hongbao -run " +
		"TestSettingsDocument -update`.\n")
	var order []string
	for _, s := range settings {
		for _, c := range s.commands {
			if !slices.Contains(order, c) {
				order = append(order, c)
			}
		}
	}
	for _, c := range order {
		fmt.Fprintf(&b, "\n## hongbao %s\n\n| flag | environment | default | meaning |\n|---|---|---|---|\n", c)
		for _, s := range settingsOf(c) {
			fallback := "`" + s.fallback + "`"
			if s.fallback == "" {
				fallback = "none"
				if s.required {
					fallback = "required"
				}
			}
			usage := s.usage
			if s.secret {
				usage += " (secret)"
			}
			fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", s.flag, s.env, fallback, strings.ReplaceAll(usage, "|", "\\|"))
		}
	}
	return b.String()
}

// TestSettingsDocument: docs/configuration.md is what the settings table says.
func TestSettingsDocument(t *testing.T) {
	const path = "../../docs/configuration.md"
	want := settingsDocument()
	if *updateDocs {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md differs from the settings table; run with -update")
	}
}
