package wechat

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// schemaCheck compares requests and answers with testdata/wechatpay.yaml.
type schemaCheck struct {
	doc    *openapi3.T
	router routers.Router
	next   http.Handler

	mu    sync.Mutex
	wrong []string
	seen  map[string]bool // operations
}

func newSchemaCheck(t *testing.T) *schemaCheck {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/wechatpay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &schemaCheck{doc: doc, router: router, seen: map[string]bool{}}
}

func (c *schemaCheck) fault(r *http.Request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 5 {
		c.wrong = append(c.wrong, fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, err))
	}
}

// ServeHTTP implements http.Handler.
func (c *schemaCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v3/") || strings.HasPrefix(r.URL.Path, downloadPath) {
		c.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		c.fault(r, err)
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		c.fault(r, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	c.next.ServeHTTP(rec, r)
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: rec.Code, Header: rec.Header(),
		Body: io.NopCloser(bytes.NewReader(rec.Body.Bytes())), Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		c.fault(r, err)
	}
	c.mu.Lock()
	if rec.Code < http.StatusMultipleChoices {
		c.seen[r.Method+" "+route.Path] = true
	}
	c.mu.Unlock()
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// elsewhere are operations that other tests make: TestStatement and TestCertificates.
var elsewhere = []string{"/v3/fund-app/mch-transfer/transfer-bills/transfer-bill-no/{id}", "/v3/certificates"}

// TestSchema: every request of the adapter and every answer of the simulator has the documented form.
func TestSchema(t *testing.T) {
	t.Parallel()
	c := newSchemaCheck(t)
	t.Run("conformance", func(t *testing.T) {
		runConformance(t, func(next http.Handler) http.Handler { c.next = next; return c })
	})
	r := newRig(t, nil, func(next http.Handler) http.Handler { c.next = next; return c })
	exerciseAll(t, r)
	for _, fault := range c.wrong {
		t.Error(fault)
	}
	for path, item := range c.doc.Paths.Map() {
		for method := range item.Operations() {
			if operation := method + " " + path; !c.seen[operation] && !slices.Contains(elsewhere, path) {
				t.Errorf("%s was not seen", operation)
			}
		}
	}
}
