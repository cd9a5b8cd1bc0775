package browser

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// faults returns accessibility faults of a page, and elements that only unescaped input creates.
func faults(doc *html.Node) (out []string) {
	say := func(what string, el *html.Node) { out = append(out, what+": "+outer(el)) }
	ids, boxes := map[string]*html.Node{}, map[string]bool{}
	for _, el := range all(doc, "[id]") {
		if ids[attr(el, "id")] != nil {
			say("id twice", el)
		}
		ids[attr(el, "id")] = el
	}
	label := func(el *html.Node) *html.Node {
		if around := enclosing(el, "label"); around != nil {
			return around
		}
		return cascadia.Query(doc, cascadia.MustCompile(fmt.Sprintf("label[for=%q]", attr(el, "id"))))
	}
	for _, el := range all(doc, "input:not([type=hidden]), select, textarea") {
		if label(el) == nil && attr(el, "aria-label") == "" {
			say("no label", el)
		}
	}
	for _, el := range all(doc, "textarea") { // several fields for a reason are distinguished by their forms
		name := ""
		if form := enclosing(el, "form"); form != nil {
			name = attr(form, "aria-label")
			if by := ids[attr(form, "aria-labelledby")]; name == "" && by != nil {
				name = textOf(by)
			}
		}
		if l := label(el); l != nil && l.FirstChild != nil {
			name += " / " + l.FirstChild.Data
		}
		if boxes[name] {
			say("two boxes of one name", el)
		}
		boxes[name] = true
	}
	for _, el := range all(doc, "a, button, summary") {
		if strings.TrimSpace(textOf(el)) == "" && attr(el, "aria-label") == "" {
			say("says nothing", el)
		}
	}
	for _, el := range all(doc, "[aria-labelledby], [aria-describedby]") {
		for _, id := range strings.Split(cmp.Or(attr(el, "aria-labelledby"), attr(el, "aria-describedby")), " ") {
			if ids[id] == nil {
				say("names nothing", el)
			}
		}
	}
	for _, one := range []string{"h1", "main"} {
		if n := len(all(doc, one)); n != 1 {
			out = append(out, fmt.Sprintf("%d of %s", n, one))
		}
	}
	for _, el := range all(doc, "th:not([scope])") {
		say("th without scope", el)
	}
	for _, el := range all(doc, harm) {
		say("made by what was put in", el)
	}
	return out
}

// harm matches elements that only unescaped hostile input creates.
const harm = "main img, main svg:not(.chart):not(.whole-bar), main script, main b, [onmouseover], [onload], [onerror]"

// TestFaults: every fault is found, and a page without faults has none.
func TestFaults(t *testing.T) {
	t.Parallel()
	const good = `<main><h1 id="t">Title</h1><form aria-labelledby="t"><label>Reason<textarea></textarea></label><label for="k">Key</label>
		<input id="k"><input type="hidden"><button aria-label="Send"></button></form><table><tr><th scope="col">A</th></tr></table>
		<svg class="chart"></svg><a href="/">Home</a></main>`
	const box = `<form><label>Reason<textarea></textarea></label></form>`
	for harm, want := range map[string][]string{
		"":                                       nil,
		`<input name="x">`:                       {"no label"},
		`<select name="x"></select>`:             {"no label"},
		`<p id="t"></p>`:                         {"id twice"},
		`<a href="/"> <i></i></a>`:               {"says nothing"},
		`<details><summary></summary></details>`: {"says nothing"},
		`<p aria-describedby="t u"></p>`:         {"names nothing"},
		box + box:                                {"two boxes"},
		`<h1>Again</h1>`:                         {"2 of h1"},
		`</main><main>`:                          {"2 of main"},
		`<table><tr><th>A</th></tr></table>`:     {"th without scope"},
		`<img src="x" onerror="alert(1)">`:       {"made by"},
		`<b>x</b>`:                               {"made by"},
		`<p onload="x"></p>`:                     {"made by"},
		`<svg></svg>`:                            {"made by"},
		`<script>x</script>`:                     {"made by"},
	} {
		doc, err := html.Parse(strings.NewReader(strings.Replace(good, "</main>", harm+"</main>", 1)))
		if err != nil {
			t.Fatal(err)
		}
		got := faults(doc)
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", harm, got, want)
		}
	}
}

// TestShown: shown returns the visible text without folded, hidden and entered text.
func TestShown(t *testing.T) {
	t.Parallel()
	doc, err := html.Parse(strings.NewReader(
		`<title>no</title><p>one <strong>wo</strong>rd</p><p hidden>no</p><dl><dt>term</dt><dd>¥1.00</dd></dl>
		<details><summary>more</summary><p>no</p></details><details open><summary>open</summary><p>seen</p></details>
		<textarea>no</textarea><script>no</script><datalist><option>no</option></datalist>`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shown(doc), "one word term ¥1.00 more open seen"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
