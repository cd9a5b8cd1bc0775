package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hongbao/wire"
)

// member is one member of an object: name as sent, and value.
type member struct {
	name  string
	value jsontext.Value
}

// Object reads the members of a request and collects all faults, so that the client gets them
// at once. Names are compared exactly. A null member counts as omitted.
type Object struct {
	prefix  string // "" at the top, "metadata." within metadata
	plain   bool   // a query: values are not JSON
	members []member
	Known   []string
	Faults  *[]wire.FieldError
}

// ReadObject parses the body of a request. Invalid JSON is malformed_json; valid JSON is
// checked member by member.
func ReadObject(body []byte) (*Object, error) {
	value, err := parse(body)
	if err != nil {
		return nil, err
	}
	o := &Object{Faults: &[]wire.FieldError{}}
	if value.Kind() != '{' {
		return nil, InvalidField("", FaultType, "the body must be an object")
	}
	o.members = membersOf(value)
	o.rejectDuplicates()
	return o, nil
}

// readOptional is ReadObject for an optional body: an empty body counts as {}.
func readOptional(body []byte) (*Object, error) {
	if len(body) == 0 {
		body = []byte("{}")
	}
	return ReadObject(body)
}

// parse checks that the whole body is one JSON value in UTF-8. Duplicate names are permitted
// here and reported as faults of the request.
func parse(body []byte) (jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	value, err := d.ReadValue()
	if err != nil {
		return nil, Refuse(wire.CodeMalformedJSON)
	}
	value = slices.Clone(value)
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, Refuse(wire.CodeMalformedJSON)
	}
	return value, nil
}

// membersOf returns the members of a validated object.
func membersOf(value jsontext.Value) []member {
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var out []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return out
		}
		text := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return out
		}
		out = append(out, member{text, slices.Clone(v)})
	}
	return out
}

// elementsOf returns the elements of a validated array.
func elementsOf(value jsontext.Value) []jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var out []jsontext.Value
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return out
		}
		out = append(out, slices.Clone(v))
	}
	return out
}

// Bounds of the faults in an answer.
const (
	maxFaults    = 100
	maxFieldName = 128 // bytes of a name in the request
)

// Fault records a fault of a member.
func (o *Object) Fault(field string, f Fault) {
	if len(*o.Faults) == maxFaults {
		return
	}
	field = o.prefix + field
	if len(field) > maxFieldName {
		field = strings.ToValidUTF8(field[:maxFieldName], "")
	}
	*o.Faults = append(*o.Faults, wire.FieldError{Field: field, Code: f.Code, Message: f.Message})
}

// Faulty reports whether one of the members has a fault.
func (o *Object) Faulty(fields ...string) bool {
	return slices.ContainsFunc(*o.Faults, func(e wire.FieldError) bool {
		name, inside := strings.CutPrefix(e.Field, o.prefix)
		return inside && slices.Contains(fields, name)
	})
}

// rejectDuplicates records a fault for each member that occurs again.
func (o *Object) rejectDuplicates() {
	seen := map[string]bool{}
	for _, m := range o.members {
		if seen[m.name] {
			o.Fault(m.name, Fault{FaultDuplicate, "is there more than once"})
		}
		seen[m.name] = true
	}
}

// Done records unknown members and returns all faults.
func (o *Object) Done() error {
	o.RejectUnknown()
	if len(*o.Faults) == 0 {
		return nil
	}
	return Invalid(*o.Faults...)
}

// RejectUnknown records a fault for each member that nothing has read.
func (o *Object) RejectUnknown() {
	for _, m := range o.members {
		switch {
		case slices.Contains(o.Known, m.name):
		case o.plain:
			o.Fault(m.name, Fault{FaultUnknown, "is not a parameter of this path"})
		default:
			o.Fault(m.name, Fault{FaultUnknown, "is not a member of this request"})
		}
	}
}

// Get returns the value of a member; false: it is missing or null. For a duplicate it returns
// the first value; the fault is already recorded.
func (o *Object) Get(name string, required bool) (jsontext.Value, bool) {
	o.Known = append(o.Known, name)
	for _, m := range o.members {
		if m.name == name && (o.plain || m.value.Kind() != 'n') {
			return m.value, true
		}
	}
	if required && !o.Faulty(name) {
		o.Fault(name, Fault{FaultRequired, "is required"})
	}
	return nil, false
}

// Text reads a string; check may be nil. It returns nil when the member is
// missing, null or wrong.
func (o *Object) Text(name string, required bool, check func(string) *Fault) *string {
	value, ok := o.Get(name, required)
	if !ok {
		return nil
	}
	s, f := string(value), (*Fault)(nil)
	if !o.plain {
		s, f = textOf(value)
	}
	if f == nil && check != nil {
		f = check(s)
	}
	if f != nil {
		o.Fault(name, *f)
		return nil
	}
	return &s
}

