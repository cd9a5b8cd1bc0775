// Package console serves the pages for staff, in Chinese and English. The pages read and
// write through the staff API only, so the API enforces roles, checks, approvals and audit.
package console

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/wire"
)

// Defaults of Config.
const (
	// DefaultIdle ends a session after this time without activity.
	DefaultIdle = 30 * time.Minute
	// DefaultAbsolute ends a session in any case.
	DefaultAbsolute = 10 * time.Hour
)

// StaffAPI is what the console needs of the API server.
type StaffAPI interface {
	// SignIn returns the id of the staff key of a token; false if no staff key has it.
	SignIn(ctx context.Context, token string) (keyID string, ok bool, err error)
	// KeyOwner returns owner and role of a key; false if the key is revoked or expired.
	KeyOwner(keyID string) (owner string, role access.Role, ok bool)
	// KeysLoaded reports whether staff keys have been read; until then KeyOwner knows none.
	KeysLoaded() bool
	// EndSignIn ends a session in every process within seconds. The end is remembered until
	// the given time.
	EndSignIn(ctx context.Context, id []byte, keyID string, until time.Time) error
	// SignInEnded reports whether a session was ended, in this process or another.
	SignInEnded(id []byte) bool
	// ActAs returns a transport that serves staff API requests in this process with the
	// rights of a key.
	ActAs(keyID string) http.RoundTripper
}

// Config configures a Console.
type Config struct {
	StaffAPI StaffAPI
	// SessionKeys are the same in every API process. The first encrypts sessions, each
	// decrypts them. Removing a key ends its sessions.
	SessionKeys [][32]byte
	// Idle and Absolute limit a session; 0 means the default.
	Idle, Absolute time.Duration
	// Period is the time between two reads of the overview for open pages; 0 means the default.
	Period time.Duration
}

// Console serves the pages. Use New. It is safe for concurrent use.
type Console struct {
	api      StaffAPI
	seal     *seal
	idle     time.Duration
	absolute time.Duration
	failures *failures
	pages    map[language]pageSet
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
	feed     *overviewFeed
	now      func() time.Time
}

// Folders are the path prefixes that the console serves, besides /.
var Folders = []string{"/assets", "/login", "/logout", "/language", "/payouts", "/refunds", "/charges", "/approvals", "/packets",
	"/campaigns", "/search", "/audit", "/balances",
	"/reconciliations", "/breaks", "/closes", "/holds", "/share-conflicts", "/providers", "/live"}

// New returns a console. Errors: an invalid configuration, or an invalid template.
func New(cfg Config) (*Console, error) {
	if cfg.StaffAPI == nil {
		return nil, errors.New("console: Config.StaffAPI is required")
	}
	c := &Console{api: cfg.StaffAPI, idle: cfg.Idle, absolute: cfg.Absolute, failures: newFailures(),
		mux:     http.NewServeMux(),
		origins: http.NewCrossOriginProtection(), now: time.Now}
	if c.idle == 0 {
		c.idle = DefaultIdle
	}
	if c.absolute == 0 {
		c.absolute = DefaultAbsolute
	}
	c.feed = &overviewFeed{console: c, period: cmp.Or(cfg.Period, DefaultPeriod), keepAlive: streamKeepAlive, streams: map[*stream]struct{}{}}
	var err error
	if c.seal, err = newSeal(cfg.SessionKeys); err != nil {
		return nil, err
	}
	if c.pages, err = parsePages(); err != nil {
		return nil, err
	}
	c.route()
	return c, nil
}

// route is a page: its query parameters and its handler. handle requires a session, serve
// does not.
type route struct {
	query  params
	handle func(*visit) error
	serve  http.HandlerFunc
}

