package console

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// loginPage is what the login page shows.
type loginPage struct {
	Next string
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	if s, ok := c.sessionOf(r); ok {
		if _, _, ok := c.desk.Holder(s.KeyID); ok {
			http.Redirect(w, r, localPath(r.URL.Query().Get("next")), http.StatusSeeOther)
			return
		}
	}
	c.login(w, r, http.StatusOK, nil)
}

func (c *Console) login(w http.ResponseWriter, r *http.Request, status int, n *notice) {
	next, form := localPath(r.FormValue("next")), held(r)
	if r.URL.Path == "/login" || r.URL.Path == "/language" {
		form = heldForm{To: r.PostFormValue("sent_to"), Sent: r.PostFormValue("sent")}
	}
	if place := form.page(); place != "" {
		next = place
	}
	c.write(w, r, "login", status, page{Lang: languageOf(r), Path: loginFor(next), Problem: n, Held: form, Body: loginPage{Next: next}})
}

// signIn looks at a key and begins a session. Keys have 260 random bits; failures
// are bounded so that nobody keeps the server busy with guessing.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	from, now := addressOf(r), c.now()
	if !c.room(r.Context(), from, now) {
		w.Header().Set("Retry-After", "300")
		c.login(w, r, http.StatusTooManyRequests, &notice{Key: "login.too_many"})
		return
	}
	id, ok, err := c.desk.SignIn(r.Context(), strings.TrimSpace(r.PostFormValue("key")))
	switch {
	case err != nil:
		slog.WarnContext(r.Context(), "sign-in could not be checked", slog.Any("error", err))
		c.login(w, r, http.StatusServiceUnavailable, &notice{Key: "problem.unavailable"})
		return
	case !ok:
		c.noteFailure(r.Context(), from, now)
		slog.WarnContext(r.Context(), "sign-in was refused", slog.String("address", from))
		c.login(w, r, http.StatusUnauthorized, &notice{Key: "login.refused"})
		return
	}
	cookie, err := c.begin(w, r, id)
	if err != nil {
		slog.ErrorContext(r.Context(), "sign-in failed", slog.Any("error", err))
		c.login(w, r, http.StatusInternalServerError, &notice{Key: "problem.internal"})
		return
	}
	slog.InfoContext(r.Context(), "signed in", slog.String("key", id))
	if !c.resume(w, r, id, cookie) {
		http.Redirect(w, r, localPath(r.PostFormValue("next")), http.StatusSeeOther)
	}
}

// signOut ends the sign-in in every process, so that a copy of its cookie is worth
// nothing. When that cannot be noted the cookie goes all the same, and who had it is
// told that a copy would not.
func (v *visit) signOut() error {
	c := v.console
	c.forget(v.w, v.r)
	ended := time.Unix(v.session.Began, 0).Add(c.absolute + clockSlack)
	if err := c.desk.EndSignIn(v.r.Context(), v.session.id(), v.session.KeyID, ended); err != nil {
		slog.WarnContext(v.r.Context(), "sign-out could not be noted", slog.Any("error", err))
		c.login(v.w, v.r, http.StatusServiceUnavailable, &notice{Key: "login.not_ended"})
		return nil
	}
	slog.InfoContext(v.r.Context(), "signed out", slog.String("key", v.session.KeyID))
	http.Redirect(v.w, v.r, "/login", http.StatusSeeOther)
	return nil
}

// localPath is a path of this console, / when it is none: nobody is led elsewhere.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

// Bounds of failed sign-ins.
const (
	failureSpan      = 5 * time.Minute
	failuresEach     = 10  // of one address, in failureSpan
	failuresTogether = 300 // of all, in failureSpan
)

// failuresPatience is how long what counts over all processes is waited for.
const failuresPatience = 500 * time.Millisecond

// room reports whether another try of an address is looked at: by what this process
// has seen, so that a flood is not passed on, then by what all of them have.
func (c *Console) room(ctx context.Context, from string, now time.Time) bool {
	if !c.failures.room(from, now) {
		return false
	}
	each, all, ok := c.count(ctx, from, 0)
	return !ok || each < failuresEach && all < failuresTogether
}

func (c *Console) noteFailure(ctx context.Context, from string, now time.Time) {
	c.failures.note(from, now)
	c.count(ctx, from, 1)
}

// count asks what counts over all processes; false: there is none, or it is away.
func (c *Console) count(ctx context.Context, from string, add int) (each, all int, ok bool) {
	if c.together == nil {
		return 0, 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, failuresPatience)
	defer cancel()
	each, all, err := c.together.Failed(ctx, from, add, failureSpan)
	if err != nil {
		slog.WarnContext(ctx, "failed sign-ins are counted in this process alone", slog.Any("error", err))
	}
	return each, all, err == nil
}

// failures counts sign-ins that failed, in this process.
type failures struct {
	mu    sync.Mutex
	began time.Time
	each  map[string]int
	all   int
}

func newFailures() *failures { return &failures{each: map[string]int{}} }

// turn begins to count anew when the span is over.
func (f *failures) turn(now time.Time) {
	if now.Sub(f.began) >= failureSpan || now.Before(f.began) {
		f.began, f.each, f.all = now, map[string]int{}, 0
	}
}

// room reports whether another try of an address is looked at.
func (f *failures) room(from string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn(now)
	return f.each[from] < failuresEach && f.all < failuresTogether
}

func (f *failures) note(from string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn(now)
	f.each[from]++
	f.all++
}

// addressOf is the address of the connection: what a proxy adds can be made up.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
