package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"hongbao/internal/access"
	"hongbao/wire"
)

// route is one line of the table from which the Fiber routes and the OpenAPI document are
// generated.
type route struct {
	id       string // operationId
	method   string
	path     string // with {parameters}
	listener listenerKind
	realm    realm
	roles    []access.Role // permitted roles; nil: all of the realm
	tag      string
	summary  string
	about    string
	params   []param
	body     any           // zero value of the request's type; nil: the body has no members
	optional bool          // the body is optional
	payment  string        // payout or refund, of an operation about both
	maxBody  int           // bytes; 0: bodyLimit
	limit    time.Duration // of the work of an operation; 0: that of every request
	answers  []reply
	problems []wire.Code // besides those of every route of its kind
	limited  bool        // its handler checks the limit of the key itself
	handle   func(*Request) (answer, error)
}

// param is a path, query or header parameter.
type param struct {
	in       string
	name     string
	about    string
	required bool
	schema   any // zero value of a type, for its schema
	example  any
	min, max int // of an integer, when max is set
	// field has schema and example of a parameter of an operation.
	field reflect.StructField
}

// reply is one successful answer.
type reply struct {
	status  int
	about   string
	body    any    // zero value of the answer's type; nil: none
	kind    string // content type, "" for JSON
	headers []param
}

// largest returns the size of the largest body of the route.
func (r *route) largest() int {
	if r.maxBody > 0 {
		return r.maxBody
	}
	return bodyLimit
}

func (r *route) allows(role access.Role) bool {
	return r.roles == nil || slices.Contains(r.roles, role)
}

// hasQuery reports whether the route has query parameters; its handler then reads them all.
func (r *route) hasQuery() bool {
	return slices.ContainsFunc(r.params, func(p param) bool { return p.in == "query" })
}

// codes returns every error code of the route: its own and those of its kind.
func (r *route) codes() []wire.Code {
	codes := slices.Clone(r.problems)
	if r.realm != realmOpen {
		codes = append(codes, wire.CodeUnauthenticated, wire.CodeForbidden, wire.CodeUnavailable, wire.CodeInvalidRequest)
	}
	if r.realm == realmApp {
		codes = append(codes, wire.CodeRateLimited)
	}
	if r.method == http.MethodPost || r.method == http.MethodPut {
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

// fiberPath turns {name} into :name.
func fiberPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// realm is the kind of key that a path requires.
type realm int

const (
	realmOpen    realm = iota // no key
	realmApp                  // the key of an app
	realmStaff                // the key of a member of staff
	realmUnknown              // any valid key, to be answered that the path does not exist
)

const (
	apiPrefix   = "/v1/"
	staffPrefix = "/v1/staff"
)

// listenerKind is the set of listeners of a route.
type listenerKind int

const (
	listenPublic listenerKind = 1 << iota
	listenStaff
	listenBoth = listenPublic | listenStaff
)

// String returns the name of one listener in metrics.
func (k listenerKind) String() string {
	if k == listenStaff {
		return "staff"
	}
	return "public"
}

// Limits of the work of a request.
const (
	// requestTimeout is that of every request; a create waits for the charge within it.
	requestTimeout = 9 * time.Second
	// listTimeout bounds the read of a page of payments.
	listTimeout = 8 * time.Second
	// readTimeout bounds a read from MySQL.
	readTimeout = 2 * time.Second
)

// Roles that may do what not every member of staff may.
var (
	finance = []access.Role{access.RoleFinance}                 // decides about money
	holders = []access.Role{access.RoleOps, access.RoleFinance} // place and release holds
)

// Names of headers.
const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotency-Replayed"
)

// Parameters that several routes share.
var (
	keyParam = param{in: "header", name: headerIdempotencyKey, required: true, schema: "", example: "9a2c6f1e-order-4711",
		about: "1 to 128 visible ASCII characters, chosen by the client. The same key and body return the first answer."}
	replayed = param{in: "header", name: headerReplayed, schema: "", example: "true", about: "true when this is a repeat of the first " +
		"answer; absent otherwise."}
)
