package rest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/wire"
)

// example returns a valid example of a schema. Optional members appear only when their
// field has an example, so that a request can be sent unchanged. Nullable members are null
// unless shownNullables lists them.
func example(reg huma.Registry, name string, s *huma.Schema, request bool) any {
	if v, ok := memberExamples[name]; ok && s.Format == "date-time" {
		return v
	}
	if len(s.Examples) > 0 {
		return jsonTypes(s.Examples[0])
	}
	if s.Ref != "" {
		return example(reg, name, reg.SchemaFromRef(s.Ref), request)
	}
	if v, ok := enumExamples[name]; ok && slices.Contains(s.Enum, v) {
		return v
	}
	if v, ok := memberExamples[name]; ok && fits(s, v) {
		return v
	}
	switch {
	case len(s.AnyOf) > 0:
		if s.AnyOf[len(s.AnyOf)-1].Type == "null" && !slices.Contains(shownNullables, name) {
			return nil
		}
		return example(reg, name, s.AnyOf[0], request)
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	switch s.Type {
	case huma.TypeObject:
		return exampleObject(reg, s, request)
	case huma.TypeArray:
		return []any{example(reg, name, s.Items, request)}
	case huma.TypeBoolean:
		return false
	case huma.TypeInteger, huma.TypeNumber:
		if s.Minimum != nil && *s.Minimum > 0 {
			return *s.Minimum
		}
		return 0
	}
	return exampleText(s)
}

func exampleObject(reg huma.Registry, s *huma.Schema, request bool) map[string]any {
	out := map[string]any{}
	for member, m := range s.Properties {
		dated := request && m.Format == "date" // the fixed day of the examples is soon in the past
		if len(m.Examples) > 0 && !dated || slices.Contains(s.Required, member) {
			out[member] = example(reg, member, m, request)
		}
	}
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok && !request && more.Ref != "" {
		out["redis"] = example(reg, "", more, request) // only readiness has such a map: of dependencies by name
	}
	return out
}

func exampleText(s *huma.Schema) string {
	switch {
	case s.Format == "date-time":
		return "2026-02-17T12:00:00.000Z"
	case s.Format == "date":
		return "2026-02-17"
	case s.Format == "uri-reference":
		return "/"
	case strings.HasPrefix(s.Pattern, "^[0-9a-f]{64}"):
		return strings.Repeat("3f9a", 16)
	}
	return "text"
}

// shownNullables are the nullable members whose examples have a value instead of null.
var shownNullables = []string{"token", "share_index", "key_id", "payment_id", "payout", "money", "charge"}

// enumExamples are values of enums where the first value would be a rare one.
var enumExamples = map[string]any{"status": "open", "split": "random", "op": "transfer"}

// memberExamples are the examples of members that have the same meaning in every schema.
var memberExamples = map[string]any{
	"created_at": "2026-02-17T11:59:58.120Z", "updated_at": "2026-02-17T12:00:07.345Z", "expires_at": "2026-02-18T12:00:00.000Z",
	"opens_at": "2026-02-17T12:00:00.000Z", "claimed_at": "2026-02-17T12:00:05.120Z", "started_at": "2026-02-17T12:00:05.310Z",
	"user_id": "u2", "sender_id": "u1", "packet_id": "3q5k9v0c1m7e2u8h4r6t", "payment_id": "p3q5k9v0c1m7e2u8h4r6t0003",
	"payout_id": "p3q5k9v0c1m7e2u8h4r6t0003", "refund_id": "r3q5k9v0c1m7e2u8h4r6t0000", "order_no": "p3q5k9v0c1m7e2u8h4r6t000301",
	"provider": "sandbox", "reconciliation_id": "sKQ3X7M2P5R6T4V2W3Y7Z5B6CD", "app": "shop", "app_id": "shop", "by": "li.na",
	"key_id": "k3q5v2c7m4e2", "run_id": "0198c2f4-7c1e-7f3a-9d52-6b1f0c8e4a77", "status": "running", "name": "evening rain",
	"message": "the account is frozen", "detail": "the statement has no such order", "greeting": "恭喜发财", "reason": "see ticket 4711",
	"token": "the new key's token", "metadata": map[string]any{}, "timeline": []any{}, "before": map[string]any{}, "after": map[string]any{},
	"pending": []any{}, "breaks": []any{}, "differences": []any{},
	"total_amount": 10000, "amount": 1288, "count": 1, "attempt_count": 1, "share_count": 10, "share_index": 3, "claimed_count": 1,
	"claimed_amount":  1288,
	"remaining_count": 9, "remaining_amount": 8712, "balanced": true, "ties": true, "sound": true, "valid": true,
}

// fits reports whether a member example has the type of the schema.
func fits(s *huma.Schema, v any) bool {
	if len(s.Enum) > 0 {
		return false
	}
	switch v.(type) {
	case string:
		return s.Type == huma.TypeString
	case bool:
		return s.Type == huma.TypeBoolean
	case int:
		if len(s.AnyOf) > 0 {
			return s.AnyOf[0].Type == huma.TypeInteger && s.AnyOf[1].Type != "null"
		}
		return s.Type == huma.TypeInteger
	case []any:
		return s.Type == huma.TypeArray
	}
	return s.Type == huma.TypeObject && len(s.Properties) == 0
}

// jsonTypes converts an example to the types that JSON decodes to: maps, slices, numbers.
func jsonTypes(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // an example of this package
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// problemExamples returns one example per code, referred to by the answers of operations.
func problemExamples() map[string]*huma.Example {
	out := map[string]*huma.Example{}
	for _, row := range catalogue {
		r := Refuse(row.code)
		if row.code == wire.CodeInvalidRequest {
			r.Fields = []wire.FieldError{{Field: "total_amount", Code: FaultRange, Message: "must be from 1 to 9007199254740991"}}
		}
		out[string(row.code)] = &huma.Example{Summary: row.title, Value: jsonTypes(r.Problem("/v1/packets", "req_3f9a1c"))}
	}
	return out
}

// problemReferences returns references to the examples of codes.
func problemReferences(codes []wire.Code) map[string]*huma.Example {
	out := map[string]*huma.Example{}
	for _, code := range codes {
		out[string(code)] = &huma.Example{Ref: "#/components/examples/" + string(code)}
	}
	return out
}

// mediaOf returns the content of a body with its example; text formats have none.
func mediaOf(reg huma.Registry, kind string, zero any, request bool) *huma.MediaType {
	schema := schemaOf(reg, zero)
	media := &huma.MediaType{Schema: schema}
	if _, text := zero.(string); !text && kind == ContentJSON {
		media.Example = example(reg, "", schema, request)
	}
	return media
}
