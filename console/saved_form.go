package console

import (
	"net/http"
	"net/url"
)

// maxSavedForm is the largest form, in bytes, that the login page carries. It is encoded again
// in the login form, whose limit is 64 KiB.
const maxSavedForm = 16 << 10

// savedForm is a form that was submitted after its session had ended. The login page carries it
// and the page shows it again after the sign-in. It is not carried out until it is submitted again.
type savedForm struct {
	To   string // path of the submission
	Sent string // the form as a query, without the CSRF token
}

// savedFormOf returns the form of a request; empty if no page has such a form or it is too large.
func savedFormOf(r *http.Request) savedForm {
	if r.Method != http.MethodPost || r.Header.Get("HX-Request") == "true" || r.ParseForm() != nil || r.PostForm.Get("who") == "" {
		return savedForm{}
	}
	form := url.Values{}
	for name, values := range r.PostForm {
		if name != "csrf" {
			form[name] = append([]string(nil), values...)
		}
	}
	normalizeNewlines(form)
	out := savedForm{To: r.URL.Path, Sent: form.Encode()}
	if pageOf(out.To, form) == "" || len(out.Sent) > maxSavedForm {
		return savedForm{}
	}
	return out
}

// submission returns the form to show to its owner; nil if there is none or another person
// submitted it.
func (h savedForm) submission(owner string) *submission {
	form, err := url.ParseQuery(h.Sent)
	if err != nil || h.To == "" || form.Get("who") != owner || pageOf(h.To, form) == "" {
		return nil
	}
	a := submissionOf(h.To, form)
	a.Problem, a.status, a.resumed, a.offered = &notice{Key: "problem.resumed"}, http.StatusOK, true, true
	return a
}

// page returns the address of the form's page; "" if there is none.
func (h savedForm) page() string {
	form, err := url.ParseQuery(h.Sent)
	if err != nil || h.To == "" {
		return ""
	}
	return pageOf(h.To, form)
}

// resume shows the page of the saved form after a sign-in of the same owner; false if there is
// nothing to show.
func (c *Console) resume(w http.ResponseWriter, r *http.Request, keyID, cookie string) bool {
	owner, _, ok := c.api.KeyOwner(keyID)
	a := savedForm{To: r.PostFormValue("sent_to"), Sent: r.PostFormValue("sent")}.submission(owner)
	if !ok || a == nil {
		return false
	}
	return c.showSubmission(w, withCookie(r, sessionCookie, cookie), a)
}

// showSavedForm shows the saved form of a login page if the user has signed in since, such as
// in another tab; otherwise it shows the login page again.
func (c *Console) showSavedForm(w http.ResponseWriter, r *http.Request) {
	if s, _, _, ok := c.authenticate(r); ok {
		if mine, err := r.Cookie(sessionCookie); err == nil && c.resume(w, r, s.KeyID, mine.Value) {
			return
		}
	}
	c.login(w, r, http.StatusOK, &notice{Key: "login.saved"})
}

// withCookie returns a copy of a request with a cookie set.
func withCookie(r *http.Request, name, value string) *http.Request {
	r = r.Clone(r.Context())
	others := r.Cookies()
	r.Header.Del("Cookie")
	for _, other := range others {
		if other.Name != name {
			r.AddCookie(other)
		}
	}
	r.AddCookie(&http.Cookie{Name: name, Value: value})
	return r
}

// showStaleForm shows a form again that the same person submitted with the CSRF token of a
// session before; false if another person submitted it.
func (v *visit) showStaleForm() bool {
	a := savedFormOf(v.r).submission(v.owner)
	if a == nil {
		return false
	}
	a.Problem, a.status = &notice{Key: "problem.stale"}, http.StatusForbidden
	return v.console.showSubmission(v.w, v.r, a)
}

// redirectPoll redirects a polling page to the login page, and back after the sign-in.
func redirectPoll(w http.ResponseWriter, r *http.Request) {
	next := "/"
	if at, err := url.Parse(r.Header.Get("HX-Current-URL")); err == nil && at.Path != "" {
		if next = pageOf(at.Path, nil); next == "" { // the page of a GET, not the response to a form
			next = localPath(pageURL(*at))
		}
	}
	w.Header().Set("HX-Redirect", loginFor(next)) // htmx must not insert a login form into the page
	w.WriteHeader(http.StatusUnauthorized)
}

// loginFor returns the address of the login page that redirects to next.
func loginFor(next string) string {
	if next == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(next)
}
