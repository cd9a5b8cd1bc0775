package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// about is the introduction of the document.
const about = `Red packets (红包): a sender puts money in, many people grab at the same instant, every winner is really paid, and what nobody took goes back.

**Money** is an integer in fen, from 0 to 2^53-1. A sum above that is a string with its digits, exact up to 2^63-2; 9223372036854775807+ is more. **Times** are RFC 3339 UTC with milliseconds. **Ids** are opaque. User, sender and account ids are 1 to 64 bytes of UTF-8 without control characters, compared byte by byte, percent-encoded in paths.

**Errors** are application/problem+json with a code for programs. They are checked in this order: auth, role, route, body, fields, idempotency, state. A path without key is 401, whether or not something is there; a known path with another method is 405 with Allow. Every answer carries X-Request-Id: the client's, when it is 1 to 128 visible ASCII characters.

**Bodies** are strict JSON: member names are compared exactly; unknown and duplicate members, floats where whole numbers belong and trailing content are refused. Members that are not required may be null, which means their default.

**Lists** are newest first: limit, and cursor from next_cursor, which keeps filters and order. Unknown parameters of lists are refused.

Operations tagged staff, and /metrics, are on the staff listener; the others on the public one; /livez, /readyz and /errors on both.`

// Document returns the OpenAPI 3.1 document of the routes, as served at
// /openapi.json. It is made from the same table as the routes themselves.
func Document(version string) ([]byte, error) {
	reg := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "hongbao", Version: version, Description: about,
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
		Servers: []*huma.Server{{URL: "/", Description: "Where this document was read; operations tagged staff are on the staff listener."}},
		Tags: []*huma.Tag{
			{Name: "packets", Description: "Red packets, for the apps' backends."},
			{Name: "claims", Description: "Grabs and claims, for the apps' backends."},
			{Name: "users", Description: "What users sent and received, for the apps' backends."},
			{Name: "staff", Description: "For the people of the platform; on the staff listener."},
			{Name: "platform", Description: "Health, metrics, this document, notifications of providers."},
		},
		Components: &huma.Components{Schemas: reg, SecuritySchemes: map[string]*huma.SecurityScheme{
			schemeApp:   {Type: "http", Scheme: "bearer", Description: "The API key of an app."},
			schemeStaff: {Type: "http", Scheme: "bearer", Description: "The API key of a member of staff: finance, ops, auditor or admin."},
		}},
	}
	reg.Schema(typeOf[Problem](), true, "")
	for _, r := range routes() {
		doc.AddOperation(r.operation(reg))
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode openapi document: %w", err)
	}
	return append(raw, '\n'), nil
}

// Names of the security schemes.
const (
	schemeApp   = "appKey"
	schemeStaff = "staffKey"
)

func (r *route) operation(reg huma.Registry) *huma.Operation {
	op := &huma.Operation{OperationID: r.id, Method: r.method, Path: r.path, Tags: []string{r.tag}, Summary: r.summary, Description: r.about,
		Security: []map[string][]string{}, Responses: map[string]*huma.Response{}}
	switch r.realm {
	case realmApp:
		op.Security = []map[string][]string{{schemeApp: {}}}
	case realmStaff:
		op.Security = []map[string][]string{{schemeStaff: {}}}
		op.Description = strings.TrimSpace(op.Description + " " + r.allowedRoles())
	}
	for _, p := range r.params {
		op.Parameters = append(op.Parameters, p.parameter(reg))
	}
	if r.body != nil {
		op.RequestBody = &huma.RequestBody{Required: !r.optional, Description: fmt.Sprintf("At most %d bytes.", r.limit()),
			Content: map[string]*huma.MediaType{contentJSON: {Schema: schemaOf(reg, r.body)}}}
	}
	for _, a := range r.answers {
		op.Responses[strconv.Itoa(a.status)] = a.response(reg)
	}
	r.addProblems(op)
	return op
}

func (r *route) allowedRoles() string {
	if r.roles == nil {
		return "For every role of staff."
	}
	names := make([]string, len(r.roles))
	for i, role := range r.roles {
		names[i] = string(role)
	}
	return "Only for the role " + strings.Join(names, ", ") + "."
}

// addProblems documents one answer a status, with the codes it can carry.
func (r *route) addProblems(op *huma.Operation) {
	byStatus := map[int][]Code{}
	for _, code := range r.codes() {
		status, _, _ := code.row()
		byStatus[status] = append(byStatus[status], code)
	}
	for status, codes := range byStatus {
		limited := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"code": {Enum: anys(codes)}}}
		texts := make([]string, len(codes))
		for i, code := range codes {
			_, _, detail := code.row()
			texts[i] = fmt.Sprintf("`%s`: %s", code, detail)
		}
		content := map[string]*huma.MediaType{
			contentProblem: {Schema: &huma.Schema{AllOf: []*huma.Schema{{Ref: "#/components/schemas/Problem"}, limited}}}}
		key := strconv.Itoa(status)
		if good := op.Responses[key]; good != nil { // a health answer may share its status with a problem
			for kind, media := range content {
				good.Content[kind] = media
			}
			continue
		}
		response := &huma.Response{Description: strings.Join(texts, "\n\n"), Content: content, Headers: requestIDHeader()}
		for _, extra := range problemHeaders(codes) {
			response.Headers[extra.name] = extra.header(nil)
		}
		op.Responses[key] = response
	}
}

// problemHeaders lists the headers that come with some codes.
func problemHeaders(codes []Code) []param {
	var out []param
	if slices.Contains(codes, CodeUnauthenticated) {
		out = append(out, param{name: "WWW-Authenticate", about: "Bearer."})
	}
	for _, code := range []Code{CodeUnavailable, CodeNotOpenYet, CodeRequestInProgress, CodeRateLimited} {
		if slices.Contains(codes, code) {
			return append(out, param{name: "Retry-After", about: "Seconds to wait before asking again."})
		}
	}
	return out
}

func (a reply) response(reg huma.Registry) *huma.Response {
	out := &huma.Response{Description: a.about, Headers: requestIDHeader()}
	for _, h := range a.headers {
		out.Headers[h.name] = h.header(reg)
	}
	if a.body != nil {
		kind := a.kind
		if kind == "" {
			kind = contentJSON
		}
		out.Content = map[string]*huma.MediaType{kind: {Schema: schemaOf(reg, a.body)}}
	}
	return out
}

func requestIDHeader() map[string]*huma.Param {
	return map[string]*huma.Param{"X-Request-Id": {Description: "The client's, or made by the server.", Required: true,
		Schema: &huma.Schema{Type: huma.TypeString}}}
}

// header documents a header of an answer.
func (p param) header(huma.Registry) *huma.Param {
	return &huma.Param{Description: p.about, Schema: &huma.Schema{Type: huma.TypeString}}
}

func (p param) parameter(reg huma.Registry) *huma.Param {
	schema := schemaOf(reg, p.schema)
	if p.max > 0 {
		low, high := float64(p.min), float64(p.max)
		schema.Minimum, schema.Maximum = &low, &high
	}
	return &huma.Param{Name: p.name, In: p.in, Description: p.about, Required: p.required, Schema: schema, Example: p.example}
}

func schemaOf(reg huma.Registry, zero any) *huma.Schema {
	return reg.Schema(reflect.TypeOf(zero), true, "")
}

func anys[T ~string](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
