package api

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

// object reads the members of a request and collects all faults, so that the client gets them
// at once. Names are compared exactly. A null member counts as omitted.
type object struct {
	prefix  string // "" at the top, "metadata." within metadata
	plain   bool   // a query: values are not JSON
	members []member
	known   []string
	faults  *[]wire.FieldError
}

// readObject parses the body of a request. Invalid JSON is malformed_json; valid JSON is
// checked member by member.
func readObject(body []byte) (*object, error) {
	value, err := parse(body)
	if err != nil {
		return nil, err
	}
	o := &object{faults: &[]wire.FieldError{}}
	if value.Kind() != '{' {
		return nil, invalidField("", faultType, "the body must be an object")
	}
	o.members = membersOf(value)
	o.rejectDuplicates()
	return o, nil
}

// readOptional is readObject for an optional body: an empty body counts as {}.
func readOptional(body []byte) (*object, error) {
	if len(body) == 0 {
		body = []byte("{}")
	}
	return readObject(body)
}

// parse checks that the whole body is one JSON value in UTF-8. Duplicate names are permitted
// here and reported as faults of the request.
func parse(body []byte) (jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	value, err := d.ReadValue()
	if err != nil {
		return nil, refuse(wire.CodeMalformedJSON)
	}
	value = slices.Clone(value)
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, refuse(wire.CodeMalformedJSON)
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

// fault records a fault of a member.
func (o *object) fault(field string, f fault) {
	if len(*o.faults) == maxFaults {
		return
	}
	field = o.prefix + field
	if len(field) > maxFieldName {
		field = strings.ToValidUTF8(field[:maxFieldName], "")
	}
	*o.faults = append(*o.faults, wire.FieldError{Field: field, Code: f.code, Message: f.message})
}

// faulty reports whether one of the members has a fault.
func (o *object) faulty(fields ...string) bool {
	return slices.ContainsFunc(*o.faults, func(e wire.FieldError) bool {
		name, inside := strings.CutPrefix(e.Field, o.prefix)
		return inside && slices.Contains(fields, name)
	})
}

// rejectDuplicates records a fault for each member that occurs again.
func (o *object) rejectDuplicates() {
	seen := map[string]bool{}
	for _, m := range o.members {
		if seen[m.name] {
			o.fault(m.name, fault{faultDuplicate, "is there more than once"})
		}
		seen[m.name] = true
	}
}

// done records unknown members and returns all faults.
func (o *object) done() error {
	o.rejectUnknown()
	if len(*o.faults) == 0 {
		return nil
	}
	return invalid(*o.faults...)
}

// rejectUnknown records a fault for each member that nothing has read.
func (o *object) rejectUnknown() {
	for _, m := range o.members {
		switch {
		case slices.Contains(o.known, m.name):
		case o.plain:
			o.fault(m.name, fault{faultUnknown, "is not a parameter of this path"})
		default:
			o.fault(m.name, fault{faultUnknown, "is not a member of this request"})
		}
	}
}

// get returns the value of a member; false: it is missing or null. For a duplicate it returns
// the first value; the fault is already recorded.
func (o *object) get(name string, required bool) (jsontext.Value, bool) {
	o.known = append(o.known, name)
	for _, m := range o.members {
		if m.name == name && (o.plain || m.value.Kind() != 'n') {
			return m.value, true
		}
	}
	if required && !o.faulty(name) {
		o.fault(name, fault{faultRequired, "is required"})
	}
	return nil, false
}

// text reads a string; check may be nil. It returns nil when the member is
// missing, null or wrong.
func (o *object) text(name string, required bool, check func(string) *fault) *string {
	value, ok := o.get(name, required)
	if !ok {
		return nil
	}
	s, f := string(value), (*fault)(nil)
	if !o.plain {
		s, f = textOf(value)
	}
	if f == nil && check != nil {
		f = check(s)
	}
	if f != nil {
		o.fault(name, *f)
		return nil
	}
	return &s
}

func textOf(value jsontext.Value) (string, *fault) {
	if value.Kind() != '"' {
		return "", &fault{faultType, "must be a string"}
	}
	b, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", &fault{faultCharacters, "must be UTF-8"}
	}
	return string(b), nil
}

