package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"hongbao/test/harness"
	"hongbao/test/wait"
)

// reader reads the console without a browser: it keeps cookies, follows links and submits forms,
// like a browser without scripts. It checks each page for faults.
type reader struct {
	h        *testbed
	client   *http.Client
	language string
	at       *url.URL
	doc      *html.Node
	header   http.Header // of the last response
}

// newReader returns a reader without a session that prefers a language.
func (h *testbed) newReader(language string) *reader {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	h.must(err)
	at, err := url.Parse(h.Staff)
	h.must(err)
	return &reader{h: h, client: &http.Client{Jar: jar}, language: language, at: at}
}

// signIn returns a reader that is signed in.
func (h *testbed) signIn(p harness.Owner, language string) *reader {
	h.t.Helper()
	r := h.newReader(language)
	r.signIn(p)
	return r
}

// signIn opens the console with a key.
func (r *reader) signIn(p harness.Owner) {
	r.h.t.Helper()
	r.open("/login")
	r.fill("#key", p.Token)
	r.follow(".login button")
	if r.where() != "/" {
		r.h.t.Fatalf("not signed in, but at %s: %s", r.where(), r.text("main"))
	}
}

// request sends a request as the current page would.
func (r *reader) request(method, target, body string, header http.Header) *http.Response {
	r.h.t.Helper()
	to, err := r.at.Parse(target)
	r.h.must(err)
	req, err := http.NewRequestWithContext(r.h.t.Context(), method, to.String(), strings.NewReader(body))
	r.h.must(err)
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Accept-Language", r.language)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", r.h.Staff)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	res, err := r.client.Do(req)
	r.h.must(err)
	return res
}

// load loads the page of a request and returns its status.
func (r *reader) load(method, target, body string) int64 {
	r.h.t.Helper()
	res := r.request(method, target, body, nil)
	raw, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	r.h.must(err)
	r.at, r.header = res.Request.URL, res.Header
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
		r.h.t.Fatalf("%s is no page, but %q", r.where(), kind)
	}
	r.doc, err = html.Parse(bytes.NewReader(raw))
	r.h.must(err)
	for _, fault := range faults(r.doc) {
		r.h.t.Errorf("%s in %s: %s", r.where(), r.language, fault)
	}
	return int64(res.StatusCode)
}

// open goes to a page of the console.
func (r *reader) open(path string) int64 {
	r.h.t.Helper()
	return r.load(http.MethodGet, path, "")
}

// follow follows a link or submits the form of a button.
func (r *reader) follow(selector string) int64 {
	r.h.t.Helper()
	el := r.visible(selector)
	switch el.Data {
	case "a":
		if attr(el, "href") == "" {
			r.h.t.Fatalf("%s of %s leads nowhere", selector, r.where())
		}
		return r.load(http.MethodGet, attr(el, "href"), "")
	case "button":
		return r.submit(el)
	}
	r.h.t.Fatalf("%s of %s is neither a link nor a button", selector, r.where())
	return 0
}

// submit submits the form of a button.
func (r *reader) submit(button *html.Node) int64 {
	r.h.t.Helper()
	form := enclosing(button, "form")
	if form == nil || cmp.Or(attr(button, "type"), "submit") != "submit" {
		r.h.t.Fatalf("a button of %s sends no form", r.where())
	}
	var fields []string
	for _, el := range all(form, "input, textarea, select, button") {
		if name, value, sent := r.field(el, el == button); sent {
			fields = append(fields, url.QueryEscape(name)+"="+url.QueryEscape(value))
		}
	}
	body, action := strings.Join(fields, "&"), cmp.Or(attr(button, "formaction"), attr(form, "action"))
	if strings.EqualFold(attr(form, "method"), "post") {
		return r.load(http.MethodPost, action, body)
	}
	return r.load(http.MethodGet, action+"?"+body, "")
}

// field returns what a form submits for an element.
func (r *reader) field(el *html.Node, pressed bool) (name, value string, sent bool) {
	r.h.t.Helper()
	kind := attr(el, "type")
	value = valueOf(el)
	if has(el, "required") && value == "" {
		r.h.t.Fatalf("%s of %s is required and empty: no browser sends its form", attr(el, "name"), r.where())
	}
	switch {
	case el.Data == "button":
		sent = pressed
	case kind == "checkbox" || kind == "radio":
		value, sent = cmp.Or(value, "on"), has(el, "checked")
	default:
		sent = true
	}
	name = attr(el, "name")
	return name, strings.ReplaceAll(value, "\n", "\r\n"), sent && name != "" && !has(el, "disabled")
}

