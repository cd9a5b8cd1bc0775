package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestDocumentedCommands runs every shell block of the documents, in order, in
// one shell a document, against the running stack. `make` starts what runs
// already, so these lines alone are left out.
func TestDocumentedCommands(t *testing.T) {
	for _, doc := range []string{"../../README.md", "../../README.zh-CN.md", "../../docs/integrate.md"} {
		t.Run(filepath.Base(doc), func(t *testing.T) {
			text, err := os.ReadFile(doc)
			if err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			script.WriteString("set -eu -o pipefail\n")
			blocks := 0
			for _, m := range shellBlock.FindAllStringSubmatch(string(text), -1) {
				if strings.HasPrefix(m[1], "make ") || strings.HasPrefix(m[1], "docker ") {
					continue
				}
				blocks++
				script.WriteString(m[1])
			}
			if blocks == 0 {
				t.Fatal("no shell blocks found")
			}
			cmd := exec.Command("bash", "-c", script.String())
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(), "HONGBAO_HOME="+running.home)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
