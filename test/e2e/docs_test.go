package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shellBlock is a shell block of a document, and the block of JSON right below it, if there is one.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$(?:\n+```json\n(.*?)^```$)?")

// separator is printed between the answers of two blocks.
const separator = "-- end of block --"

// TestDocumentedCommands runs every shell block of the documents, in order, in one shell per
// document, against the running stack. The block of JSON below a shell block shows its output: the
// same members, of the same types. Blocks that begin with `make` or `docker` are left out, because
// the stack runs already.
func TestDocumentedCommands(t *testing.T) {
	for _, doc := range []string{"../../README.md", "../../README.zh-CN.md", "../../docs/integrate.md", "../../docs/providers.md"} {
		t.Run(filepath.Base(doc), func(t *testing.T) {
			text, err := os.ReadFile(doc)
			if err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			script.WriteString("set -eu -o pipefail\n")
			var shown []string
			for _, m := range shellBlock.FindAllStringSubmatch(string(text), -1) {
				if strings.HasPrefix(m[1], "make ") || strings.HasPrefix(m[1], "docker ") {
					continue
				}
				script.WriteString(m[1] + "echo; echo '" + separator + "'\n")
				shown = append(shown, m[2])
			}
			if len(shown) == 0 {
				t.Fatal("no shell blocks found")
			}
			cmd := exec.Command("bash", "-c", script.String())
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(), "HONGBAO_HOME="+running.home)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, &errs)
			}
			for i, printed := range strings.SplitN(string(out), separator, len(shown)+1)[:len(shown)] {
				if shown[i] == "" {
					continue
				}
				want, got := values(t, shown[i]), values(t, printed)
				if len(want) != len(got) {
					t.Errorf("the document shows %d values, the commands print %d:\n%s", len(want), len(got), printed)
					continue
				}
				for n := range want {
					if fault := unlike(want[n], got[n], ""); fault != "" {
						t.Errorf("the document shows\n%s\nthe commands print\n%s\n%s", shown[i], printed, fault)
					}
				}
			}
		})
	}
}

// values returns the JSON values of a text.
func values(t *testing.T, text string) (out []any) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		out = append(out, v)
	}
}

// unlike returns how a printed value differs from that of the document: in its members, in their
// types, or in one of the values that every run returns. null in the document means a member that
// may be set a moment later.
func unlike(want, got any, at string) string {
	switch want := want.(type) {
	case nil:
		return ""
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(object))) {
			return fmt.Sprintf("%s has other members", at)
		}
		for name, member := range want {
			if at == "" && slices.Contains([]string{"status", "code", "replayed", "balanced"}, name) && member != object[name] {
				return fmt.Sprintf("%s is %v, the document says %v", name, object[name], member)
			}
			if fault := unlike(member, object[name], at+"/"+name); fault != "" {
				return fault
			}
		}
		return ""
	case []any:
		if list, ok := got.([]any); !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is another list", at)
		}
		return ""
	}
	if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
		return fmt.Sprintf("%s is %v, the document says %v", at, got, want)
	}
	return ""
}
