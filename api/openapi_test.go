package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hongbao/api/rest"
	"hongbao/wire"
)

var update = flag.Bool("update", false, "rewrite golden files")

const golden = "testdata/openapi.json"

func TestDocumentGolden(t *testing.T) {
	got, err := Document("test")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Document("test")
	if err != nil || !bytes.Equal(got, again) {
		t.Fatalf("the document is not the same twice: %v", err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says; look at the difference, then run: go test ./api -run TestDocumentGolden -update", golden)
	}
}

func loadDocument(t *testing.T) *openapi3.T {
	t.Helper()
	raw, err := Document("test")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentValid(t *testing.T) {
	doc := loadDocument(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	ids := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s %s: operation id %q is missing or there twice", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
			if op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s %s: summary or tag is missing", method, path)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s %s: parameter %s has no description", method, path, p.Value.Name)
				}
			}
			for status, r := range op.Responses.Map() {
				if r.Value.Description == nil || *r.Value.Description == "" {
					t.Errorf("%s %s: answer %s has no description", method, path, status)
				}
			}
		}
	}
}

// TestMembersDocumented: every member has a description.
func TestMembersDocumented(t *testing.T) {
	for name, s := range loadDocument(t).Components.Schemas {
		for member, m := range s.Value.Properties {
			if m.Value.Description == "" {
				t.Errorf("%s.%s has no description", name, member)
			}
		}
	}
}

// TestRoutesAndDocument: both ways, every route is documented and nothing else is.
func TestRoutesAndDocument(t *testing.T) {
	s := bareServer(t)
	served := map[string]bool{}
	for _, l := range []*listener{s.public, s.staff} {
		for _, r := range l.app.GetRoutes(true) {
			if r.Method != fiber.MethodHead {
				served[r.Method+" "+r.Path] = true
			}
		}
	}
	documented := map[string]bool{}
	for path, item := range loadDocument(t).Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+rest.FiberPath(path)] = true
		}
	}
	if a, b := names(served), names(documented); !slices.Equal(a, b) {
		t.Errorf("served:\n%s\ndocumented:\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	if len(served) < 15 {
		t.Errorf("only %d routes", len(served))
	}
}

// bareServer is a server that is only looked at.
func bareServer(t *testing.T) *Server {
	t.Helper()
	s := &Server{dir: newDirectory(nil, nil, [32]byte{}, time.Now)}
	var err error
	if s.metrics, err = newMetrics(prometheus.NewRegistry(), "test"); err != nil {
		t.Fatal(err)
	}
	s.public, s.staff = newListener(s, rest.ListenPublic), newListener(s, rest.ListenStaff)
	return s
}

