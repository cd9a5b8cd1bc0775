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
	handle   func(*request) (answer, error)
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

// routes returns the table. Handlers get everything from the request, so it is the same for
// every server.
func (s *Server) routes() []*route {
	return slices.Concat(s.packetRoutes(), s.claimRoutes(), s.recipientRoutes(), s.authorizationRoutes(), s.userRoutes(), s.campaignRoutes(),
		s.staffCampaignRoutes(), s.overviewRoutes(),
		s.payoutRoutes(), s.refundRoutes(), s.chargeRoutes(), s.approvalRoutes(), s.auditRoutes(), s.staffPacketRoutes(), s.providerRoutes(),
		s.appProviderRoutes(), s.holdRoutes(), s.balanceRoutes(), s.reconciliationRoutes(), s.closeRoutes(), s.exportRoutes(), s.keyRoutes(), s.platformRoutes(),
		s.documentRoutes())
}