// routes returns the pages by pattern.
func (c *Console) routes() map[string]route {
	return map[string]route{
		"GET /assets/{name}": {query: params{"v": verbatim}, serve: serveAsset},
		"GET /login":         {query: params{"next": verbatim}, serve: c.showLogin},
		"POST /login":        {serve: c.signIn},
		"POST /language":     {serve: c.chooseLanguage},

		"POST /logout":                    {handle: (*visit).signOut},
		"GET /{$}":                        {query: doneParam, handle: (*visit).overview},
		"GET /live":                       {handle: (*visit).streamOverview},
		"GET /payouts":                    {query: paymentParams.and(cursorParam), handle: (*visit).listPayouts},
		"GET /payouts/export.csv":         {query: paymentParams, handle: (*visit).exportPayouts},
		"POST /payouts/retry":             {handle: (*visit).retryPayouts},
		"POST /payouts/progress":          {handle: (*visit).payoutProgress},
		"GET /payouts/{id}":               {query: pollParams, handle: (*visit).showPayout},
		"POST /payouts/{id}/{action}":     {handle: (*visit).decidePayout},
		"GET /refunds":                    {query: refundParams.and(cursorParam), handle: (*visit).listRefunds},
		"GET /refunds/export.csv":         {query: refundParams, handle: (*visit).exportRefunds},
		"POST /refunds/retry":             {handle: (*visit).retryRefunds},
		"POST /refunds/progress":          {handle: (*visit).refundProgress},
		"GET /refunds/{id}":               {query: pollParams, handle: (*visit).showRefund},
		"POST /refunds/{id}/{action}":     {handle: (*visit).decideRefund},
		"GET /charges":                    {query: paymentParams.and(cursorParam), handle: (*visit).listCharges},
		"GET /charges/export.csv":         {query: paymentParams, handle: (*visit).exportCharges},
		"GET /charges/{id}":               {query: pollParams, handle: (*visit).showCharge},
		"POST /charges/{id}/{action}":     {handle: (*visit).decideCharge},
		"GET /approvals":                  {query: approvalParams.and(cursorParam, doneParam), handle: (*visit).listApprovals},
		"GET /approvals/export.csv":       {query: approvalParams, handle: (*visit).exportApprovals},
		"POST /approvals/{id}/{action}":   {handle: (*visit).answerApproval},
		"GET /packets":                    {query: packetParams.and(cursorParam), handle: (*visit).listPackets},
		"GET /packets/export.csv":         {query: packetParams, handle: (*visit).exportPackets},
		"GET /packets/{id}":               {query: cursorParam.and(doneParam), handle: (*visit).showPacket},
		"POST /packets/{id}/recall":       {handle: (*visit).recallPacket},
		"POST /packets/{id}/hold":         {handle: (*visit).holdPacket},
		"GET /holds":                      {query: holdParams.and(cursorParam), handle: (*visit).listHolds},
		"GET /holds/{id}":                 {query: doneParam, handle: (*visit).showHold},
		"POST /holds/release":             {handle: (*visit).releaseHolds},
		"GET /share-conflicts":            {query: conflictParams, handle: (*visit).showConflicts},
		"POST /share-conflicts/decide":    {handle: (*visit).decideConflicts},
		"POST /holds/{id}/release":        {handle: (*visit).releaseHold},
		"GET /campaigns":                  {query: params{"status": trimmed}.and(cursorParam), handle: (*visit).listCampaigns},
		"GET /campaigns/{id}":             {query: cursorParam.and(doneParam), handle: (*visit).showCampaign},
		"POST /campaigns/{id}/{action}":   {handle: (*visit).stopCampaign},
		"GET /search":                     {query: params{"q": verbatim}, handle: (*visit).search},
		"GET /audit":                      {query: auditParams.and(cursorParam), handle: (*visit).listAudit},
		"GET /audit/export.csv":           {query: auditParams, handle: (*visit).exportAudit},
		"GET /audit/verify":               {query: auditParams.and(cursorParam), handle: (*visit).verifyAudit},
		"GET /reconciliations":            {query: params{"status": trimmed}.and(cursorParam), handle: (*visit).listReconciliations},
		"POST /reconciliations":           {handle: (*visit).reconcile},
		"GET /reconciliations/{id}":       {query: doneParam, handle: (*visit).showReconciliation},
		"GET /breaks":                     {query: breakParams.and(cursorParam, doneParam), handle: (*visit).listBreaks},
		"GET /breaks/export.csv":          {query: breakParams, handle: (*visit).exportBreaks},
		"GET /balances":                   {handle: (*visit).listBalances},
		"GET /balances/{id}":              {query: cursorParam.and(doneParam), handle: (*visit).showBalance},
		"GET /balances/{id}/export.csv":   {handle: (*visit).exportBalance},
		"POST /balances/{id}/{action}":    {handle: (*visit).moveBalance},
		"GET /closes":                     {query: cursorParam, handle: (*visit).listCloses},
		"GET /closes/{date}":              {handle: (*visit).showClose},
		"GET /closes/{date}/export.csv":   {handle: (*visit).exportClose},
		"POST /breaks/{id}/resolve":       {handle: (*visit).resolveBreak},
		"POST /providers/{name}/{action}": {handle: (*visit).decideProvider},
	}
}

