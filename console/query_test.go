package console

import (
	"errors"
	"html"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"hongbao/client"
	"hongbao/internal/access"
)

// asked is a staff API that records requests, except the count beside "Approvals".
type asked struct {
	keys
	paths *paths
}

// paths are the paths of concurrent requests.
type paths struct {
	mu   sync.Mutex
	seen []string
}

func (p *paths) add(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, path)
}

// take returns the paths and clears the list.
func (p *paths) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

func (a asked) ActAs(string) http.RoundTripper { return a }

func (a asked) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/v1/staff/approvals/sum" {
		a.paths.add(r.Method + " " + r.URL.String())
	}
	return unavailableAPI{}.RoundTrip(r)
}

func newAsked(t *testing.T) (v *visitor, csrf string, seen *paths) {
	t.Helper()
	seen = new(paths)
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: asked{newKeys(map[string]access.Role{"f": access.RoleFinance}), seen}})
	if err != nil {
		t.Fatal(err)
	}
	v = newVisitor(t, desk)
	v.signIn("f")
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	return v, s.CSRF, seen
}

var placeholder = regexp.MustCompile(`\{(\w*\$?)\}`)

// pathOf returns a path that matches a pattern of the routes.
func pathOf(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, placeholder.ReplaceAllStringFunc(path, func(name string) string {
		return map[string]string{"{$}": "", "{name}": "console.css", "{action}": "retry", "{date}": "2026-02-17"}[name] +
			map[bool]string{true: "p1"}[name == "{id}"]
	})
}

// TestQueries: every page refuses unknown, duplicate and unreadable query parameters and calls no
// API. A dropped filter would show, export and retry everything.
func TestQueries(t *testing.T) {
	v, csrf, paths := newAsked(t)
	for pattern, one := range v.desk.routes() {
		method, path := pathOf(pattern)
		bad := []string{"nobody=1", "x;y", ";", "a=%zz", "=", "nobody", "Status=failed"}
		for name := range one.query {
			bad = append(bad, name+"=&"+name+"=", name+"=%ff", name+"=a;x", url.QueryEscape(name+"[]")+"=a")
		}
		for name, form := range map[string]url.Values{"en": {"csrf": {csrf}, "key": {"k"}, "reason": {"r"}, "to": {"en"}},
			"zh": {"csrf": {csrf}, "key": {"k"}, "reason": {"r"}, "to": {"zh"}}} {
			v.header.Set("Accept-Language", name)
			for _, query := range bad {
				if method == http.MethodGet {
					form = nil
				}
				res := v.do(method, path+"?"+query, form)
				page, err := io.ReadAll(res.Body)
				said := saidOf(language(name), "problem.invalid_query", "problem.unreadable_form")
				if err != nil || res.StatusCode != http.StatusUnprocessableEntity || !containsAny(html.UnescapeString(string(page)), said) {
					t.Errorf("%s?%s: %d\n%s", pattern, query, res.StatusCode, page)
				}
			}
		}
		if seen := paths.take(); len(seen) > 0 {
			t.Errorf("%s: with a query that it cannot read the API was asked for %q", pattern, seen)
		}
		for name := range one.query {
			if res := v.do(method, path+"?"+name+"=", nil); res.StatusCode == http.StatusUnprocessableEntity {
				t.Errorf("%s: an empty %s is refused", pattern, name)
			}
		}
		paths.take()
	}
}

