package api

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"hongbao/api/rest"
	"hongbao/internal/packet"
)

const (
	// A character is at most an escaped pair of surrogates, and a byte of UTF-8 an escape.
	escapedChar = len(`\ud83d\ude00`)
	escapedByte = len(`\u0061`)
	// otherText is what texts without a bound of their own have at most, such as ids and times.
	otherText = 64
)

// longest is how long a body may be whose fields keep their bounds.
func longest(schema *openapi3.Schema) (n int) {
	switch {
	case schema.Type.Includes("string"):
		if schema.MaxLength != nil {
			return escapedChar*int(*schema.MaxLength) + 2
		}
		return escapedByte*otherText + 2
	case schema.Type.Includes("array"):
		if schema.MaxItems == nil {
			panic("a list without a bound")
		}
		return int(*schema.MaxItems)*(longest(schema.Items.Value)+1) + 2
	case schema.AdditionalProperties.Schema != nil: // metadata, whose bound is on names and values
		return 2*packet.MaxMetadata*(escapedByte+len(`"":"",`)) + 2
	case schema.Type.Includes("object"):
		for name, member := range schema.Properties {
			n += escapedByte*len(name) + len(`"":,`) + longest(member.Value)
		}
		return n + 2
	}
	for _, one := range append(schema.AnyOf, append(schema.OneOf, schema.AllOf...)...) {
		n = max(n, longest(one.Value))
	}
	return max(n, len("-9007199254740991"))
}

// TestBodyLimits: whatever the document allows in a body fits into it, with every character
// of every field, and of its name, written as an escape.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	doc := loadDocument(t)
	seen := 0
	for _, r := range (&Server{}).routes() {
		op := doc.Paths.Value(r.Path).GetOperation(r.Method)
		if op.RequestBody == nil {
			continue
		}
		seen++
		n := longest(op.RequestBody.Value.Content.Get(rest.ContentJSON).Schema.Value)
		if n > r.Largest() {
			t.Errorf("%s %s: a body of %d bytes is allowed, its limit is %d", r.Method, r.Path, n, r.Largest())
		}
	}
	if seen < 20 {
		t.Errorf("only %d routes have bodies", seen)
	}
}
