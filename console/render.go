package console

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/visible"
	"hongbao/wire"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*.css assets/*.js assets/*.svg
var assetFiles embed.FS

// pageSet holds the templates of one language by page name.
type pageSet map[string]*template.Template

// page is the data of every template.
type page struct {
	Lang       language
	Path       string // of the request, to return to after a change of language
	Section    string // active part of the navigation
	Owner      string // "" without a session
	Role       access.Role
	CSRF       string
	Waiting    int64  // decisions that this person can approve
	AndMore    bool   // Waiting is a lower bound
	Done       string // message key of what was just done
	Tone       string // of Done
	Problem    *notice
	Submission *submission // a form that was submitted and not carried out
	SavedForm  savedForm   // of the login page
	Query      string      // of the search box
	Body       any
}

// Finance reports whether the role decides about payments. Roles decide here what is shown;
// the API enforces what is allowed.
func (p page) Finance() bool { return p.Role == access.RoleFinance }

// CanHold reports whether the role may hold a provider.
func (p page) CanHold() bool { return p.Role == access.RoleFinance || p.Role == access.RoleOps }

// At is the path of the page, without its query.
func (p page) At() string {
	path, _, _ := strings.Cut(p.Path, "?")
	return path
}

// CanRecall reports whether the role may recall a packet.
func (p page) CanRecall() bool { return p.CanHold() }

// Auditor reports whether the role may read the audit log.
func (p page) Auditor() bool { return p.Role == access.RoleAuditor }

func newKey() string { return "console-" + rand.Text() }

// parsePages parses every page in every language.
func parsePages() (map[language]pageSet, error) {
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	out := map[language]pageSet{}
	for _, l := range languages {
		base, err := template.New("base").Funcs(functions(l)).Option("missingkey=error").ParseFS(templateFiles, "templates/layout.html",
			"templates/parts.html")
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		out[l] = pageSet{}
		for _, file := range names {
			name := strings.TrimSuffix(path.Base(file), ".html")
			if name == "layout" || name == "parts" {
				continue
			}
			own, err := base.Clone()
			if err == nil {
				own, err = own.ParseFS(templateFiles, file)
			}
			if err != nil {
				return nil, fmt.Errorf("console: page %s: %w", name, err)
			}
			out[l][name] = own
		}
	}
	return out, nil
}

// show renders a page for a request with a session.
func (v *visit) show(name string, status int, body any) {
	p := page{Lang: v.lang, Owner: v.owner, Role: v.role, CSRF: v.session.CSRF, Problem: v.problem, Body: body,
		Section: strings.Split(v.r.URL.Path, "/")[1], Query: v.query.Get("q")}
	if v.submission != nil {
		status, p.Problem, p.Submission = v.submission.status, v.submission.Problem, v.submission
	}
	if done := v.query.Get("done"); done != "" {
		p.Done, p.Tone = "done."+done, "good"
	}
	if about, is := body.(interface {
		outcome(done, tone string) (key, toneNow string)
	}); is {
		p.Done, p.Tone = about.outcome(p.Done, p.Tone)
	}
	p.Waiting, p.AndMore = v.waiting()
	v.console.write(v.w, v.r, name, status, p)
}

// write renders a page completely before it sends the first byte.
func (c *Console) write(w http.ResponseWriter, r *http.Request, name string, status int, p page) {
	switch {
	case p.Path != "":
	case r.Method == http.MethodGet:
		p.Path = pageURL(*r.URL)
	default:
		p.Path = "/"
	}
	text, err := c.pages[p.Lang].render(name, "layout", p)
	if err != nil {
		slog.ErrorContext(r.Context(), "page could not be rendered", slog.String("page", name), slog.Any("error", err))
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client has disconnected
}

// render renders a page or a part of it. Characters that would hide or reorder text, such as
// in names and greetings, are shown as escapes.
func (s pageSet) render(page, part string, data any) (string, error) {
	var out strings.Builder
	if err := s[page].ExecuteTemplate(&out, part, data); err != nil {
		return "", err
	}
	return visible.Lines(out.String()), nil
}

// formValue encodes a text for a form field so that the browser submits it unchanged. HTML has
// no reference for C1 controls; the API refuses them, so the field contains their escapes.
func formValue(text string) template.HTML {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && visible.Hidden(r) && (r < 0x80 || r > 0x9f) {
			fmt.Fprintf(&b, "&#x%x;", r)
		} else {
			b.WriteString(template.HTMLEscapeString(string(r)))
		}
	}
	return template.HTML(b.String())
}

// pageURL returns a page's address without the parameter done.
func pageURL(at url.URL) string {
	if q, err := url.ParseQuery(at.RawQuery); err == nil && q.Has("done") {
		q.Del("done")
		at.RawQuery = q.Encode()
	}
	return at.RequestURI()
}

// refuse shows an error page for a request that reaches no page.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, status int, key string) {
	c.write(w, r, "problem", status, page{Lang: languageOf(r), Problem: &notice{Key: key}})
}

// functions are the functions of the templates.
func functions(l language) template.FuncMap {
	return template.FuncMap{
		"formValue":   formValue,
		"hides":       func(text string) bool { return visible.Text(text) != text },
		"t":           func(key string, args ...any) (string, error) { return translate(l, key, args...) },
		"known":       func(key string) bool { _, ok := catalogue[key]; return ok },
		"word":        func(kind string, value any) string { return word(l, kind, fmt.Sprint(value)) },
		"fault":       func(f wire.FieldError) string { return faultText(l, f) },
		"tag":         l.tag,
		"yuan":        yuan,
		"fen":         func(f money.Fen) string { return strconv.FormatInt(int64(f), 10) },
		"when":        when,
		"age":         func(at instant) string { return age(l, time.Since(at.UTC())) },
		"left":        func(at instant) string { return age(l, time.Until(at.UTC())) },
		"number":      grouped[int64],
		"truth":       func(v *bool) bool { return valueOr(v, false) },
		"sumAccounts": sumAccounts,
		"same":        access.SamePerson,
		"sep":         func(mark string) string { return separator(l, mark) },
		"count":       grouped[int],
		"newestFirst": newestFirst,
		"event":       func(e wire.TimelineEntry) string { return eventText(l, e) },
		"query":       func(encoded string) template.URL { return template.URL(encoded) }, // of url.Values.Encode alone
		"asset":       func(name string) string { return "/assets/" + name + "?v=" + assetVersion(name) },
		"text":        func(s *string) string { return valueOr(s, "") },
		// Without a configured Temporal UI the API returns bare paths, which are no links of the console.
		"releases": func(r wire.Releases) string { return releasesText(l, r) },
		"outside":  func(url string) bool { return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://") },
		"status": func(s wire.PayoutStatus) statusTag {
			return statusTag{Key: "status." + string(s), Tone: tones[string(s)]}
		},
		"cstatus": func(s wire.CampaignStatus) statusTag {
			return statusTag{Key: "campaign_is." + string(s), Tone: tones[string(s)]}
		},
		"dstatus": func(s wire.CampaignDayStatus) statusTag {
			return statusTag{Key: "day." + string(s), Tone: tones[string(s)]}
		},
		"pstatus": func(s wire.PacketStatus) statusTag {
			return statusTag{Key: "packet." + string(s), Tone: tones[string(s)]}
		},
		"nav": func(p page, section, href, key string) link {
			return link{Href: href, Key: key, Current: p.Owner != "" && p.Section == section}
		},
		"due":      dueOf,
		"answer":   func(p page, item wire.ApprovalItem, back string) answerPart { return answerPart{p, item, back} },
		"sized":    func(n *total, file, filter string) sizePart { return sizePart{n, file, filter} },
		"decided":  func(kind string, item wire.BulkItem) decidedPart { return decidedPart{kind, item} },
		"more":     func(path, next string) morePart { return morePart{path, next} },
		"run":      func(p page, run bulkRun) runPart { return runPart{p, run} },
		"holdThis": func(p page, scope string) holdPart { return holdPart{p, scope} },
		"breaks":   func(p page, items []wire.Break, back string) breaksPart { return breaksPart{p, items, back} },
	}
}

// Data of partial templates.
type (
	link struct {
		Href, Key string
		Current   bool
	}
	answerPart struct {
		Page page
		Item wire.ApprovalItem
		Back string
	}
	sizePart struct {
		Total        *total // nil if unavailable
		File, Filter string // path and query of the list's CSV; "" if there is none
	}
	morePart    struct{ Path, Next string }
	decidedPart struct {
		Kind string // payout or refund
		Item wire.BulkItem
	}
	runPart struct {
		Page page
		Run  bulkRun
	}
	holdPart struct {
		Page  page
		Scope string // packet or payment
	}
	breaksPart struct {
		Page  page
		Items []wire.Break
		Back  string
	}
)

// statusTag is a status as shown: its message key and its tone.
type statusTag struct{ Key, Tone string }

// tones are the colours of statuses: bad and warn need attention.
var tones = map[string]string{"failed": "bad", "returned": "bad", "unknown": "warn", "awaiting_recipient": "warn", "pending": "busy",
	"sending": "busy",
	"paid":    "good", "paid_outside": "good", "cancelled": "off", "closed": "off", "rejected": "off", "open": "good", "sold_out": "good",
	"funding": "busy", "scheduled": "busy", "closing": "busy",
	"active": "good", "paused": "warn", "ended": "off", "making": "busy", "made": "good", "missed": "bad"}

// wideMarks are the punctuation marks that Chinese text sets full width and without a space.
var wideMarks = map[string]string{":": "：", ";": "；", "": ""}

// separator returns a punctuation mark between two texts, with the space that the language sets
// after it. The mark "" stands between two sentences.
func separator(l language, mark string) string {
	if l == chinese {
		return wideMarks[mark]
	}
	return mark + " "
}

func valueOr[T any](v *T, other T) T {
	if v == nil {
		return other
	}
	return *v
}

// yuan formats an amount in yuan with two decimals, grouped by thousands.
func yuan(f money.Fen) string {
	whole, cents, _ := strings.Cut(f.String(), ".")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "−", rest
	}
	return sign + "¥" + thousands(whole) + "." + cents
}

func grouped[N int | int64](n N) string { return thousands(strconv.FormatInt(int64(n), 10)) }

// thousands inserts commas between groups of three digits.
func thousands(digits string) string {
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// defaultZone is the time zone of times until the page's script converts them.
var defaultZone = time.FixedZone("UTC+8", 8*60*60)

// instant is a time, of the API or of Go.
type instant interface{ UTC() time.Time }

// when renders a time. The page's script converts it to the browser's zone; UTC is in the title.
func when(at instant) template.HTML {
	utc := at.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s UTC">%s</time>`, utc.Format("2006-01-02T15:04:05.000Z"),
		utc.Format("2006-01-02 15:04:05.000"), utc.In(defaultZone).Format("2006-01-02 15:04:05")))
}

// age formats a duration in its two largest units.
func age(l language, d time.Duration) string {
	d = max(d, 0)
	days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60
	say := func(key string, args ...any) string {
		text, err := translate(l, key, args...)
		if err != nil {
			return ""
		}
		return text
	}
	switch {
	case days > 0:
		return say("age.days", days, hours)
	case hours > 0:
		return say("age.hours", hours, minutes)
	case minutes > 0:
		return say("age.minutes", minutes)
	}
	return say("age.seconds", int(d/time.Second))
}

// assetVersion is a prefix of a file's hash. It makes the address change with the content, so
// browsers may cache assets for a year.
func assetVersion(name string) string {
	b, err := assetFiles.ReadFile("assets/" + name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// assetKinds are the content types by file extension.
var assetKinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	b, err := assetFiles.ReadFile("assets/" + name)
	kind, ok := assetKinds[path.Ext(name)]
	if err != nil || !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(b) // the client has disconnected
}