func textOf(value jsontext.Value) (string, *Fault) {
	if value.Kind() != '"' {
		return "", &Fault{FaultType, "must be a string"}
	}
	b, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", &Fault{FaultCharacters, "must be UTF-8"}
	}
	return string(b), nil
}

// Integer reads a whole number written without fraction and exponent. It returns
// nil when the member is missing, null or wrong.
func (o *Object) Integer(name string, required bool, low, high int64) *int64 {
	value, ok := o.Get(name, required)
	if !ok {
		return nil
	}
	n, f := integerOf(value, low, high)
	if o.plain && strconv.FormatInt(n, 10) != string(value) {
		f = &Fault{FaultRange, fmt.Sprintf("must be a whole number from %d to %d", low, high)}
	}
	if f != nil {
		o.Fault(name, *f)
		return nil
	}
	return &n
}

func integerOf(value jsontext.Value, low, high int64) (int64, *Fault) {
	text := string(value)
	if value.Kind() != '0' {
		return 0, &Fault{FaultType, "must be a number"}
	}
	if strings.ContainsAny(text, ".eE") {
		return 0, &Fault{FaultInteger, "must be a whole number without fraction and exponent"}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, &Fault{FaultRange, "must be from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10)}
	}
	return n, nil
}

// Boolean reads true or false. It returns nil when the member is missing, null or wrong.
func (o *Object) Boolean(name string) *bool {
	value, ok := o.Get(name, false)
	if !ok {
		return nil
	}
	yes := string(value) == "true"
	switch {
	case yes || string(value) == "false":
	case o.plain:
		o.Fault(name, Fault{FaultEnum, "must be true or false"})
		return nil
	default:
		o.Fault(name, Fault{FaultType, "must be true or false"})
		return nil
	}
	return &yes
}

// TextMap reads an object whose values are strings. It is empty, not nil, when the
// member is missing or null.
func (o *Object) TextMap(name string) map[string]string {
	out := map[string]string{}
	value, ok := o.Get(name, false)
	if !ok {
		return out
	}
	if value.Kind() != '{' {
		o.Fault(name, Fault{FaultType, "must be an object"})
		return out
	}
	inner := &Object{prefix: o.prefix + name + ".", members: membersOf(value), Faults: o.Faults}
	inner.rejectDuplicates()
	for _, m := range inner.members {
		s, f := textOf(m.value)
		if f != nil {
			inner.Fault(m.name, *f)
			continue
		}
		out[m.name] = s
	}
	return out
}

// Object reads an object member; the caller reads its members and calls RejectUnknown at the
// end. It is empty when the member is missing, null or wrong.
func (o *Object) Object(name string, required bool) *Object {
	inner := &Object{prefix: o.prefix + name + ".", Faults: o.Faults}
	value, ok := o.Get(name, required)
	switch {
	case !ok:
	case value.Kind() != '{':
		o.Fault(name, Fault{FaultType, "must be an object"})
	default:
		inner.members = membersOf(value)
		inner.rejectDuplicates()
	}
	return inner
}

// List reads an array of strings; nil: missing or null. An empty array is not nil.
func (o *Object) List(name string, limit int, check func(string) *Fault) []string {
	value, ok := o.Get(name, false)
	if !ok {
		return nil
	}
	if value.Kind() != '[' {
		o.Fault(name, Fault{FaultType, "must be an array"})
		return nil
	}
	elements := elementsOf(value)
	if len(elements) == 0 || len(elements) > limit {
		o.Fault(name, Fault{FaultLength, "must have 1 to " + strconv.Itoa(limit) + " elements"})
		return nil
	}
	out := make([]string, 0, len(elements))
	seen := make(map[string]bool, len(elements))
	for i, e := range elements {
		s, f := textOf(e)
		if f == nil {
			f = check(s)
		}
		if f == nil && seen[s] {
			f = &Fault{FaultDuplicate, "is there more than once"}
		}
		if f != nil {
			o.Fault(name+"["+strconv.Itoa(i)+"]", *f)
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

// Fault is a fault of one value.
type Fault struct{ Code, Message string }

// Codes of field errors.
const (
	FaultRequired   = "required"
	FaultUnknown    = "unknown_field"
	FaultDuplicate  = "duplicate"
	FaultType       = "wrong_type"
	FaultInteger    = "not_an_integer"
	FaultRange      = "out_of_range"
	FaultLength     = "wrong_length"
	FaultCharacters = "invalid_characters"
	FaultFormat     = "invalid_format"
	FaultEnum       = "not_allowed"
)
