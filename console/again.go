package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hongbao/client"
)

// attempt is a form that was sent and not carried out. The page that it stands on
// shows it again, with what was put in and with what went wrong.
type attempt struct {
	Path                   string // where it was sent to
	Reason, Evidence, Date string
	Problem                *notice
	status                 int
	shown                  bool // the page has the form, so nothing is lost
}

// attemptKey is the name under which the request for such a page carries the attempt.
type attemptKey struct{}

// attempted is what was sent, and what the API has answered.
func (v *visit) attempted(p *client.Problem) *attempt {
	get := v.r.PostFormValue
	return &attempt{Path: v.r.URL.Path, Reason: get("reason"), Evidence: get("evidence"), Date: get("date"), Problem: noticeOf(p), status: p.Status}
}

// again answers a form that was not carried out with the page that it stands on, a
// path with its query. Errors: err itself, when there is no such page, or when
// somebody has to sign in first.
func (v *visit) again(err error, place string) error {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status == http.StatusUnauthorized {
		return err
	}
	at, wrong := url.Parse(place)
	if wrong != nil {
		return err
	}
	r := v.r.Clone(context.WithValue(v.r.Context(), attemptKey{}, v.attempted(p)))
	r.Method, r.URL, r.RequestURI = http.MethodGet, at, at.RequestURI()
	r.Body, r.ContentLength, r.Form, r.PostForm = http.NoBody, 0, nil, nil
	if _, pattern := v.console.mux.Handler(r); !strings.HasPrefix(pattern, "GET /") {
		return err
	}
	v.console.mux.ServeHTTP(v.w, r)
	return nil
}

// Invalid reports whether the API finds something wrong with a field.
func (a *attempt) Invalid(field string) bool {
	return a != nil && slices.ContainsFunc(a.Problem.Faults, func(f client.FieldError) bool { return f.Field == field })
}

// Typed is what was sent to one of these paths and not carried out, for the form
// that sends it; nil: nothing was.
func (p page) Typed(paths ...string) *attempt {
	if p.Sent == nil || !slices.Contains(paths, p.Sent.Path) {
		return nil
	}
	p.Sent.shown = true
	return p.Sent
}

// Lost is what was put in and stands in no form of the page: what it was sent about
// has moved on meanwhile, or cannot be read. It is asked for at the page's end.
func (p page) Lost() *attempt {
	if p.Sent == nil || p.Sent.shown || p.Sent.Reason+p.Sent.Evidence == "" {
		return nil
	}
	return p.Sent
}

// newlines turns the line ends of a form into those that the API takes: browsers
// send each as CRLF.
func newlines(forms ...url.Values) {
	for _, form := range forms {
		for _, values := range form {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], "\r\n", "\n")
			}
		}
	}
}