func saidOf(l language, keys ...string) (out []string) {
	for _, key := range keys {
		out = append(out, say(l, key))
	}
	return out
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// TestQueryValues: how each parameter is parsed and which values are refused.
func TestQueryValues(t *testing.T) {
	for _, one := range []struct {
		raw   string
		known params
		want  string // "": refused
	}{
		{"packet=+x+&user=+u+", paymentParams, "packet=x&user=+u+"},
		{"packet=+", paymentParams, ""},
		{"late=true", refundParams, "late=true"},
		{"late=false", refundParams, "late="},
		{"late=1", refundParams, ""},
		{"late=true", paymentParams, ""},
		{"overdue=yes", packetParams, ""},
		{"by_others=TRUE", approvalParams, ""},
		{"resolved=", breakParams, "resolved="},
		{"resolved=f", breakParams, ""},
		{"done=retry_open", doneParam, "done=retry_open"},
		{"done=everything", doneParam, ""},
	} {
		got, err := readQuery(one.raw, one.known)
		if got.Encode() != one.want || (err != nil) != (one.want == "") {
			t.Errorf("%s: %q, %v; want %q", one.raw, got.Encode(), err, one.want)
		}
	}
	_, err := readQuery("packet="+strings.Repeat("x", 300)+"&packet=y", paymentParams)
	if p, ok := errors.AsType[*client.Problem](err); !ok || len([]rune(p.Errors[0].Message)) > maxQuoted+1 {
		t.Errorf("%v repeats all of it", err)
	}
}

// TestFilterOfManyIsReadWhole: a bulk retry is refused unless its filter and form can be parsed
// completely.
func TestFilterOfManyIsReadWhole(t *testing.T) {
	v, csrf, paths := newAsked(t)
	for _, list := range []string{"payouts", "refunds"} {
		for _, filter := range []string{"status=failed&packet=p1;x", "status=failed&pakket=p1", "status=failed&status=unknown", "late=true",
			"status=failed&min=1&min=", "packet=%zz"} {
			form := url.Values{"csrf": {csrf}, "key": {"k"}, "who": {"owner of f"}, "do": {"retry"}, "scope": {"all"}, "looked": {"true"},
				"seen": {"p1"}, "reason": {"r"},
				"filter": {filter}}
			if res := v.do("POST", "/"+list+"/retry", form); res.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%s, %s: %d", list, filter, res.StatusCode)
			}
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://desk.example/payouts/retry",
		strings.NewReader(url.Values{"csrf": {csrf}, "key": {"k"}, "do": {"retry"}, "reason": {"r"}, "id": {"p1"}}.Encode()+"&id=p2;"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: v.cookies[sessionCookie]})
	w := httptest.NewRecorder()
	if v.desk.ServeHTTP(w, r); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a form of which a part cannot be read: %d", w.Code)
	}
	if seen := paths.take(); len(seen) > 0 {
		t.Errorf("the API was asked for %q", seen)
	}
}

// TestLinksAreKnown: every link of a page has only parameters that its target knows.
func TestLinksAreKnown(t *testing.T) {
	v, _, _ := newAsked(t)
	links := slices.Concat(slices.Collect(maps.Values(duePages)), slices.Collect(maps.Values(checkPages)))
	templates, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	inTemplate := regexp.MustCompile(`(?:href|hx-get)="(/[a-z]*\?[^"]*)"`)
	action := regexp.MustCompile(`\{\{[^}]*\}\}`)
	for _, name := range templates {
		text, err := templateFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inTemplate.FindAllStringSubmatch(string(text), -1) {
			if link := action.ReplaceAllString(html.UnescapeString(m[1]), ""); !strings.HasSuffix(link, "?") {
				links = append(links, link)
			}
		}
	}
	if len(links) < 20 {
		t.Fatalf("only %d links were found: %q", len(links), links)
	}
	for _, link := range links {
		path, query, _ := strings.Cut(link, "?")
		if strings.HasPrefix(path, "#") {
			continue
		}
		if _, err := readQuery(query, v.desk.routes()["GET "+path].query); err != nil {
			t.Errorf("%s: its page does not know it", link)
		}
	}
}

// TestOneReaderOfQueries: no page reads its query in another way, which would drop unreadable
// parameters.
func TestOneReaderOfQueries(t *testing.T) {
	sources, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		name := file.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ".Query()") {
			t.Errorf("%s reads a query by itself, not by readQuery", name)
		}
	}
}
