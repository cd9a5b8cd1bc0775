package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"hongbao/test/night"
)

// TestTypeScriptClient checks that the served OpenAPI document passes a linter, and that a client
// generated from it lives the story of a packet. It needs npm.
func TestTypeScriptClient(t *testing.T) {
	night.Only(t, "the document is compared with every answer of the API")
	s := running
	document := s.do(t, "GET", s.api("/openapi.json"), "", nil)
	if document.status != 200 {
		t.Fatalf("openapi.json: %d", document.status)
	}
	build := filepath.Join("typescript", "build")
	if err := os.MkdirAll(build, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(build, "openapi.json"), document.raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][]string{
		{"npm", "ci", "--no-audit", "--no-fund"},
		{"npx", "--no-install", "redocly", "lint", "--config", "redocly.yaml", "build/openapi.json"},
		{"npx", "--no-install", "openapi-typescript", "build/openapi.json", "-o", "build/schema.d.ts"},
		{"npx", "--no-install", "tsc"},
		{"node", "build/story.js"},
	} {
		cmd := exec.CommandContext(t.Context(), step[0], step[1:]...)
		cmd.Dir = "typescript"
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		for _, name := range []string{"HONGBAO_URL", "HONGBAO_APP_KEY", "HONGBAO_STAFF_URL", "HONGBAO_FINANCE_KEY", "HONGBAO_FINANCE2_KEY"} {
			cmd.Env = append(cmd.Env, name+"="+s.env(name))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", step, err, out)
		}
	}
}
