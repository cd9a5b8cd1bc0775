package rest

import (
	"encoding/json"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// refusedWell fails unless an error is one that may be returned to the client, with the fields
// of invalid_request.
func refusedWell(t *testing.T, input any, err error) {
	t.Helper()
	r := AsRefusal(err)
	if r.Code != wire.CodeMalformedJSON && r.Code != wire.CodeInvalidRequest || r.Code == wire.CodeInvalidRequest && len(r.Fields) == 0 {
		t.Fatalf("%q: %v", input, err)
	}
}

// boundTo reads a body as a value of a type of package wire.
func boundTo[T any](body []byte) (any, error) {
	o, err := ReadObject(body)
	if err != nil {
		return nil, err
	}
	var to T
	BinderOf(typeOf[T]())(o, reflect.ValueOf(&to).Elem())
	return to, o.Done()
}

// FuzzDecisions: whatever staff sends, each reader refuses it with a known code or
// reads the same from the canonical form of what it read.
func FuzzDecisions(f *testing.F) {
	for _, seed := range []string{
		`{"reason":"r"}`, `{"reason":"r","evidence":"e"}`,
		`{"reason":"r","dry_run":false,"filter":{"status":"failed","amount_min":1,"amount_max":2}}`,
		`{"reason":"r","filter":{"refund_ids":["r3q5k9v0c1m7e2u8h4r6t0000"]}}`,
		`{"reason":"r","filter":{"payout_ids":["p3q5k9v0c1m7e2u8h4r6t0000"]}}`,
		`{"reason":"r","filter":{"older_than_seconds":8589934592,"user_id":"u","packet_id":"p","order_no":"o","failure_code":"c"}}`,
		`{"date":"2026-02-17","provider":"sandbox","reason":"r"}`, `{}`, `[]`, `{"reason":"\u0000"}`, `{"reason":"a","reason":"b"}`, "\xff", ``,
		`{"reason":null}`,
	} {
		f.Add([]byte(seed))
	}
	readers := map[string]func([]byte) (any, error){
		"reason": boundTo[wire.Reason], "retry": boundTo[wire.Retry], "mark paid": boundTo[wire.MarkPaid], "bulk": boundTo[wire.BulkRetry],
		"bulk of refunds": boundTo[wire.BulkRefundRetry], "release": boundTo[wire.BulkRelease], "conflicts": boundTo[wire.BulkConflictDecision],
		"reconcile": boundTo[wire.ReconcileRequest], "break": boundTo[wire.ResolveBreak], "key": boundTo[wire.CreateKey],
		"rotate": boundTo[wire.RotateKey],
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, read := range readers {
			got, err := read(body)
			if err != nil {
				refusedWell(t, body, err)
				continue
			}
			if !json.Valid(body) {
				t.Fatalf("%s: %q: accepted", name, body)
			}
			canonical, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]any
			if err := json.Unmarshal(canonical, &members); err != nil {
				t.Fatal(err)
			}
			withoutEmpty(members)
			if canonical, err = json.Marshal(members); err != nil {
				t.Fatal(err)
			}
			if again, err := read(canonical); err != nil || !reflect.DeepEqual(again, got) {
				t.Fatalf("%s: %q reads as %+v, and its form %s as %+v, %v", name, body, got, canonical, again, err)
			}
		}
	})
}

// withoutEmpty removes what was left out: the canonical form has it as "".
func withoutEmpty(members map[string]any) {
	for name, value := range members {
		if inner, ok := value.(map[string]any); ok {
			withoutEmpty(inner)
		}
		if value == "" {
			delete(members, name)
		}
	}
}

var visibleKey = regexp.MustCompile(`^[!-~]{1,128}$`)

