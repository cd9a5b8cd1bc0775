package rest

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"hongbao/internal/access"
	"hongbao/wire"
)

// Route is one line of the table from which the Fiber routes and the OpenAPI document are
// generated.
type Route struct {
	ID       string // operationId
	Method   string
	Path     string // with {parameters}
	Listener ListenerKind
	Realm    Realm
	Roles    []access.Role // permitted roles; nil: all of the realm
	Tag      string
	Summary  string
	About    string
	Params   []Param
	Body     any           // zero value of the request's type; nil: the body has no members
	Optional bool          // the body is optional
	Payment  string        // payout or refund, of an operation about both
	MaxBody  int           // bytes; 0: BodyLimit
	Limit    time.Duration // of the work of an operation; 0: that of every request
	Answers  []Reply
	Problems []wire.Code // besides those of every route of its kind
	Limited  bool        // its handler checks the limit of the key itself
	Handle   func(*Request) (Answer, error)
}

// Param is a path, query or header parameter.
type Param struct {
	In       string
	Name     string
	About    string
	Required bool
	Schema   any // zero value of a type, for its schema
	Example  any
	min, max int // of an integer, when max is set
	// field has schema and example of a parameter of an operation.
	field reflect.StructField
}

// Reply is one successful answer.
type Reply struct {
	Status  int
	About   string
	Body    any    // zero value of the answer's type; nil: none
	Kind    string // content type, "" for JSON
	Headers []Param
}

// Largest returns the size of the largest body of the route.
func (r *Route) Largest() int {
	if r.MaxBody > 0 {
		return r.MaxBody
	}
	return BodyLimit
}

// Allows reports whether a role may use the route.
func (r *Route) Allows(role access.Role) bool {
	return r.Roles == nil || slices.Contains(r.Roles, role)
}

// hasQuery reports whether the route has query parameters; its handler then reads them all.
func (r *Route) hasQuery() bool {
	return slices.ContainsFunc(r.Params, func(p Param) bool { return p.In == "query" })
}

// codes returns every error code of the route: its own and those of its kind.
func (r *Route) codes() []wire.Code {
	codes := slices.Clone(r.Problems)
	if r.Realm != RealmOpen {
		codes = append(codes, wire.CodeUnauthenticated, wire.CodeForbidden, wire.CodeUnavailable, wire.CodeInvalidRequest)
	}
	if r.Realm == RealmApp {
		codes = append(codes, wire.CodeRateLimited)
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		codes = append(codes, wire.CodeMalformedJSON, wire.CodeRequestTimeout, wire.CodeBodyTooLarge, wire.CodeUnsupportedMedia)
	}
	codes = append(codes, wire.CodeInternal)
	var unique []wire.Code
	for _, row := range catalogue {
		if slices.Contains(codes, row.code) {
			unique = append(unique, row.code)
		}
	}
	return unique
}

// FiberPath turns {name} into :name.
func FiberPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Realm is the kind of key that a path requires.
type Realm int

// The realms.
const (
	RealmOpen    Realm = iota // no key
	RealmApp                  // the key of an app
	RealmStaff                // the key of a member of staff
	RealmUnknown              // any valid key, to be answered that the path does not exist
)

// The paths of the API, and of staff within it.
const (
	APIPrefix   = "/v1/"
	StaffPrefix = "/v1/staff"
)

// ListenerKind is the set of listeners of a route.
type ListenerKind int

// The listeners.
const (
	ListenPublic ListenerKind = 1 << iota
	ListenStaff
	ListenBoth = ListenPublic | ListenStaff
)

// String returns the name of one listener in metrics.
func (k ListenerKind) String() string {
	if k == ListenStaff {
		return "staff"
	}
	return "public"
}

// Limits of the work of a request.
const (
	// RequestTimeout is that of every request; a create waits for the charge within it.
	RequestTimeout = 9 * time.Second
	// ListTimeout bounds the read of a page of payments.
	ListTimeout = 8 * time.Second
	// ReadTimeout bounds a read from MySQL.
	ReadTimeout = 2 * time.Second
)

// Roles that may do what not every member of staff may.
var (
	Finance = []access.Role{access.RoleFinance}                 // decides about money
	Holders = []access.Role{access.RoleOps, access.RoleFinance} // place and release holds
)

// Names of headers.
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderReplayed       = "Idempotency-Replayed"
)

// Parameters that several routes share.
var (
	KeyParam = Param{In: "header", Name: HeaderIdempotencyKey, Required: true, Schema: "", Example: "9a2c6f1e-order-4711",
		About: "1 to 128 visible ASCII characters, chosen by the client. The same key and body return the first answer."}
	Replayed = Param{In: "header", Name: HeaderReplayed, Schema: "", Example: "true", About: "true when this is a repeat of the first " +
		"answer; absent otherwise."}
)
