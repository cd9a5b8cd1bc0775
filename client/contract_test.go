package client_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hongbao/api"
	"hongbao/client"
)

// schema is as much of JSON Schema as the test of enumerations needs.
type schema struct {
	Enum       []string
	Properties map[string]*schema
}

// operation is an operation of the OpenAPI document.
type operation struct {
	Tags      []string
	Responses map[string]struct {
		Content map[string]struct{ Example any }
	}
}

// answer is the example of the operation's first success; "" without JSON.
func (o operation) answer() (status int, body any) {
	for status = range 300 {
		if r, ok := o.Responses[strconv.Itoa(status)]; ok {
			return status, r.Content["application/json"].Example
		}
	}
	return 0, nil
}

// document is the part of the OpenAPI document that concerns a client.
type document struct {
	Paths      map[string]map[string]operation
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

// find returns the operation of a request; its path parameters are all "x".
func (d document) find(r *http.Request) (name string, o operation) {
	for path, methods := range d.Paths {
		steps, given := strings.Split(path, "/"), strings.Split(r.URL.Path, "/")
		if slices.EqualFunc(steps, given, func(step, text string) bool {
			return step == text || step[:min(1, len(step))] == "{" && text == "x"
		}) {
			if o, ok := methods[strings.ToLower(r.Method)]; ok {
				return r.Method + " " + path, o
			}
		}
	}
	return "", operation{}
}

// TestEveryOperation calls every method of the clients against a server that returns the examples of the document: every
// operation for apps or staff is called, every answer is decoded without loss, and keys of callers are sent.
func TestEveryOperation(t *testing.T) {
	d := loadDocument(t)
	called := map[string]bool{}
	var seen *http.Request
	var example any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, o := d.find(r)
		called[name], seen = true, r
		var status int
		if status, example = o.answer(); status == 0 {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(example)
	}))
	t.Cleanup(server.Close)
	app, err := client.New(server.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	staff, err := client.NewStaff(server.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []reflect.Value{reflect.ValueOf(app), reflect.ValueOf(staff)} {
		for i := range c.NumMethod() {
			name, method := c.Type().Method(i).Name, c.Method(i)
			seen, example = nil, nil
			got, keyed, err := callMethod(t, method)
			if seen == nil || example == nil {
				continue // it makes no request without arguments, or has no JSON
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if key := seen.Header.Get("Idempotency-Key"); keyed && key != "a-key" {
				t.Errorf("%s sends the key %q", name, key)
			}
			if list, ok := example.(map[string]any); ok && method.Type().Out(0).Kind() == reflect.Func {
				example = list["items"].([]any)[0]
			}
			if !reflect.DeepEqual(got, example) && method.Type().Out(0).Kind() != reflect.Map {
				t.Errorf("%s decodes\n%v, the document has\n%v", name, got, example)
			}
		}
	}
	for path, methods := range d.Paths {
		for method, o := range methods {
			name := strings.ToUpper(method) + " " + path
			if !called[name] && !slices.Contains(o.Tags, "platform") {
				t.Errorf("the client does not know %s", name)
			}
		}
	}
}

// callMethod calls a method of a client and returns its result, of an iterator the first item, as JSON; keyed: with a key.
func callMethod(t *testing.T, method reflect.Value) (result any, keyed bool, err error) {
	t.Helper()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		arg := reflect.New(in).Elem()
		switch {
		case in == reflect.TypeFor[context.Context]():
			arg = reflect.ValueOf(t.Context())
		case in == reflect.TypeFor[io.Writer]():
			arg = reflect.ValueOf(io.Discard)
		case in == reflect.TypeFor[[]client.Key]():
			arg, keyed = reflect.ValueOf(client.Key("a-key")), true
		case in == reflect.TypeFor[[]string]():
			arg = reflect.ValueOf([]string{"x"})
		case in.Kind() == reflect.String:
			arg.SetString("x")
		case in.Kind() == reflect.Func:
			arg = reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(true)} })
		}
		args = append(args, arg)
	}
	out := method.Call(args)
	if len(out) == 1 && out[0].Kind() == reflect.Func {
		for item, failed := range out[0].Seq2() {
			out = []reflect.Value{item, failed}
			break
		}
	}
	if len(out) < 2 {
		return nil, keyed, nil
	}
	if !out[1].IsNil() {
		return nil, keyed, out[1].Interface().(error)
	}
	raw, err := json.Marshal(out[0].Interface())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	return result, keyed, nil
}

// TestConstantsMatchDocument compares the enumerations of the document with the constants of package wire.
func TestConstantsMatchDocument(t *testing.T) {
	d := loadDocument(t)
	constants := constantsByType(t)
	for name, s := range map[string]*schema{
		"Code":                 d.Components.Schemas["Problem"].Properties["code"],
		"PacketStatus":         d.Components.Schemas["Packet"].Properties["status"],
		"Split":                d.Components.Schemas["Packet"].Properties["split"],
		"PayoutStatus":         d.Components.Schemas["PayoutRef"].Properties["status"],
		"CampaignStatus":       d.Components.Schemas["Campaign"].Properties["status"],
		"CampaignDayStatus":    d.Components.Schemas["CampaignDay"].Properties["status"],
		"Role":                 d.Components.Schemas["APIKey"].Properties["role"],
		"RefundKind":           d.Components.Schemas["Refund"].Properties["kind"],
		"CloseStatus":          d.Components.Schemas["CloseSummary"].Properties["status"],
		"ReconciliationStatus": d.Components.Schemas["Reconciliation"].Properties["status"],
		"Verdict":              d.Components.Schemas["Health"].Properties["status"],
	} {
		got, want := slices.Sorted(slices.Values(constants[name])), slices.Sorted(slices.Values(s.Enum))
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("constants of %s: %q, the document has %q", name, got, want)
		}
	}
}

func constantsByType(t *testing.T) map[string][]string {
	t.Helper()
	names, err := filepath.Glob("../wire/*.go")
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
