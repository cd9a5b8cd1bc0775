package console

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// loginPage is the data of the login page.
type loginPage struct {
	Next string
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	if s, ok := c.sessionOf(r); ok {
		if _, _, ok := c.api.KeyOwner(s.KeyID); ok {
			redirect(w, r, r.FormValue("next"))
			return
		}
	}
	c.login(w, r, http.StatusOK, nil)
}

func (c *Console) login(w http.ResponseWriter, r *http.Request, status int, n *notice) {
	next, form := localPath(r.FormValue("next")), savedFormOf(r)
	if r.URL.Path == "/login" || r.URL.Path == "/language" {
		form = savedForm{To: r.PostFormValue("sent_to"), Sent: r.PostFormValue("sent")}
	}
	if place := form.page(); place != "" {
		next = place
	}
	c.write(w, r, "login", status, page{Lang: languageOf(r), Path: loginFor(next), Problem: n, SavedForm: form, Body: loginPage{Next: next}})
}

// signIn checks a key and starts a session. A valid key is accepted before the limit of failures
// applies, because many users may share the address of a proxy.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	id, ok, err := c.api.SignIn(r.Context(), strings.TrimSpace(r.PostFormValue("key")))
	switch {
	case err != nil:
		slog.WarnContext(r.Context(), "sign-in could not be verified", slog.Any("error", err))
		c.login(w, r, http.StatusServiceUnavailable, &notice{Key: "problem.unavailable"})
		return
	case !ok:
		c.refuseSignIn(w, r)
		return
	}
	cookie, err := c.startSession(w, r, id)
	if err != nil {
		slog.ErrorContext(r.Context(), "sign-in failed", slog.Any("error", err))
		c.login(w, r, http.StatusInternalServerError, &notice{Key: "problem.internal"})
		return
	}
	slog.InfoContext(r.Context(), "signed in", slog.String("key", id))
	if !c.resume(w, r, id, cookie) {
		redirect(w, r, r.PostFormValue("next"))
	}
}

// refuseSignIn answers an invalid key. Keys have 260 random bits and cannot be guessed; the
// limit of failures keeps floods out of the log.
func (c *Console) refuseSignIn(w http.ResponseWriter, r *http.Request) {
	from := addressOf(r)
	if !c.failures.note(from, c.now()) {
		w.Header().Set("Retry-After", "300")
		c.login(w, r, http.StatusTooManyRequests, &notice{Key: "login.too_many"})
		return
	}
	slog.WarnContext(r.Context(), "sign-in refused", slog.String("address", from))
	c.login(w, r, http.StatusUnauthorized, &notice{Key: "login.refused"})
}

// signOut deletes the cookie and ends the session in every process, so that a copy of the cookie
// is invalid. If the end cannot be recorded, the page says that a copy would stay valid.
func (v *visit) signOut() error {
	c := v.console
	c.clearSession(v.w, v.r)
	ended := time.Unix(v.session.Began, 0).Add(c.absolute + clockSlack)
	if err := c.api.EndSignIn(v.r.Context(), v.session.id(), v.session.KeyID, ended); err != nil {
		slog.WarnContext(v.r.Context(), "sign-out could not be recorded", slog.Any("error", err))
		c.login(v.w, v.r, http.StatusServiceUnavailable, &notice{Key: "login.not_ended"})
		return nil
	}
	slog.InfoContext(v.r.Context(), "signed out", slog.String("key", v.session.KeyID))
	redirect(v.w, v.r, "/login")
	return nil
}

// localPath returns path if it is a path of this console, else /, to prevent open redirects.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.Contains(path, "\\") ||
		!utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return "/"
	}
	return path
}

// redirect redirects to a path of this console.
func redirect(w http.ResponseWriter, r *http.Request, path string) {
	http.Redirect(w, r, localPath(path), http.StatusSeeOther)
}

// Limits of failed sign-ins.
const (
	failureSpan      = 5 * time.Minute
	failuresEach     = 10  // per address in failureSpan
	failuresTogether = 300 // in all in failureSpan
)

// failures counts failed sign-ins in this process.
type failures struct {
	mu    sync.Mutex
	began time.Time
	each  map[string]int
	all   int
}

func newFailures() *failures { return &failures{each: map[string]int{}} }

// note counts a failure of an address; false if a limit is reached.
func (f *failures) note(from string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.began) >= failureSpan || now.Before(f.began) {
		f.began, f.each, f.all = now, map[string]int{}, 0
	}
	if f.each[from] >= failuresEach || f.all >= failuresTogether {
		return false
	}
	f.each[from]++
	f.all++
	return true
}

// addressOf returns the address of the connection; forwarding headers can be forged.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