// click toggles details or a checkbox.
func (r *reader) click(selector string) {
	r.h.t.Helper()
	el := r.visible(selector)
	switch kind := attr(el, "type"); {
	case el.Data == "summary":
		toggle(el.Parent, "open")
	case kind == "checkbox":
		toggle(el, "checked")
	case kind == "radio":
		for _, other := range all(enclosing(el, "form"), `input[type=radio][name="`+attr(el, "name")+`"]`) {
			unset(other, "checked")
		}
		toggle(el, "checked")
	default:
		r.h.t.Fatalf("%s of %s is nothing to click", selector, r.where())
	}
}

// fill puts text into an empty field.
func (r *reader) fill(selector, text string) {
	r.h.t.Helper()
	if old := r.value(selector); old != "" {
		r.h.t.Fatalf("%s of %s already says %q", selector, r.where(), old)
	}
	r.set(selector, text)
}

// set replaces the value of a field.
func (r *reader) set(selector, text string) {
	r.h.t.Helper()
	el := r.visible(selector)
	switch el.Data {
	case "input":
		unset(el, "value")
		el.Attr = append(el.Attr, html.Attribute{Key: "value", Val: text})
	case "textarea":
		for el.FirstChild != nil {
			el.RemoveChild(el.FirstChild)
		}
		el.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	default:
		r.h.t.Fatalf("%s of %s takes no text", selector, r.where())
	}
}

// post submits a forged form and returns the status.
func (r *reader) post(path string, form url.Values) int {
	r.h.t.Helper()
	follows := r.client.CheckRedirect
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { r.client.CheckRedirect = follows }()
	res := r.request(http.MethodPost, path, form.Encode(), nil)
	_ = res.Body.Close()
	return res.StatusCode
}

// file returns the content of a link's file.
func (r *reader) file(selector string) []byte {
	r.h.t.Helper()
	res := r.request(http.MethodGet, attr(r.visible(selector), "href"), "", nil)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	r.h.must(err)
	kind, saved := res.Header.Get("Content-Type"), res.Header.Get("Content-Disposition")
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/csv") || !strings.HasPrefix(saved, "attachment") {
		r.h.t.Errorf("%s is no file to save: %d %q %q", res.Request.URL, res.StatusCode, kind, saved)
	}
	return raw
}

// csrf returns the token of the page's forms.
func (r *reader) csrf() string {
	r.h.t.Helper()
	return r.value("input[name=csrf]")
}

