package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/wire"
)

// about is the introduction of the OpenAPI document.
const about = `Red packets (红包): a sender funds a packet that is split into shares, many users grab at the same moment, every winner is paid, and the unclaimed amount is refunded to the sender.

**Money** is an integer in fen, from 0 to 2^53-1. A larger sum is a string of its digits, exact up to 2^63-2; 9223372036854775807+ stands for any larger sum. **Times** are RFC 3339 UTC with milliseconds. **Ids** are opaque. User, sender and account ids are 1 to 64 bytes of UTF-8 without control characters, compared byte by byte, percent-encoded in paths.

**Errors** are application/problem+json with a code for programs. type is a URI reference such as /errors/sold_out; resolved against the URL of the request it is a page about the code. Requests are checked in this order: authentication, role, route, body, fields, idempotency, state. Without a key every path is 401, whether or not it exists; a known path with another method is 405 with Allow. An answer to a request with a key is not to be stored by any cache (Cache-Control: no-store). Every answer has X-Request-Id: the client's, if it is 1 to 128 visible ASCII characters.

**Bodies** are strict JSON: member names are compared exactly; unknown and duplicate members, fractions in whole numbers and trailing content are refused. Optional members may be null, which means their default.

**Lists** are newest first. limit is the page size; cursor is the next_cursor of the previous page and keeps filters and order. Unknown parameters of lists are refused.

Operations whose tag begins with staff, and /metrics, are on the staff listener, the others on the public
listener; /livez, /readyz and /errors are on both. Examples are valid requests with invented ids: replace the ids with your own.`

// RenderDocument returns the OpenAPI 3.1 document of a table of routes.
func RenderDocument(routes []*Route, version string) ([]byte, error) {
	reg := newRegistry(routes)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "hongbao", Version: version, Description: about,
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
		Servers: []*huma.Server{{URL: "/", Description: "The listener that served this document; operations whose tag begins with staff are " +
			"on the staff listener."}},
		Tags: []*huma.Tag{
			// In the order of a packet's life: first the apps' backends, then staff.
			{Name: "packets", Description: "App backends: create, read and recall packets."},
			{Name: "claims", Description: "App backends: grab shares and read claims."},
			{Name: "users", Description: "App backends: what users sent and received."},
			{Name: "recipients", Description: "App backends: agreements of users to be paid without confirming each time."},
			{Name: "campaigns", Description: "App backends: packets that open every day."},
			{Name: "balance", Description: "App backends: the money that the app has paid in."},
			{Name: "providers", Description: "App backends: what the payment providers can do."},
			{Name: "staff overview", Description: "Staff: balances, open work, activity and health."},
			{Name: "staff packets", Description: "Staff: packets of all apps."},
			{Name: "staff payouts", Description: "Staff: payouts to recipients."},
			{Name: "staff refunds", Description: "Staff: refunds to senders."},
			{Name: "staff charges", Description: "Staff: charges of senders and apps."},
			{Name: "staff decisions", Description: "Finance: retry, cancel, mark as paid, query, and approvals by a second person."},
			{Name: "staff providers", Description: "Staff: payment providers and their holds."},
			{Name: "staff balances", Description: "Finance: the balances of apps."},
			{Name: "staff holds", Description: "Staff: what stops sends, closings and decisions of a provider, a packet or a payment."},
			{Name: "staff campaigns", Description: "Staff: campaigns of all apps."},
			{Name: "staff reconciliation", Description: "Staff: comparison with the provider's statement, and breaks."},
			{Name: "staff ledger", Description: "Staff: balances and day-end closes of the ledger."},
			{Name: "staff exports", Description: "Staff: lists and day-end closes as CSV."},
			{Name: "staff audit", Description: "Auditors: what staff did."},
			{Name: "staff keys", Description: "Administrators: API keys and ticket keys."},
			{Name: "platform", Description: "Health, metrics, this document, notifications of providers."},
		},
		Components: &huma.Components{Schemas: reg, Examples: problemExamples(), SecuritySchemes: map[string]*huma.SecurityScheme{
			schemeApp: {Type: "http", Scheme: "bearer", Description: "The API key of an app."},
			schemeStaff: {Type: "http", Scheme: "bearer", Description: "The API key of a member of staff, with the role finance, ops, auditor " +
				"or admin."},
		}},
	}
	for _, r := range routes {
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

func (r *Route) operation(reg huma.Registry) *huma.Operation {
	op := &huma.Operation{OperationID: r.ID, Method: r.Method, Path: r.Path, Tags: []string{r.Tag}, Summary: r.Summary, Description: r.About,
		Security: []map[string][]string{}, Responses: map[string]*huma.Response{}}
	switch r.Realm {
	case RealmApp:
		op.Security = []map[string][]string{{schemeApp: {}}}
	case RealmStaff:
		op.Security = []map[string][]string{{schemeStaff: {}}}
		op.Description = strings.TrimSpace(op.Description + " " + r.allowedRoles())
	}
	for _, p := range r.Params {
		op.Parameters = append(op.Parameters, p.parameter(reg))
	}
	if r.Body != nil {
		op.RequestBody = &huma.RequestBody{Required: !r.Optional, Description: fmt.Sprintf("At most %d bytes.", r.Largest()),
			Content: map[string]*huma.MediaType{ContentJSON: mediaOf(reg, ContentJSON, r.Body, true)}}
	}
	for _, a := range r.Answers {
		op.Responses[strconv.Itoa(a.Status)] = a.response(reg)
	}
	r.addProblems(op)
	return op
}

// allowedRoles returns the sentence about the roles of a staff operation.
func (r *Route) allowedRoles() string {
	if r.Roles == nil {
		return "For every role of staff."
	}
	names := make([]string, len(r.Roles))
	for i, role := range r.Roles {
		names[i] = string(role)
	}
	if len(names) == 1 {
		return "Only for the role " + names[0] + "."
	}
	return "Only for the roles " + strings.Join(names, ", ") + "."
}

// addProblems documents one answer per status, with its possible codes.
func (r *Route) addProblems(op *huma.Operation) {
	byStatus := map[int][]wire.Code{}
	for _, code := range r.codes() {
		status, _, _ := rowOf(code)
		if code == wire.CodeInsufficientBalance && r.Realm == RealmStaff { // of a debit, not of a packet
			status = http.StatusConflict
		}
		byStatus[status] = append(byStatus[status], code)
	}
	for status, codes := range byStatus {
		limited := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"code": {Enum: anys(codes)}}}
		texts := make([]string, len(codes))
		for i, code := range codes {
			_, _, detail := rowOf(code)
			texts[i] = fmt.Sprintf("`%s`: %s", code, detail)
		}
		content := map[string]*huma.MediaType{
			ContentProblem: {Schema: &huma.Schema{AllOf: []*huma.Schema{{Ref: "#/components/schemas/Problem"}, limited}},
				Examples: problemReferences(codes)}}
		key := strconv.Itoa(status)
		if good := op.Responses[key]; good != nil { // readiness shares 503 with a problem
			for kind, media := range content {
				good.Content[kind] = media
			}
			continue
		}
		response := &huma.Response{Description: strings.Join(texts, "\n\n"), Content: content, Headers: requestIDHeader()}
		for _, extra := range problemHeaders(codes) {
			response.Headers[extra.Name] = extra.header(nil)
		}
		op.Responses[key] = response
	}
}

