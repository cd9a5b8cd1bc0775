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
	"hongbao/wire"
)

// submission is a submitted form that was refused or whose outcome is unknown. Its page shows
// it again with the input and the problem.
type submission struct {
	Path                   string // path of the submission
	Reason, Evidence, Date string
	Outcome                string // of a break
	Problem                *notice
	OutcomeUnknown         bool // it may have been carried out
	form                   url.Values
	key                    string // Idempotency-Key that the form keeps; "": it gets a new one
	status                 int
	shown                  bool // the page shows the form
	offered                bool // a page without the form offers to submit it again
	resumed                bool // restored after a sign-in, nothing was carried out
	separate               bool // offered outside its form, because the form would change it
}

// submissionKey is the context key of a submission.
type submissionKey struct{}

// failedSubmission returns the form of this request with the API's problem.
func (v *visit) failedSubmission(p *client.Problem) *submission {
	a := submissionOf(v.r.URL.Path, v.r.PostForm)
	a.Problem, a.status = noticeOf(p), p.Status
	a.OutcomeUnknown = p.Status >= http.StatusInternalServerError || p.Code == wire.CodeRequestInProgress
	if a.offered = a.OutcomeUnknown; keySpent(p) {
		a.key = ""
	}
	return a
}

// submissionOf returns a form as submitted, with its Idempotency-Key.
func submissionOf(path string, form url.Values) *submission {
	return &submission{Path: path, Reason: form.Get("reason"), Evidence: form.Get("evidence"), Date: form.Get("date"),
		Outcome: form.Get("outcome"), form: form, key: form.Get("key")}
}

// keySpent reports whether the form needs a new Idempotency-Key: the API has stored a response
// under the old one, or the key is invalid. After any other response the outcome of an earlier
// submission is open, so the form keeps its key: the API carries it out once, and refuses
// other contents under a key that it has carried out.
func keySpent(p *client.Problem) bool {
	switch p.Code {
	case wire.CodeRequestInProgress:
		return false
	case wire.CodeKeyReused, wire.CodeKeyRequired:
		return true
	}
	return p.Status == http.StatusConflict || p.Status == http.StatusPaymentRequired
}

// problemOf returns the API's problem in err, or an internal error for any other err.
func (v *visit) problemOf(err error) *client.Problem {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p
	}
	slog.ErrorContext(v.r.Context(), "page failed", slog.String("path", v.r.URL.Path), slog.Any("error", err))
	return &client.Problem{Problem: wire.Problem{Status: http.StatusInternalServerError, Code: wire.CodeInternal}}
}

// showFormAgain answers a refused form with its page. It returns the API's problem if there is
// no such page or a sign-in is required.
func (v *visit) showFormAgain(err error) error {
	p := v.problemOf(err)
	if p.Status == http.StatusUnauthorized || !v.console.showSubmission(v.w, v.r, v.failedSubmission(p)) {
		return p
	}
	return nil
}

// showSubmission renders the page of a form like a GET; false if there is none. The form is not
// carried out.
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

// pageOf returns path and query of the page that has a form, by the form's action; "" if there
// is none.
func pageOf(path string, form url.Values) string {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	id, action, deep := strings.Cut(rest, "/")
	switch {
	case path == "/payouts/retry", path == "/refunds/retry", path == "/holds/release",
		path == "/share-conflicts/decide":
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
	case kind == "payouts" || kind == "refunds" || kind == "charges" || kind == "packets" || kind == "campaigns" || kind == "holds" ||
		kind == "balances":
		return "/" + kind + "/" + url.PathEscape(id)
	case kind == "approvals" || kind == "breaks":
		return localPath(form.Get("back"))
	case kind == "providers":
		return "/"
	}
	return ""
}

// Invalid reports whether the API refused a field.
func (a *submission) Invalid(field string) bool {
	return a != nil && slices.ContainsFunc(a.Problem.Faults, func(f wire.FieldError) bool { return f.Field == field })
}

// Field is the value of a field as submitted.
func (a *submission) Field(name string) string { return a.form.Get(name) }

// field is a hidden field of a form.
type field struct{ Name, Value string }

// ownFields are the fields of every decision form, and those that a page shows.
var ownFields = []string{"csrf", "key", "who", "reason", "evidence"}

// Rest returns the submitted fields except ownFields.
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

// Offered reports whether a page without the form offers to submit it again.
func (a *submission) Offered() bool { return a.offered && a.key != "" }

// Named is how many payments the form lists by id; 0 if it does not list them.
func (a *submission) Named() int {
	if a.form.Get("scope") == "all" {
		return len(a.form["seen"])
	}
	return len(a.form["id"])
}

// SubmissionFor returns the failed submission to one of these paths, for the form with this
// action; nil if there is none.
func (p page) SubmissionFor(paths ...string) *submission {
	if p.Submission == nil || p.Submission.separate || !slices.Contains(paths, p.Submission.Path) {
		return nil
	}
	p.Submission.shown = true
	return p.Submission
}

// writePart holds the hidden fields of every decision form.
type writePart struct {
	CSRF, Key, Who string
	Kept           bool // Key is the key of an earlier submission
}

// Write returns the hidden fields of a decision form. Its Idempotency-Key makes a double
// submission take effect once. nil: the form was not submitted before.
func (p page) Write(typed *submission) writePart {
	if typed != nil && typed.key != "" {
		return writePart{CSRF: p.CSRF, Key: typed.key, Who: p.Owner, Kept: true}
	}
	return writePart{CSRF: p.CSRF, Key: newKey(), Who: p.Owner}
}

// Unplaced returns the submission that no form of the page shows, because its subject has
// changed or is unavailable. The layout calls it at the end of the page and shows the input.
func (p page) Unplaced() *submission {
	if p.Submission == nil || p.Submission.shown || p.Submission.Reason+p.Submission.Evidence == "" {
		return nil
	}
	return p.Submission
}

// normalizeNewlines replaces CRLF, which browsers send, by LF, which the API accepts.
func normalizeNewlines(forms ...url.Values) {
	for _, form := range forms {
		for _, values := range form {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], "\r\n", "\n")
			}
		}
	}
}