// route registers the pages.
func (c *Console) route() {
	for pattern, one := range c.routes() {
		if one.handle != nil {
			one.serve = c.signedIn(one)
		}
		c.mux.HandleFunc(pattern, c.checkInput(one))
	}
}

// checkInput refuses a request whose form cannot be parsed. For public pages it also refuses
// unknown query parameters; pages with a session check those in signedIn.
func (c *Console) checkInput(one route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var err error
		if one.handle == nil {
			_, err = readQuery(r.URL.RawQuery, one.query)
		}
		if p, ok := errors.AsType[*client.Problem](err); ok {
			c.write(w, r, "problem", p.Status, page{Lang: languageOf(r), Problem: noticeOf(p)})
			return
		}
		if r.Method == http.MethodPost && r.ParseForm() != nil {
			c.refuse(w, r, http.StatusUnprocessableEntity, "problem.unreadable_form")
			return
		}
		one.serve(w, r)
	}
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Cookie, Accept-Language")
	if err := c.origins.Check(r); err != nil {
		c.refuse(w, r, http.StatusForbidden, "problem.cross_origin")
		return
	}
	if _, pattern := c.mux.Handler(r); pattern == "" {
		c.refuse(w, r, http.StatusNotFound, "problem.not_found")
		return
	}
	c.mux.ServeHTTP(w, r)
}

// visit is one request with a valid session.
type visit struct {
	console    *Console
	w          http.ResponseWriter
	r          *http.Request
	session    session
	owner      string
	role       access.Role
	lang       language
	query      url.Values // checked against the page's parameters
	staff      *client.Staff
	inside     *http.Client
	problem    *notice     // shown above the page
	submission *submission // the form that the page shows again; nil: none
}

// insideURL is a placeholder address of the staff API in this process.
const insideURL = "http://staff.inside"