// FuzzIDs: what is taken for an id of a path or for an Idempotency-Key is written
// back as it came.
func FuzzIDs(f *testing.F) {
	for _, seed := range []string{"3q5k9v0c1m7e2u8h4r6t", "p3q5k9v0c1m7e2u8h4r6t0003", "p3q5k9v0c1m7e2u8h4r6t000301", "b4711", "b-1", "b+1",
		"b01", "b9223372036854775808", "小王", "a b", "%2F", "\x00", ""} {
		f.Add(seed)
	}
	app := fiber.New()
	f.Fuzz(func(t *testing.T, text string) {
		if id := NumberOf(BreakPrefix, text); id > 0 && BreakPrefix+strconv.FormatInt(id, 10) != text {
			t.Fatalf("%q is break %d", text, id)
		}
		if packet.ValidID(text) {
			if lane := packet.Lane(text, 64); lane < 0 || lane >= 64 || !PlainPath(text) {
				t.Fatalf("%q is on lane %d", text, lane)
			}
		}
		if CheckID(text) == nil && (!utf8.ValidString(text) || text == "" || len(text) > packet.MaxUserIDBytes ||
			strings.ContainsAny(text, "\x00\r\n\x7f\u0085")) {
			t.Fatalf("%q is a user", text)
		}
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().Header.Set(HeaderIdempotencyKey, text)
		c.Request().SetRequestURI("/v1/packets/" + url.PathEscape(text))
		key, err := (&Request{C: c}).IdempotencyKey()
		if visibleKey.MatchString(text) != (err == nil) || err == nil && key != text {
			t.Fatalf("%q is key %q, %v", text, key, err)
		}
		if instance := InstanceOf(c); !utf8.ValidString(instance) || strings.ContainsAny(instance, " \"<>\\^`{|}\r\n\x00") {
			t.Fatalf("%q has instance %q", text, instance)
		} else if _, err := url.Parse(instance); err != nil {
			t.Fatalf("%q has instance %q: %v", text, instance, err)
		}
	})
}

// FuzzQuery: filters that are taken can be asked of MySQL: what is compared with
// its codes is ASCII, and its times can be written.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=50&cursor=x",
		"status=failed&packet_id=p&user_id=u&order_no=o&failure_code=c&older_than_seconds=3600&amount_min=1&amount_max=2", "limit=050",
		"limit=1&limit=2", "actor=a&action=b&subject=c&from=2026-02-17T00:00:00Z&to=2026-02-18T00:00:00%2B08:00",
		"from=9999-12-31T23:59:59-23:59", "kind=%E4%B8%AD&resolved=true&reconciliation_id=s", "provider=x&date=2026-02-17&status=done", "%", "=",
		"a=%ff",
	} {
		f.Add(seed)
	}
	app := fiber.New()
	f.Fuzz(func(t *testing.T, raw string) {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().URI().SetQueryString(raw)
		for name, read := range map[string]func(o *Object) (codes []string, times []time.Time){
			"payouts": func(o *Object) ([]string, []time.Time) {
				p := filterIn[wire.RefundFilter](o)
				return []string{p.FailureCode, string(p.Status)}, []time.Time{OlderThan(time.Now(), p.OlderThanSeconds)}
			},
			"audit": func(o *Object) ([]string, []time.Time) {
				a := filterIn[wire.AuditFilter](o)
				return []string{a.Action}, []time.Time{a.From, a.To}
			},
			"breaks": func(o *Object) ([]string, []time.Time) {
				b := filterIn[wire.BreakFilter](o)
				return []string{b.Kind}, []time.Time{OlderThan(time.Now(), b.OlderThanSeconds)}
			},
			"reconciliations": func(o *Object) ([]string, []time.Time) {
				r := filterIn[wire.ReconciliationFilter](o)
				return []string{r.Provider, string(r.Status), string(r.Date)}, nil
			},
		} {
			o := queryObject((&Request{C: c}).parameters())
			codes, times := read(o)
			page := filterIn[PageParams](o)
			if err := o.Done(); err != nil {
				refusedWell(t, raw, err)
				continue
			}
			if page.Limit < 0 || page.Limit > maxLimit {
				t.Fatalf("%q of %s: limit %d", raw, name, page.Limit)
			}
			for _, code := range codes {
				if code != "" && !IsVisible(code, maxFieldName) {
					t.Fatalf("%q of %s: %q", raw, name, code)
				}
			}
			for _, at := range times {
				if !at.IsZero() && (at.Year() < 1700 || at.Year() > 9999) {
					t.Fatalf("%q of %s: %v", raw, name, at)
				}
			}
		}
	})
}

func filterIn[F any](o *Object) (f F) {
	BinderOf(typeOf[F]())(o, reflect.ValueOf(&f).Elem())
	return f
}
