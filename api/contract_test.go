package api_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"hongbao/api"
)

// contract checks real answers against the OpenAPI document: a status, code,
// member or header that is not documented fails the test that met it.
type contract struct {
	doc   *openapi3.T
	paths []contractPath
	// checked are the answers that were looked at. Each look compiles its schema, which
	// takes longer than most answers.
	checked sync.Map
}

// again reports whether the same answer, but for the id and time of its request, was looked
// at before in the same place.
func (c *contract) again(place string, r result) bool {
	body := bytes.ReplaceAll(r.body, []byte(r.header.Get("X-Request-Id")), []byte("id"))
	header := r.header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	_, before := c.checked.LoadOrStore(fmt.Sprintf("%s %d %q %s", place, r.status, header, body), true)
	return before
}

type contractPath struct {
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
	c := &contract{doc: doc}
	parameter := regexp.MustCompile(`\\\{[a-z_]+\\\}`)
	paths := slices.SortedFunc(maps.Keys(doc.Paths.Map()), func(a, b string) int { // what is fixed goes before what is a parameter
		return cmp.Or(strings.Count(a, "{")-strings.Count(b, "{"), strings.Compare(a, b))
	})
	for _, path := range paths {
		item := doc.Paths.Value(path)
		pattern := parameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		c.paths = append(c.paths, contractPath{regexp.MustCompile("^" + pattern + "$"), item})
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
	item := c.find(bare)
	if method == http.MethodHead {
		return // GET without its body
	}
	if item == nil || item.GetOperation(method) == nil {
		if r.status < 400 {
			t.Errorf("%s %s: %d of an operation that is not documented", method, bare, r.status)
		}
		return
	}
	if code := r.code(); code == "not_found" || (code == "unauthenticated" || code == "forbidden") &&
		len(*item.GetOperation(method).Security) == 0 {
		return // documented, but on the other listener
	}
	c.checkOperation(t, method, bare, item, r)
}

func (c *contract) find(path string) *openapi3.PathItem {
	for _, p := range c.paths {
		if p.match.MatchString(path) {
			return p.item
		}
	}
	return nil
}

// checkProblem holds for every error, documented operation or not.
func (c *contract) checkProblem(t *testing.T, method, path string, r result) {
	t.Helper()
	schema := c.doc.Components.Schemas["Problem"].Value
	var p map[string]any
	r.json(t, &p)
	if !c.again("problem", r) {
		if err := schema.VisitJSON(p, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s %s: %v\n%s", method, path, err, r)
		}
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

// checkOperation: status, content type and body are documented for this operation.
func (c *contract) checkOperation(t *testing.T, method, path string, item *openapi3.PathItem, r result) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://host"+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := &openapi3filter.RequestValidationInput{Request: req, Options: &openapi3filter.Options{IncludeResponseStatus: true},
		Route: &routers.Route{Spec: c.doc, PathItem: item, Method: method, Operation: item.GetOperation(method)}}
	header := r.header.Clone()
	kind := header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/") || path == "/openapi.json" || strings.HasPrefix(path, "/docs/") && r.status == http.StatusOK {
		return // not ours to describe
	}
	if c.again(fmt.Sprintf("%s %p", method, item), r) {
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: r.status, Header: header, Body: io.NopCloser(bytes.NewReader(r.body)), Options: in.Options,
	})
	if err != nil {
		t.Errorf("%s %s is not as documented: %v\n%s", method, path, err, r)
	}
}
