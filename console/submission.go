package console

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hongbao/client"
)

// attempt is a form that was sent and not carried out, or not as far as is known. The
// page that it stands on shows it again, with what was put in and with what went wrong.
type submission struct {
	Path                   string // where it was sent to
	Reason, Evidence, Date string
	Problem                *notice
	OutcomeUnknown         bool // whether it was carried out is not known
	form                   url.Values
	key                    string // the Idempotency-Key that the form keeps; "": it gets another
	status                 int
	shown                  bool // the page has the form, so nothing is lost
	offered                bool // a page that does not have it offers to send it again
	resumed                bool // somebody had to sign in first, nothing was tried
	separate               bool // it is offered beside the form, in which it would be another one
}

// submissionKey is the name under which the request for such a page carries the attempt.
type submissionKey struct{}

// attempted is what was sent, and what the API has answered.
func (v *visit) failedSubmission(p *client.Problem) *submission {
	a := submissionOf(v.r.URL.Path, v.r.PostForm)
	a.Problem, a.status = noticeOf(p), p.Status
	a.OutcomeUnknown = p.Status >= http.StatusInternalServerError || p.Code == client.CodeRequestInProgress
	if a.offered = a.OutcomeUnknown; keySpent(p) {
		a.key = ""
	}
	return a
}

// submissionOf is a form as it was sent, with its key.
func submissionOf(path string, form url.Values) *submission {
	return &submission{Path: path, Reason: form.Get("reason"), Evidence: form.Get("evidence"), Date: form.Get("date"), form: form,
		key: form.Get("key")}
}

// answered reports whether the key of what was sent is used up: under it the API
// remembers this answer, or that of other contents, or it is none at all. Every other
// answer leaves open what became of an earlier try, so that the form keeps its key,
// whatever is changed in it: the API carries it out once, and refuses other contents
// under the key of what it has carried out.
func keySpent(p *client.Problem) bool {
	switch p.Code {
	case client.CodeRequestInProgress:
		return false
	case client.CodeKeyReused, client.CodeKeyRequired:
		return true
	}
	return p.Status == http.StatusConflict || p.Status == http.StatusPaymentRequired
}

// problemOf is what the API has refused, or, of anything else that went wrong, that
// something did.
func (v *visit) problemOf(err error) *client.Problem {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p
	}
	slog.ErrorContext(v.r.Context(), "page failed", slog.String("path", v.r.URL.Path), slog.Any("error", err))
	return &client.Problem{Status: http.StatusInternalServerError, Code: client.CodeInternal}
}

// again answers a form that was not carried out with the page that it stands on.
// Errors: what the API has refused, when there is no such page, or when somebody has
// to sign in first.
func (v *visit) showFormAgain(err error) error {
	p := v.problemOf(err)
	if p.Status == http.StatusUnauthorized || !v.console.showSubmission(v.w, v.r, v.failedSubmission(p)) {
		return p
	}
	return nil
}

// showSubmission answers with the page that a form stands on, as if it were asked for;
// false: there is none. Nothing of the form is carried out.
func (c *Console) showSubmission(w http.ResponseWriter, r *http.Request, a *submission) bool {
	at, err := url.Parse(pageOf(a.Path, a.form))
	if err != nil || at.Path == "" {
		return false
	}
	r = r.Clone(context.WithValue(r.Context(), submissionKey{}, a))
	r.Method, r.URL, r.RequestURI = http.MethodGet, at, at.RequestURI()
	r.Body, r.ContentLength, r.Form, r.PostForm = http.NoBody, 0, nil, nil
	if _, pattern := c.mux.Handler(r); !strings.HasPrefix(pattern, "GET /") {
		return false
	}
	c.mux.ServeHTTP(w, r)
	return true
}

// pageOf is the page that a form stands on, by where it is sent to: a path with its
// query; "": there is none.
func pageOf(path string, form url.Values) string {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	id, action, deep := strings.Cut(rest, "/")
	switch {
	case path == "/payouts/retry", path == "/refunds/retry":
		q, err := url.ParseQuery(form.Get("filter"))
		if err != nil {
			return ""
		}
		if cursor := form.Get("cursor"); cursor != "" {
			q.Set("cursor", cursor)
		}
		return "/" + kind + "?" + q.Encode()
	case path == "/reconciliations":
		return path
	case path == "/payouts/progress", path == "/refunds/progress":
		return "/" + kind + "?status=failed"
	case !deep || action == "":
		return ""
	case kind == "payouts" || kind == "refunds" || kind == "packets" || kind == "campaigns":
		return "/" + kind + "/" + url.PathEscape(id)
	case kind == "approvals" || kind == "breaks":
		return localPath(form.Get("back"))
	case kind == "providers":
		return "/"
	}
	return ""
}

// Invalid reports whether the API finds something wrong with a field.
func (a *submission) Invalid(field string) bool {
	return a != nil && slices.ContainsFunc(a.Problem.Faults, func(f client.FieldError) bool { return f.Field == field })
}

// field is one of a form that is not shown.
type field struct{ Name, Value string }

// ownFields are those that every form that decides something has, and those that a page shows.
var ownFields = []string{"csrf", "key", "who", "reason", "evidence"}

// Rest is what was sent beside what the form shows and what every form has.
func (a *submission) Rest() (out []field) {
	for _, name := range slices.Sorted(maps.Keys(a.form)) {
		if !slices.Contains(ownFields, name) {
			for _, value := range a.form[name] {
				out = append(out, field{name, value})
			}
		}
	}
	return out
}

// Offered reports whether a page that does not have the form offers to send it again.
func (a *submission) Offered() bool { return a.offered && a.key != "" }

// Named is how many payments it is about, 0: it does not name them one by one.
func (a *submission) Named() int {
	if a.form.Get("scope") == "all" {
		return len(a.form["seen"])
	}
	return len(a.form["id"])
}

// Typed is what was sent to one of these paths and not carried out, for the form
// that sends it; nil: nothing was.
func (p page) SubmissionFor(paths ...string) *submission {
	if p.Submission == nil || p.Submission.separate || !slices.Contains(paths, p.Submission.Path) {
		return nil
	}
	p.Submission.shown = true
	return p.Submission
}

// writePart is what every form that decides something is sent with.
type writePart struct {
	CSRF, Key, Who string
	Kept           bool // Key is that of what was sent before
}

// Write makes a form one that decides something. It names the write: sent twice, it
// is made once. nil: the form was not sent before.
func (p page) Write(typed *submission) writePart {
	if typed != nil && typed.key != "" {
		return writePart{CSRF: p.CSRF, Key: typed.key, Who: p.Owner, Kept: true}
	}
	return writePart{CSRF: p.CSRF, Key: newKey(), Who: p.Owner}
}

// Lost is what was put in and stands in no form of the page: what it was sent about
// has moved on meanwhile, or cannot be read. It is asked for at the page's end.
func (p page) Unplaced() *submission {
	if p.Submission == nil || p.Submission.shown || p.Submission.Reason+p.Submission.Evidence == "" {
		return nil
	}
	return p.Submission
}

// newlines turns the line ends of a form into those that the API takes: browsers
// send each as CRLF.
func normalizeNewlines(forms ...url.Values) {
	for _, form := range forms {
		for _, values := range form {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], "\r\n", "\n")
			}
		}
	}
}