// cookie returns the value of a cookie; "" without one.
func (r *reader) cookie(name string) string {
	for _, c := range r.client.Jar.Cookies(r.at) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// leave ends the session by deleting its cookie.
func (r *reader) leave() {
	r.h.t.Helper()
	r.client.Jar.SetCookies(r.at, []*http.Cookie{{Name: "hongbao_desk", Path: "/", MaxAge: -1}})
	if r.cookie("hongbao_desk") != "" {
		r.h.t.Fatal("the cookie is still there")
	}
}

// where is the path of the page, with its query.
func (r *reader) where() string { return r.at.RequestURI() }

// visible returns the first matching element, which must be visible.
func (r *reader) visible(selector string) *html.Node {
	r.h.t.Helper()
	el := r.first(selector)
	if hidden(el) {
		r.h.t.Fatalf("%s of %s is not seen", selector, r.where())
	}
	return el
}

func (r *reader) first(selector string) *html.Node {
	r.h.t.Helper()
	found := all(r.doc, selector)
	if len(found) == 0 {
		r.h.t.Fatalf("%s has no %s:\n%s", r.where(), selector, shown(r.doc))
	}
	return found[0]
}

// text returns the visible text of the first matching element.
func (r *reader) text(selector string) string {
	r.h.t.Helper()
	return shown(r.visible(selector))
}

// raw returns all text of the first matching element, also folded text.
func (r *reader) raw(selector string) string {
	r.h.t.Helper()
	return textOf(r.first(selector))
}

// texts returns the texts of all matching elements.
func (r *reader) texts(selector string) (out []string) {
	for _, el := range all(r.doc, selector) {
		out = append(out, shown(el))
	}
	return out
}

// count returns the number of matching elements.
func (r *reader) count(selector string) int { return len(all(r.doc, selector)) }

// attrs returns an attribute of all matching elements.
func (r *reader) attrs(selector, name string) (out []string) {
	for _, el := range all(r.doc, selector) {
		out = append(out, attr(el, name))
	}
	return out
}

// value returns the value of a field.
func (r *reader) value(selector string) string {
	r.h.t.Helper()
	return valueOf(r.first(selector))
}

// has fails if a part of the page lacks a text.
func (r *reader) has(selector string, wanted ...string) {
	r.h.t.Helper()
	text := r.text(selector)
	for _, want := range wanted {
		if !strings.Contains(text, folded(want)) {
			r.h.t.Errorf("%s of %s does not say %q:\n%s", selector, r.where(), want, text)
		}
	}
}

// lacks fails if an element exists.
func (r *reader) lacks(selectors ...string) {
	r.h.t.Helper()
	for _, selector := range selectors {
		if n := r.count(selector); n > 0 {
			r.h.t.Errorf("%s has %s", r.where(), selector)
		}
	}
}

// sendAgain repeats a write whose answer was lost until the first one has ended.
func (r *reader) sendAgain() {
	r.h.t.Helper()
	status := int64(http.StatusConflict)
	wait.Until(r.h.t, "the write is not under way any more", func() bool {
		status = r.follow("#again button")
		return status != http.StatusConflict
	})
	r.expect("sent again", status, http.StatusOK)
}

// expect fails if a status differs.
func (r *reader) expect(what string, got, want int64) {
	r.h.t.Helper()
	if got != want {
		r.h.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func all(root *html.Node, selector string) []*html.Node {
	return cascadia.QueryAll(root, cascadia.MustCompile(selector))
}

func has(el *html.Node, name string) bool {
	return slices.ContainsFunc(el.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func attr(el *html.Node, name string) string {
	for _, a := range el.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func unset(el *html.Node, name string) {
	el.Attr = slices.DeleteFunc(el.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func toggle(el *html.Node, name string) {
	if has(el, name) {
		unset(el, name)
		return
	}
	el.Attr = append(el.Attr, html.Attribute{Key: name})
}

// enclosing returns the nearest ancestor with a tag name.
func enclosing(el *html.Node, name string) *html.Node {
	for el = el.Parent; el != nil; el = el.Parent {
		if el.Data == name {
			return el
		}
	}
	return nil
}

func valueOf(el *html.Node) string {
	switch el.Data {
	case "textarea":
		return textOf(el)
	case "select":
		for _, option := range all(el, "option[selected]") {
			return attr(option, "value")
		}
		return attr(all(el, "option")[0], "value")
	}
	return attr(el, "value")
}

// hidden reports whether an element is invisible: by attribute, or folded.
func hidden(el *html.Node) bool {
	for ; el != nil; el = el.Parent {
		if has(el, "hidden") || el.Type == html.ElementNode && folds(el) {
			return true
		}
	}
	return false
}

// folds reports whether an element is part of closed details.
func folds(el *html.Node) bool {
	return el.Data != "summary" && el.Parent != nil && el.Parent.Data == "details" && !has(el.Parent, "open")
}

// unread are elements whose text is not displayed.
var unread = []string{"script", "style", "template", "textarea", "datalist", "head", "title", "desc"}

// inline are elements that do not separate words.
var inline = []string{"a", "b", "span", "strong", "small", "em", "code", "time"}

// shown returns the visible text of an element, words separated by one space.
func shown(el *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
			return
		case n.Type == html.ElementNode && (has(n, "hidden") || folds(n) || slices.Contains(unread, n.Data)):
			return
		}
		apart := n.Type == html.ElementNode && !slices.Contains(inline, n.Data)
		if apart {
			b.WriteByte(' ')
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
		if apart {
			b.WriteByte(' ')
		}
	}
	walk(el)
	return folded(b.String())
}

// folded collapses white space.
func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

// textOf returns all text of an element.
func textOf(el *html.Node) string {
	var b strings.Builder
	for n := range el.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// outer returns the element as HTML.
func outer(el *html.Node) string {
	var b strings.Builder
	if err := html.Render(&b, el); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.120s", b.String())
}
