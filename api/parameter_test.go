package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestParametersAndDocument: what the document allows as a parameter of a query is taken, and
// what lies just outside is refused, so that a client made from the document fits.
func TestParametersAndDocument(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with())
	campaign := h.campaign(h.app, "parameters", campaignBody()).ID
	seen := 0
	for path, item := range newContract(t).doc.Paths.Map() {
		op := item.Get
		if op == nil || slices.ContainsFunc(op.Parameters, func(p *openapi3.ParameterRef) bool {
			return p.Value.In == "query" &&
				p.Value.Required
		}) {
			continue // with a parameter that only some values fit
		}
		who := h.app
		if strings.HasPrefix(path, "/v1/staff/") {
			who = h.auditor
			if strings.HasPrefix(path, "/v1/staff/keys") {
				who = h.administrator()
			}
		}
		id := id
		if strings.Contains(path, "/campaigns") {
			id = campaign
		}
		path = strings.NewReplacer("{id}", id, "{user_id}", "u1", "{date}", "2026-02-17").Replace(path)
		for _, p := range op.Parameters {
			if p.Value.In != "query" {
				continue
			}
			good, bad := valuesOf(p.Value.Schema.Value)
			for _, text := range good {
				seen++
				if r := h.as(who, "GET", path+"?"+p.Value.Name+"="+url.QueryEscape(text), ""); r.status != http.StatusOK {
					t.Errorf("%s?%s=%s is documented: %s", path, p.Value.Name, text, r)
				}
			}
			for _, text := range bad {
				if r := h.as(who, "GET", path+"?"+p.Value.Name+"="+url.QueryEscape(text), ""); r.code() != "invalid_request" {
					t.Errorf("%s?%s=%s is not documented: %s", path, p.Value.Name, text, r)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d values", seen)
	}
}

// TestQueriesAreReadWhole: no route drops a parameter that it does not know, or cannot decode, also one
// that has no parameters: POST .../retry?dry_run=true must not retry.
func TestQueriesAreReadWhole(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	id := h.open(h.app, with())
	seen := 0
	for path, item := range newContract(t).doc.Paths.Map() {
		who := h.app
		switch {
		case strings.HasPrefix(path, "/v1/staff/keys"), strings.HasPrefix(path, "/v1/staff/ticket-keys"):
			who = admin
		case strings.Contains(path, "/audit"):
			who = h.auditor
		case strings.HasPrefix(path, "/v1/staff/providers"), strings.HasSuffix(path, "/recall"):
			who = h.ops
		case strings.HasPrefix(path, "/v1/staff/"):
			who = h.finance
		case !strings.HasPrefix(path, "/v1/"):
			continue
		}
		path = strings.NewReplacer("{id}", id, "{user_id}", "u1", "{date}", "2026-02-17", "{name}", "sandbox").Replace(path)
		for method, op := range item.Operations() {
			if op.Security != nil && len(*op.Security) == 0 {
				continue
			}
			for query, want := range map[string]string{"dry_run=true": "dry_run unknown_field", "nobody": "nobody unknown_field",
				"limit=%zz": "query invalid_format", "%": "query invalid_format"} {
				seen++
				c := call{method: method, path: path + "?" + query, key: who.token, header: map[string]string{"Idempotency-Key": "k"}}
				if method == http.MethodPost {
					c.body = "{}"
				}
				if r := h.do(c); r.code() != "invalid_request" || !slices.Contains(fieldsOf(t, r), want) {
					t.Errorf("%s %s?%s: %s", method, path, query, r)
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("only %d queries", seen)
	}
}

// valuesOf are values at the edge of what a schema allows, and just outside. Text that is free
// has none.
func valuesOf(s *openapi3.Schema) (good, bad []string) {
	for _, v := range s.Enum {
		good = append(good, fmt.Sprint(v))
	}
	switch {
	case len(s.Enum) > 0:
		bad = []string{"x", strings.ToUpper(good[0])}
	case s.Type.Is("boolean"):
		good, bad = []string{"true", "false"}, []string{"1", "TRUE", ""}
	case s.Type.Is("integer"):
		low, high := int64(*s.Min), int64(*s.Max)
		good = []string{strconv.FormatInt(low, 10), strconv.FormatInt(high, 10)}
		bad = []string{strconv.FormatInt(low-1, 10), strconv.FormatInt(high+1, 10), "1.5", "x"}
	}
	return good, bad
}