// integer reads a whole number written without fraction and exponent. It returns
// nil when the member is missing, null or wrong.
func (o *object) integer(name string, required bool, low, high int64) *int64 {
	value, ok := o.get(name, required)
	if !ok {
		return nil
	}
	n, f := integerOf(value, low, high)
	if o.plain && strconv.FormatInt(n, 10) != string(value) {
		f = &fault{faultRange, fmt.Sprintf("must be a whole number from %d to %d", low, high)}
	}
	if f != nil {
		o.fault(name, *f)
		return nil
	}
	return &n
}

func integerOf(value jsontext.Value, low, high int64) (int64, *fault) {
	text := string(value)
	if value.Kind() != '0' {
		return 0, &fault{faultType, "must be a number"}
	}
	if strings.ContainsAny(text, ".eE") {
		return 0, &fault{faultInteger, "must be a whole number without fraction and exponent"}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, &fault{faultRange, "must be from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10)}
	}
	return n, nil
}

// boolean reads true or false. It returns nil when the member is missing, null or wrong.
func (o *object) boolean(name string) *bool {
	value, ok := o.get(name, false)
	if !ok {
		return nil
	}
	yes := string(value) == "true"
	switch {
	case yes || string(value) == "false":
	case o.plain:
		o.fault(name, fault{faultEnum, "must be true or false"})
		return nil
	default:
		o.fault(name, fault{faultType, "must be true or false"})
		return nil
	}
	return &yes
}

// textMap reads an object whose values are strings. It is empty, not nil, when the
// member is missing or null.
func (o *object) textMap(name string) map[string]string {
	out := map[string]string{}
	value, ok := o.get(name, false)
	if !ok {
		return out
	}
	if value.Kind() != '{' {
		o.fault(name, fault{faultType, "must be an object"})
		return out
	}
	inner := &object{prefix: o.prefix + name + ".", members: membersOf(value), faults: o.faults}
	inner.rejectDuplicates()
	for _, m := range inner.members {
		s, f := textOf(m.value)
		if f != nil {
			inner.fault(m.name, *f)
			continue
		}
		out[m.name] = s
	}
	return out
}

// object reads an object member; the caller reads its members and calls rejectUnknown at the
// end. It is empty when the member is missing, null or wrong.
func (o *object) object(name string, required bool) *object {
	inner := &object{prefix: o.prefix + name + ".", faults: o.faults}
	value, ok := o.get(name, required)
	switch {
	case !ok:
	case value.Kind() != '{':
		o.fault(name, fault{faultType, "must be an object"})
	default:
		inner.members = membersOf(value)
		inner.rejectDuplicates()
	}
	return inner
}

// list reads an array of strings; nil: missing or null. An empty array is not nil.
func (o *object) list(name string, limit int, check func(string) *fault) []string {
	value, ok := o.get(name, false)
	if !ok {
		return nil
	}
	if value.Kind() != '[' {
		o.fault(name, fault{faultType, "must be an array"})
		return nil
	}
	elements := elementsOf(value)
	if len(elements) == 0 || len(elements) > limit {
		o.fault(name, fault{faultLength, "must have 1 to " + strconv.Itoa(limit) + " elements"})
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
			f = &fault{faultDuplicate, "is there more than once"}
		}
		if f != nil {
			o.fault(name+"["+strconv.Itoa(i)+"]", *f)
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

// fault is a fault of one value.
type fault struct{ code, message string }

// Codes of field errors.
const (
	faultRequired   = "required"
	faultUnknown    = "unknown_field"
	faultDuplicate  = "duplicate"
	faultType       = "wrong_type"
	faultInteger    = "not_an_integer"
	faultRange      = "out_of_range"
	faultLength     = "wrong_length"
	faultCharacters = "invalid_characters"
	faultFormat     = "invalid_format"
	faultEnum       = "not_allowed"
)