// problemHeaders lists the headers of the given codes.
func problemHeaders(codes []wire.Code) []Param {
	var out []Param
	if slices.Contains(codes, wire.CodeUnauthenticated) {
		out = append(out, Param{Name: "WWW-Authenticate", About: "Bearer."})
	}
	for _, code := range []wire.Code{wire.CodeUnavailable, wire.CodeNotOpenYet, wire.CodeRequestInProgress, wire.CodeRateLimited} {
		if slices.Contains(codes, code) {
			return append(out, Param{Name: "Retry-After", About: "Seconds to wait before the request is repeated."})
		}
	}
	return out
}

func (a Reply) response(reg huma.Registry) *huma.Response {
	out := &huma.Response{Description: a.About, Headers: requestIDHeader()}
	for _, h := range a.Headers {
		out.Headers[h.Name] = h.header(reg)
	}
	if a.Body != nil {
		kind := a.Kind
		if kind == "" {
			kind = ContentJSON
		}
		out.Content = map[string]*huma.MediaType{kind: mediaOf(reg, kind, a.Body, false)}
	}
	return out
}

func requestIDHeader() map[string]*huma.Param {
	return map[string]*huma.Param{"X-Request-Id": {Description: "The client's id, or one generated by the server.", Required: true,
		Schema: &huma.Schema{Type: huma.TypeString}}}
}

// header documents a header of an answer.
func (p Param) header(huma.Registry) *huma.Param {
	return &huma.Param{Description: p.About, Schema: &huma.Schema{Type: huma.TypeString}}
}

func (p Param) parameter(reg huma.Registry) *huma.Param {
	if p.field.Type != nil {
		return p.ofField(reg)
	}
	schema := schemaOf(reg, p.Schema)
	if p.max > 0 {
		low, high := float64(p.min), float64(p.max)
		schema.Minimum, schema.Maximum = &low, &high
	}
	return &huma.Param{Name: p.Name, In: p.In, Description: p.About, Required: p.Required, Schema: schema, Example: p.Example}
}

// ofField documents a parameter of an operation.
func (p Param) ofField(reg huma.Registry) *huma.Param {
	out := &huma.Param{Name: p.Name, In: p.In, Description: p.About, Required: p.Required, Example: p.Example,
		Schema: &huma.Schema{Type: huma.TypeString}}
	if p.field.Type != typeOf[time.Time]() {
		out.Schema = huma.SchemaFromField(contract{reg, p.field}, p.field, "")
	}
	if out.Example == nil && len(out.Schema.Examples) > 0 {
		out.Example = out.Schema.Examples[0]
	}
	if text := p.field.Tag.Get("example"); out.Schema.Type == huma.TypeString && text != "" {
		out.Example = text
	}
	out.Schema.Description, out.Schema.Examples, out.Schema.Nullable = "", nil, false
	return out
}

func schemaOf(reg huma.Registry, zero any) *huma.Schema {
	return contract{Registry: reg}.Schema(reflect.TypeOf(zero), true, "")
}

func anys[T ~string](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