// signedIn requires a session, and for every write the CSRF token of that session.
func (c *Console) signedIn(one route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, owner, role, ok := c.authenticate(r)
		if !ok {
			if s.KeyID != "" && !c.api.KeysLoaded() {
				c.refuse(w, r, http.StatusServiceUnavailable, "problem.unavailable")
				return
			}
			if s.KeyID != "" {
				c.clearSession(w, r)
			}
			c.requireSignIn(w, r)
			return
		}
		v := &visit{console: c, w: w, r: r, session: s, owner: owner, role: role, lang: languageOf(r)}
		staff, inside, err := c.asKey(s.KeyID)
		if err != nil {
			v.fail(err)
			return
		}
		v.staff, v.inside = staff, inside
		if v.submission, _ = r.Context().Value(submissionKey{}).(*submission); v.submission == nil && !v.polls() {
			c.extendSession(w, r, s) // user activity
		}
		if r.Method == http.MethodPost {
			if subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(s.CSRF)) != 1 {
				if !v.showStaleForm() {
					c.refuse(w, r, http.StatusForbidden, "problem.csrf")
				}
				return
			}
			normalizeNewlines(r.Form, r.PostForm)
		}
		if v.query, err = readQuery(r.URL.RawQuery, one.query); err == nil {
			err = one.handle(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// authenticate returns the session of a request with owner and role of its key; false if
// there is none or it has ended. s.KeyID is empty if the cookie is invalid or expired.
func (c *Console) authenticate(r *http.Request) (s session, owner string, role access.Role, ok bool) {
	if s, ok = c.sessionOf(r); !ok {
		return session{}, "", "", false
	}
	owner, role, ok = c.api.KeyOwner(s.KeyID)
	return s, owner, role, ok
}

// asKey returns clients of the staff API in this process with the rights of a key.
func (c *Console) asKey(keyID string) (*client.Staff, *http.Client, error) {
	inside := &http.Client{Transport: c.api.ActAs(keyID)}
	staff, err := client.NewStaff(insideURL, "inside", client.WithHTTPClient(inside),
		client.WithRetry(client.Retry{Tries: 1, TryTimeout: 70 * time.Second}))
	return staff, inside, err
}

// polls reports whether the page sent this request by itself. Polling is not user activity
// and does not extend the session.
func (v *visit) polls() bool {
	return v.r.URL.Path == "/live" && v.r.Method == http.MethodGet ||
		v.r.Header.Get("HX-Request") == "true" && (v.r.Method == http.MethodGet || v.r.URL.Path == "/payouts/progress" ||
			v.r.URL.Path == "/refunds/progress")
}

// requireSignIn redirects to the login page. After the sign-in the user returns to the
// requested page or to the submitted form.
func (c *Console) requireSignIn(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/live":
		w.WriteHeader(http.StatusUnauthorized) // EventSource must not get a page instead of a stream
	case r.Header.Get("HX-Request") == "true":
		redirectPoll(w, r)
	case savedFormOf(r).To != "":
		c.login(w, r, http.StatusUnauthorized, &notice{Key: "login.saved"})
	case r.Method == http.MethodGet:
		redirect(w, r, loginFor(r.URL.RequestURI()))
	default:
		redirect(w, r, "/login")
	}
}

// fail shows an error page: a refusal of the API in the language of the page, any other
// error without its text. The user's input is shown below.
func (v *visit) fail(err error) {
	p := v.problemOf(err)
	if p.Status == http.StatusUnauthorized {
		v.console.clearSession(v.w, v.r)
		v.console.requireSignIn(v.w, v.r)
		return
	}
	switch {
	case v.submission == nil && v.r.Method == http.MethodPost:
		v.submission = v.failedSubmission(p)
	case v.submission != nil && v.submission.resumed: // the page of the form cannot be loaded
		v.submission.Problem, v.submission.status = noticeOf(p), p.Status
	}
	v.problem = noticeOf(p)
	v.show("problem", p.Status, nil)
}

// refused shows a refusal of the API (4xx) as the page's problem and returns its status.
// Other errors, and 401, are returned.
func (v *visit) refused(err error) (status int, other error) {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status == http.StatusUnauthorized || p.Status >= http.StatusInternalServerError {
		return 0, err
	}
	v.problem = noticeOf(p)
	return p.Status, nil
}

// redirectDone redirects to a page that shows what was done. Reloading that page writes
// nothing.
func (v *visit) redirectDone(path, done string) error {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	redirect(v.w, v.r, path+separator+"done="+url.QueryEscape(done))
	return nil
}

// notice is a message of the catalogue with details of the case.
type notice struct {
	Key    string
	Detail string // text of the API, if the catalogue has no message for its code
	ID     string // of the request
	Faults []wire.FieldError
}

func noticeOf(p *client.Problem) *notice {
	n := &notice{Key: "problem." + string(p.Code), ID: p.RequestID, Faults: p.Errors}
	if _, ok := catalogue[n.Key]; !ok {
		n.Key, n.Detail = "problem.other", p.Detail
	}
	return n
}
