package client_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hongbao/api"
	"hongbao/client"
)

// schema is as much of JSON Schema as the document uses.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Enum       []string           `json:"enum"`
	AnyOf      []*schema          `json:"anyOf"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
}

// document is the part of the OpenAPI document that concerns a client.
type document struct {
	Paths map[string]map[string]struct {
		Tags        []string
		RequestBody struct {
			Content map[string]struct{ Schema *schema }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

func loadDocument(t *testing.T) document {
	t.Helper()
	raw, err := api.Document("test")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// resolve follows references and leaves out null.
func (d document) resolve(s *schema) *schema {
	for {
		switch {
		case s.Ref != "":
			s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(s.AnyOf) > 0:
			i := slices.IndexFunc(s.AnyOf, func(s *schema) bool { return s.Type != "null" })
			s = s.AnyOf[i]
		default:
			return s
		}
	}
}

// operations says which types the client sends and reads; nil: nothing is sent.
var operations = map[string]struct{ sends, reads any }{
	"post /v1/packets":                        {client.CreateRequest{}, client.Packet{}},
	"get /v1/packets":                         {nil, client.List[client.Packet]{}},
	"get /v1/packets/{id}":                    {nil, client.Packet{}},
	"post /v1/packets/{id}/close":             {nil, client.Packet{}},
	"get /v1/packets/{id}/proof":              {nil, client.Proof{}},
	"post /v1/packets/{id}/grabs":             {client.GrabRequest{}, client.Claim{}},
	"get /v1/packets/{id}/grabs":              {nil, client.List[client.Claim]{}},
	"get /v1/packets/{id}/grabs/{user_id}":    {nil, client.Claim{}},
	"get /v1/users/{user_id}/claims":          {nil, client.List[client.UserClaim]{}},
	"get /v1/users/{user_id}/packets":         {nil, client.List[client.Packet]{}},
	"get /v1/users/{user_id}/summary":         {nil, client.Summary{}},
	"post /v1/campaigns":                      {client.CampaignRequest{}, client.Campaign{}},
	"get /v1/campaigns":                       {nil, client.List[client.Campaign]{}},
	"get /v1/campaigns/{id}":                  {nil, client.Campaign{}},
	"get /v1/campaigns/{id}/days":             {nil, client.List[client.CampaignDay]{}},
	"post /v1/campaigns/{id}/pause":           {nil, client.Campaign{}},
	"post /v1/campaigns/{id}/resume":          {nil, client.Campaign{}},
	"post /v1/campaigns/{id}/end":             {nil, client.Campaign{}},
	"get /v1/staff/payouts":                   {nil, client.List[client.Payout]{}},
	"get /v1/staff/payouts/sum":               {nil, client.PaymentSum{}},
	"get /v1/staff/payouts/statuses":          {nil, client.PayoutStatuses{}},
	"get /v1/staff/refunds/sum":               {nil, client.PaymentSum{}},
	"get /v1/staff/packets/sum":               {nil, client.ListSum{}},
	"get /v1/staff/approvals/sum":             {nil, client.ListSum{}},
	"get /v1/staff/breaks/sum":                {nil, client.BreakSum{}},
	"get /v1/staff/breaks/count":              {nil, client.ListCount{}},
	"get /v1/staff/audit/count":               {nil, client.ListCount{}},
	"get /v1/staff/overview":                  {nil, client.Overview{}},
	"get /v1/staff/activity":                  {nil, client.Activity{}},
	"get /v1/staff/health":                    {nil, client.Health{}},
	"get /v1/staff/payouts/{id}":              {nil, client.PayoutDetail{}},
	"post /v1/staff/payouts/{id}/retry":       {client.RetryRequest{}, client.Decided{}},
	"post /v1/staff/payouts/{id}/cancel":      {client.DecisionRequest{}, client.Decided{}},
	"post /v1/staff/payouts/{id}/withdraw":    {client.DecisionRequest{}, client.Decided{}},
	"post /v1/staff/payouts/{id}/mark-paid":   {client.MarkPaidRequest{}, client.Decided{}},
	"post /v1/staff/payouts/{id}/ask":         {client.DecisionRequest{}, client.Decided{}},
	"post /v1/staff/payouts/retry":            {client.BulkRetryRequest{}, client.BulkRetried{}},
	"get /v1/staff/refunds/statuses":          {nil, client.PayoutStatuses{}},
	"post /v1/staff/refunds/retry":            {client.BulkRefundRequest{}, client.BulkRefundsRetried{}},
	"post /v1/staff/refunds/{id}/retry":       {client.RetryRequest{}, client.DecidedRefund{}},
	"post /v1/staff/refunds/{id}/withdraw":    {client.DecisionRequest{}, client.DecidedRefund{}},
	"post /v1/staff/refunds/{id}/cancel":      {client.DecisionRequest{}, client.DecidedRefund{}},
	"post /v1/staff/refunds/{id}/mark-paid":   {client.MarkPaidRequest{}, client.DecidedRefund{}},
	"get /v1/staff/approvals":                 {nil, client.List[client.ApprovalItem]{}},
	"post /v1/staff/approvals/{id}/approve":   {client.DecisionRequest{}, client.Answered{}},
	"post /v1/staff/approvals/{id}/reject":    {client.DecisionRequest{}, client.Answered{}},
	"post /v1/staff/approvals/{id}/withdraw":  {client.DecisionRequest{}, client.Answered{}},
	"get /v1/staff/providers":                 {nil, client.List[client.Provider]{}},
	"post /v1/staff/providers/{name}/hold":    {client.HoldRequest{}, client.Provider{}},
	"post /v1/staff/providers/{name}/release": {client.HoldRequest{}, client.Provider{}},
	"get /v1/staff/reconciliations":           {nil, client.List[client.Reconciliation]{}},
	"post /v1/staff/reconciliations":          {client.ReconcileRequest{}, client.Reconciliation{}},
	"get /v1/staff/reconciliations/{id}":      {nil, client.Reconciliation{}},
	"get /v1/staff/breaks":                    {nil, client.List[client.Break]{}},
	"post /v1/staff/breaks/{id}/resolve":      {client.ResolveRequest{}, client.Break{}},
	"get /v1/staff/keys":                      {nil, client.List[client.APIKey]{}},
	"post /v1/staff/keys":                     {client.CreateKeyRequest{}, client.CreatedKey{}},
	"post /v1/staff/keys/{id}/rotate":         {client.RotateKeyRequest{}, client.RotatedKey{}},
	"post /v1/staff/keys/{id}/approve":        {client.DecisionRequest{}, client.APIKey{}},
	"post /v1/staff/keys/{id}/revoke":         {client.RevokeKeyRequest{}, client.APIKey{}},
	"get /v1/staff/ticket-keys":               {nil, client.List[client.TicketKey]{}},
	"post /v1/staff/ticket-keys":              {client.AddTicketKeyRequest{}, client.TicketKey{}},
	"post /v1/staff/ticket-keys/{id}/revoke":  {client.RevokeKeyRequest{}, client.TicketKey{}},
	"get /v1/staff/holds":                     {nil, client.List[client.Hold]{}},
	"post /v1/staff/holds":                    {client.NewHold{}, client.HeldItem{}},
	"get /v1/staff/holds/{id}":                {nil, client.HeldItem{}},
	"post /v1/staff/holds/{id}/release":       {client.HoldRequest{}, client.HeldItem{}},
	"post /v1/staff/holds/release":            {client.BulkReleaseRequest{}, client.BulkReleased{}},
	"post /v1/staff/share-conflicts/honour":   {client.BulkConflictRequest{}, client.BulkConflictsDecided{}},
	"post /v1/staff/share-conflicts/void":     {client.BulkConflictRequest{}, client.BulkConflictsDecided{}},
	"get /v1/staff/audit":                     {nil, client.List[client.AuditEntry]{}},
	"get /v1/staff/audit/verify":              {nil, client.AuditVerdict{}},
	"get /v1/staff/refunds":                   {nil, client.List[client.Refund]{}},
	"get /v1/staff/refunds/{id}":              {nil, client.RefundDetail{}},
	"get /v1/staff/campaigns":                 {nil, client.List[client.StaffCampaign]{}},
	"get /v1/staff/campaigns/{id}":            {nil, client.StaffCampaign{}},
	"get /v1/staff/campaigns/{id}/days":       {nil, client.List[client.CampaignDay]{}},
	"post /v1/staff/campaigns/{id}/pause":     {client.DecisionRequest{}, client.StaffCampaign{}},
	"post /v1/staff/campaigns/{id}/end":       {client.DecisionRequest{}, client.StaffCampaign{}},
	"get /v1/staff/packets":                   {nil, client.List[client.StaffPacket]{}},
	"get /v1/staff/packets/{id}":              {nil, client.StaffPacketDetail{}},
	"get /v1/staff/packets/{id}/grabs":        {nil, client.List[client.Claim]{}},
	"get /v1/staff/packets/{id}/proof":        {nil, client.Proof{}},
	"post /v1/staff/packets/{id}/recall":      {client.DecisionRequest{}, client.StaffPacket{}},
	"get /v1/staff/export/payouts.csv":        {}, // no JSON
	"get /v1/staff/export/refunds.csv":        {}, // no JSON
	"get /v1/staff/export/packets.csv":        {}, // no JSON
	"get /v1/staff/export/audit.csv":          {}, // no JSON
	"get /v1/staff/export/breaks.csv":         {}, // no JSON
	"get /v1/staff/export/approvals.csv":      {}, // no JSON
	"get /v1/staff/export/close.csv":          {}, // no JSON
	"get /v1/staff/balances":                  {nil, client.Balances{}},
	"get /v1/staff/closes":                    {nil, client.List[client.CloseSummary]{}},
	"get /v1/staff/closes/{date}":             {nil, client.Close{}},
	"post /v1/provider-notifications/sandbox": {}, // for providers
}

// otherReads are the types that the client reads with a status other than the usual one.
var otherReads = map[string]any{"post /v1/staff/breaks/{id}/resolve 202": client.DecidedBreak{}}

// TestTypesMatchDocument: the members of every type are those of the document,
// and the client knows every operation that is for apps or staff.
func TestTypesMatchDocument(t *testing.T) {
	d := loadDocument(t)
	for path, methods := range d.Paths {
		for method, op := range methods {
			if slices.Contains(op.Tags, "platform") {
				continue
			}
			name := method + " " + path
			types, ok := operations[name]
			if !ok {
				t.Errorf("the client does not know %s", name)
				continue
			}
			if types.sends != nil {
				d.compare(t, name+" sends", op.RequestBody.Content["application/json"].Schema, reflect.TypeOf(types.sends))
			}
			for status, answer := range op.Responses {
				reads, other := otherReads[name+" "+status]
				if !other {
					reads = types.reads
				}
				if status[0] == '2' && reads != nil {
					d.compare(t, name+" reads", answer.Content["application/json"].Schema, reflect.TypeOf(reads))
				}
			}
		}
	}
	for name := range operations {
		method, path, _ := strings.Cut(name, " ")
		if _, ok := d.Paths[path][method]; !ok {
			t.Errorf("%s is not in the document", name)
		}
	}
	d.compare(t, "problem", d.Components.Schemas["Problem"], reflect.TypeFor[client.Problem]())
}

// compare compares an object's members with a struct's, down to the leaves.
func (d document) compare(t *testing.T, where string, s *schema, typ reflect.Type) {
	t.Helper()
	s = d.resolve(s)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case s.Items != nil:
		if typ.Kind() != reflect.Slice {
			t.Errorf("%s is an array, the client has a %v", where, typ)
			return
		}
		d.compare(t, where+"[]", s.Items, typ.Elem())
	case len(s.Properties) > 0:
		members := membersOf(typ)
		if got, want := slices.Sorted(maps.Keys(members)), slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, want) {
			t.Errorf("%s has the members %q, the client %q", where, want, got)
		}
		for name, member := range members {
			if p := s.Properties[name]; p != nil {
				d.compare(t, where+"."+name, p, member)
			}
		}
	default:
		kinds := map[string][]reflect.Kind{"string": {reflect.String, reflect.Struct}, "integer": {reflect.Int, reflect.Int64},
			"boolean": {reflect.Bool}, "object": {reflect.Map}}
		if name, ok := s.Type.(string); ok && !slices.Contains(kinds[name], typ.Kind()) {
			t.Errorf("%s is a %s, the client has a %v", where, name, typ)
		}
	}
}

// membersOf returns the types of a struct's members by their names in JSON.
func membersOf(typ reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" && name != "" && field.IsExported() {
			out[name] = field.Type
		}
	}
	return out
}

// TestConstantsMatchDocument compares the enumerations of the document with the
// constants in the source.
func TestConstantsMatchDocument(t *testing.T) {
	d := loadDocument(t)
	constants := constantsByType(t)
	for name, s := range map[string]*schema{
		"Code":              d.Components.Schemas["Problem"].Properties["code"],
		"Status":            d.Components.Schemas["Packet"].Properties["status"],
		"Split":             d.Components.Schemas["Packet"].Properties["split"],
		"PayoutStatus":      d.Components.Schemas["PayoutRef"].Properties["status"],
		"CampaignStatus":    d.Components.Schemas["Campaign"].Properties["status"],
		"CampaignDayStatus": d.Components.Schemas["CampaignDay"].Properties["status"],
	} {
		got, want := slices.Sorted(slices.Values(constants[name])), slices.Sorted(slices.Values(d.resolve(s).Enum))
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("constants of %s: %q, the document has %q", name, got, want)
		}
	}
}

func constantsByType(t *testing.T) map[string][]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			typ, isNamed := spec.Type.(*ast.Ident)
			value, isText := spec.Values[0].(*ast.BasicLit)
			if isNamed && isText && value.Kind == token.STRING {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				out[typ.Name] = append(out[typ.Name], text)
			}
			return true
		})
	}
	return out
}
