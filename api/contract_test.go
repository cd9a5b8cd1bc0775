package api_test

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"hongbao/api"
)

// contract checks real answers against the OpenAPI document: a status, code,
// member or header that is not documented fails the test that met it.
type contract struct {
	doc   *openapi3.T
	paths []contractPath
	// schemas compiles each schema of doc once; it is not safe for concurrent use, so mu is held.
	schemas *jsonschema.Compiler
	mu      sync.Mutex
}

// documentURL is what schemas calls doc.
const documentURL = "https://hongbao.test/openapi.json"

// pointerEscapes writes a token of a JSON pointer in the fragment of a URL (RFC 6901, sections 3 and 6).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// matches compares a body with the schema at a place in the document, a JSON pointer.
func (c *contract) matches(body []byte, place ...string) error {
	url := documentURL + "#"
	for _, token := range place {
		url += "/" + pointerEscapes.Replace(token)
	}
	c.mu.Lock()
	schema, err := c.schemas.Compile(url)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

type contractPath struct {
	path  string
	match *regexp.Regexp
	item  *openapi3.PathItem
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	raw, err := api.Document("test")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return nil, err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc, schemas: jsonschema.NewCompiler()}
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource(documentURL, plain); err != nil {
		return nil, err
	}
	parameter := regexp.MustCompile(`\\\{[a-z_]+\\\}`)
	paths := slices.SortedFunc(maps.Keys(doc.Paths.Map()), func(a, b string) int { // what is fixed goes before what is a parameter
		return cmp.Or(strings.Count(a, "{")-strings.Count(b, "{"), strings.Compare(a, b))
	})
	for _, path := range paths {
		item := doc.Paths.Value(path)
		pattern := parameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		c.paths = append(c.paths, contractPath{path, regexp.MustCompile("^" + pattern + "$"), item})
	}
	return c, nil
})

func newContract(t *testing.T) *contract {
	t.Helper()
	c, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// internals are words that no answer may contain.
var internals = regexp.MustCompile(
	`(?i)\b(goroutine|panic|mysql|mariadb|gorm|redis|lua|sql|select|dial tcp|connection refused|context deadline|` +
		`nil pointer|secret)\b|\.go:\d|hb:\{|0x[0-9a-f]{6}`)

func (c *contract) check(t *testing.T, method, path string, r result) {
	t.Helper()
	bare, _, _ := strings.Cut(path, "?")
	if id := r.header.Get("X-Request-Id"); id == "" || len(id) > 128 {
		t.Errorf("%s %s: X-Request-Id %q", method, bare, id)
	}
	isProblem := r.header.Get("Content-Type") == "application/problem+json"
	if r.status >= 400 && !isProblem && bare != "/readyz" {
		t.Errorf("%s %s: %d as %q", method, bare, r.status, r.header.Get("Content-Type"))
	}
	if isProblem && method != http.MethodHead { // that has no body
		c.checkProblem(t, method, bare, r)
	}
	place := c.find(bare)
	if method == http.MethodHead {
		return // GET without its body
	}
	operation := place.item.GetOperation(method)
	if operation == nil {
		if r.status < 400 {
			t.Errorf("%s %s: %d of an operation that is not documented", method, bare, r.status)
		}
		return
	}
	if code := r.code(); code == "not_found" || (code == "unauthenticated" || code == "forbidden") &&
		len(*operation.Security) == 0 {
		return // documented, but on the other listener
	}
	c.checkOperation(t, method, bare, place, r)
}

// find returns the documented path that matches; without one it has no operations.
func (c *contract) find(path string) contractPath {
	for _, p := range c.paths {
		if p.match.MatchString(path) {
			return p
		}
	}
	return contractPath{item: &openapi3.PathItem{}}
}

// checkProblem holds for every error, documented operation or not.
func (c *contract) checkProblem(t *testing.T, method, path string, r result) {
	t.Helper()
	var p map[string]any
	r.json(t, &p)
	if err := c.matches(r.body, "components", "schemas", "Problem"); err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, r)
	}
	if status, _ := p["status"].(float64); int(status) != r.status {
		t.Errorf("%s %s: status %v in the body of a %d", method, path, p["status"], r.status)
	}
	if word := internals.Find(r.body); word != nil {
		t.Errorf("%s %s: internal text %q: %s", method, path, word, r)
	}
	switch r.status {
	case http.StatusUnauthorized:
		if r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s: 401 without WWW-Authenticate: Bearer", method, path)
		}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || n < 1 {
			t.Errorf("%s %s: %d with Retry-After %q", method, path, r.status, r.header.Get("Retry-After"))
		}
	case http.StatusMethodNotAllowed:
		if r.header.Get("Allow") == "" {
			t.Errorf("%s %s: 405 without Allow", method, path)
		}
	case http.StatusUnprocessableEntity:
		if _, ok := p["errors"]; p["code"] == "invalid_request" && !ok {
			t.Errorf("%s %s: invalid_request without errors: %s", method, path, r)
		}
	}
}

// checkOperation: status, headers, content type and body are documented for this operation.
func (c *contract) checkOperation(t *testing.T, method, path string, place contractPath, r result) {
	t.Helper()
	kind := r.header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/") || path == "/openapi.json" || strings.HasPrefix(path, "/docs/") && r.status == http.StatusOK {
		return // not ours to describe
	}
	status := strconv.Itoa(r.status)
	response := place.item.GetOperation(method).Responses.Value(status)
	if response == nil {
		t.Errorf("%s %s: %d is not documented\n%s", method, path, r.status, r)
		return
	}
	for name, header := range response.Value.Headers {
		if header.Value.Required && r.header.Get(name) == "" {
			t.Errorf("%s %s: %d without %s\n%s", method, path, r.status, name, r)
		}
	}
	if len(response.Value.Content) == 0 && kind == "" && len(r.body) == 0 {
		return
	}
	if response.Value.Content[kind] == nil {
		t.Errorf("%s %s: %d as %q is not documented\n%s", method, path, r.status, kind, r)
		return
	}
	if err := c.matches(r.body, "paths", place.path, strings.ToLower(method), "responses", status, "content", kind, "schema"); err != nil {
		t.Errorf("%s %s is not as documented: %v\n%s", method, path, err, r)
	}
}

// TestContract fails when the contract accepts an answer that is not documented.
func TestContract(t *testing.T) {
	c := newContract(t)
	if len(c.find("/v1/packets").item.Operations()) == 0 || len(c.find("/v1/nothing").item.Operations()) != 0 {
		t.Error("paths are not found as documented")
	}
	for _, body := range []string{"{}", `{"id":1}`, "[]", "null"} {
		err := c.matches([]byte(body), "paths", "/v1/packets/{id}", "get", "responses", "200", "content", "application/json", "schema")
		if _, refused := errors.AsType[*jsonschema.ValidationError](err); !refused {
			t.Errorf("%s: %v", body, err)
		}
	}
}