func names(set map[string]bool) []string {
	var out []string
	for name := range set {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// bindOnly reads the members of an object as those of T.
func bindOnly[T any](o *rest.Object) {
	var to T
	rest.BinderOf(reflect.TypeFor[T]())(o, reflect.ValueOf(&to).Elem())
}

func bindBody[T any](body []byte) error {
	o, err := rest.ReadObject(body)
	if err != nil {
		return err
	}
	bindOnly[T](o)
	return o.Done()
}

// TestRequestsAndDocument: what the readers know and what the document says are
// the same members, and the same of them are required.
func TestRequestsAndDocument(t *testing.T) {
	doc := loadDocument(t)
	for name, read := range map[string]func(*rest.Object){
		"CreatePacket": func(o *rest.Object) { _, _ = createFrom(o) },
		"Grab":         func(o *rest.Object) { _, _ = grabFrom(o) },
		"Reason":       bindOnly[wire.Reason],
		"Retry":        bindOnly[wire.Retry],
		"MarkPaid":     bindOnly[wire.MarkPaid],
		"BulkRetry":    bindOnly[wire.BulkRetry],
		"BulkFilter":   bindOnly[wire.BulkFilter],
		"CreateKey":    bindOnly[wire.CreateKey],
		"RotateKey":    bindOnly[wire.RotateKey],
		"AddTicketKey": bindOnly[wire.AddTicketKey],
		"ResolveBreak": bindOnly[wire.ResolveBreak],
		"NewHold":      bindOnly[wire.NewHold],
		"BulkRelease":  bindOnly[wire.BulkRelease],

		"BulkConflictDecision": bindOnly[wire.BulkConflictDecision],
		"ReconcileRequest":     bindOnly[wire.ReconcileRequest],
		"BulkRefundRetry":      bindOnly[wire.BulkRefundRetry],
		"BulkRefundFilter":     bindOnly[wire.BulkRefundFilter],
	} {
		o := &rest.Object{Faults: &[]wire.FieldError{}}
		read(o)
		schema := doc.Components.Schemas[name].Value
		var members []string
		for member := range schema.Properties {
			members = append(members, member)
		}
		slices.Sort(members)
		known := slices.Compact(slices.Sorted(slices.Values(o.Known)))
		if !slices.Equal(members, known) {
			t.Errorf("%s: document has %v, the reader knows %v", name, members, known)
		}
		var required []string
		for _, f := range *o.Faults {
			if f.Code == rest.FaultRequired {
				required = append(required, f.Field)
			}
		}
		slices.Sort(required)
		documented := slices.Sorted(slices.Values(schema.Required))
		if !slices.Equal(required, documented) {
			t.Errorf("%s: document requires %v, the reader %v", name, documented, required)
		}
	}
}

// TestNumbersAndDocument: the filters of bulk retries take the numbers that the document
// allows, and no others.
func TestNumbersAndDocument(t *testing.T) {
	doc := loadDocument(t)
	for name, bind := range map[string]func(*rest.Object){"BulkFilter": bindOnly[wire.BulkFilter],
		"BulkRefundFilter": bindOnly[wire.BulkRefundFilter]} {
		seen := 0
		for member, ref := range doc.Components.Schemas[name].Value.Properties {
			if !ref.Value.Type.Is("integer") {
				continue
			}
			seen++
			if ref.Value.Min == nil || ref.Value.Max == nil {
				t.Errorf("%s.%s has no bounds", name, member)
				continue
			}
			low, high := int64(*ref.Value.Min), int64(*ref.Value.Max)
			for n, ok := range map[int64]bool{low - 1: false, low: true, high: true, high + 1: false} {
				o, err := rest.ReadObject(fmt.Appendf(nil, `{%q:%d}`, member, n))
				if err != nil {
					t.Fatal(err)
				}
				bind(o)
				if (o.Done() == nil) != ok {
					t.Errorf("%s.%s of %d: %v", name, member, n, *o.Faults)
				}
			}
		}
		if seen != 3 {
			t.Errorf("%s has %d numbers", name, seen)
		}
	}
}

// TestRequestExamples sends the documented example of each body to its reader: an example
// that is sent unchanged must not be refused.
func TestRequestExamples(t *testing.T) {
	doc := loadDocument(t)
	readers := map[string]func([]byte) error{
		"CreatePacket":    func(b []byte) error { _, err := readCreate(b); return err },
		"CreateCampaign":  bindBody[campaignRequest],
		"CreateKey":       bindBody[wire.CreateKey],
		"AddTicketKey":    bindBody[wire.AddTicketKey],
		"Grab":            func(b []byte) error { _, err := readGrab(b); return err },
		"Reason":          bindBody[wire.Reason],
		"MarkPaid":        bindBody[wire.MarkPaid],
		"BulkRetry":       bindBody[wire.BulkRetry],
		"BulkRefundRetry": bindBody[wire.BulkRefundRetry],
		"BulkRelease":     bindBody[wire.BulkRelease],
		"ResolveBreak":    bindBody[wire.ResolveBreak],
		"NewHold":         bindBody[wire.NewHold],
		"RotateKey":       bindBody[wire.RotateKey],
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			media := op.RequestBody.Value.Content.Get("application/json")
			if media.Example == nil {
				t.Errorf("%s %s: no example", method, path)
				continue
			}
			read := readers[strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")]
			if read == nil {
				continue // its members are checked against the schema
			}
			body, err := json.Marshal(media.Example)
			if err != nil {
				t.Fatal(err)
			}
			if err := read(body); err != nil {
				t.Errorf("%s %s: example %s: %v", method, path, body, err)
			}
		}
	}
}

// TestAnswerExamples requires an example of every JSON answer.
func TestAnswerExamples(t *testing.T) {
	for path, item := range loadDocument(t).Paths.Map() {
		for method, op := range item.Operations() {
			for status, r := range op.Responses.Map() {
				for kind, media := range r.Value.Content {
					if strings.HasSuffix(kind, "json") && media.Example == nil && len(media.Examples) == 0 {
						t.Errorf("%s %s: %s answer %s has no example", method, path, kind, status)
					}
				}
			}
		}
	}
}
