package console

import (
	"net/http"
	"net/url"
)

// maxSavedForm is the largest form, in bytes, that the login page carries: it comes back
// within one that is encoded once more, of 64 KiB at most.
const maxSavedForm = 16 << 10

// savedForm is a form that somebody has sent whose sign-in had ended. The login page
// carries it, and after it the form is shown again; it is never carried out by that.
type savedForm struct {
	To   string // where it was sent to
	Sent string // what was sent, as a query, without the token of the sign-in
}

// held is the form that a request has sent; the empty one when it was none that
// stands on a page, or is too large.
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

// attempt is the form as it is shown to who has sent it; nil: there is none, or it
// was somebody else's.
func (h savedForm) submission(owner string) *submission {
	form, err := url.ParseQuery(h.Sent)
	if err != nil || h.To == "" || form.Get("who") != owner || pageOf(h.To, form) == "" {
		return nil
	}
	a := submissionOf(h.To, form)
	a.Problem, a.status, a.resumed, a.offered = &notice{Key: "problem.resumed"}, http.StatusOK, true, true
	return a
}

// page is where the form stands; "": there is none.
func (h savedForm) page() string {
	form, err := url.ParseQuery(h.Sent)
	if err != nil || h.To == "" {
		return ""
	}
	return pageOf(h.To, form)
}

// resume shows the page of what was sent when the sign-in had ended to who has signed
// in now; false: there is nothing to show.
func (c *Console) resume(w http.ResponseWriter, r *http.Request, keyID, cookie string) bool {
	owner, _, ok := c.api.KeyOwner(keyID)
	a := savedForm{To: r.PostFormValue("sent_to"), Sent: r.PostFormValue("sent")}.submission(owner)
	if !ok || a == nil {
		return false
	}
	return c.showSubmission(w, withCookie(r, sessionCookie, cookie), a)
}

// showSavedForm shows what a login page carries: to who has signed in meanwhile, as in
// another tab, its form, to everybody else that page again.
func (c *Console) showSavedForm(w http.ResponseWriter, r *http.Request) {
	if s, _, _, ok := c.authenticate(r); ok {
		if mine, err := r.Cookie(sessionCookie); err == nil && c.resume(w, r, s.KeyID, mine.Value) {
			return
		}
	}
	c.login(w, r, http.StatusOK, &notice{Key: "login.saved"})
}

// withCookie is a request as if it had come with a cookie.
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

// stale answers a form of this person that belongs to another sign-in, as after one
// in another tab: it is shown again, under this one. false: it is none of this person.
func (v *visit) showStaleForm() bool {
	a := savedFormOf(v.r).submission(v.owner)
	if a == nil {
		return false
	}
	a.Problem, a.status = &notice{Key: "problem.stale"}, http.StatusForbidden
	return v.console.showSubmission(v.w, v.r, a)
}

// redirectPoll leads a page that asks by itself to the login, and from there back to it.
func redirectPoll(w http.ResponseWriter, r *http.Request) {
	next := "/"
	if at, err := url.Parse(r.Header.Get("HX-Current-URL")); err == nil && at.Path != "" {
		if next = pageOf(at.Path, nil); next == "" { // one that was asked for, not the answer to a form
			next = localPath(pageURL(*at))
		}
	}
	w.Header().Set("HX-Redirect", loginFor(next)) // a part of a page must not become a login form
	w.WriteHeader(http.StatusUnauthorized)
}

// loginFor is the login page that leads to a page.
func loginFor(next string) string {
	if next == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(next)
}
