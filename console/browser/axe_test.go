package browser

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axeSource is axe-core, the common checker of accessibility; see testdata/axe/axe.md.
//
//go:embed testdata/axe/axe.min.js
var axeSource string

// runAxe checks the page against WCAG 2.2 A and AA and the checker's best practices. It returns
// every finding and the number of rules that applied.
const runAxe = `axe.run(document, {rules: {"target-size": {enabled: true}}, resultTypes: ["violations"]}).then((r) => [String(r.passes.length)].concat(
  r.violations.flatMap((v) => v.nodes.map((n) => v.impact + " " + v.id + ": " + v.help + ": " + n.target.join(" ") + " " + n.html.slice(0, 120) + " " + n.any.concat(n.all, n.none).map((c) => c.message).join("; ")))))`

// axe is what the checker finds wrong with the page.
func (b *tab) axe() []string {
	b.h.t.Helper()
	if !eval[bool](b, `typeof axe === "object"`) {
		eval[bool](b, axeSource+`; true`)
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](runAxe, chromedp.EvalAwaitPromise))
	if err != nil {
		b.h.t.Fatalf("axe at %s: %v", b.where(), err)
	}
	if passed := found[0]; len(passed) < 2 { // fewer than ten rules
		b.h.t.Errorf("axe has looked at next to nothing of %s: %s rules", b.where(), passed)
	}
	return found[1:]
}

// TestAxe: axe.min.js is the version named in axe.md, and it finds known faults.
func TestAxe(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(axeSource))
	const want = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
	about, err := os.ReadFile("testdata/axe/axe.md")
	if got := hex.EncodeToString(sum[:]); err != nil || got != want || !strings.Contains(string(about), want) ||
		!strings.Contains(string(about), "4.14.1") || !strings.HasPrefix(axeSource, "/*! axe v4.14.1\n") {
		t.Errorf("axe.min.js has SHA-256 %s, want %s, and axe.md has to say so: %v", got, want, err)
	}
	h := newTestbed(t, nil)
	b := h.newTab("en")
	for rule, harm := range map[string]string{
		"color-contrast":    `document.querySelector("h1").style.color = "#999"`,
		"label":             `document.querySelectorAll("label").forEach((l) => l.remove())`,
		"document-title":    `document.querySelector("title").remove()`,
		"html-has-lang":     `document.documentElement.removeAttribute("lang")`,
		"image-alt":         `document.querySelector("main").append(new Image())`,
		"region":            `document.body.append(Object.assign(document.createElement("p"), {textContent: "outside of every landmark"}))`,
		"button-name":       `document.querySelector("main button").textContent = ""`,
		"aria-hidden-focus": `document.querySelector("main form").setAttribute("aria-hidden", "true")`,
		"target-size":       `for (const name of "ab") { const e = document.createElement("button"); e.textContent = name; Object.assign(e.style, {padding: 0, border: 0, minHeight: 0, fontSize: "5px", lineHeight: 1}); document.querySelector("main").append(e); } 0`,
	} {
		b.open("/login")
		if found := b.axe(); len(found) > 0 {
			t.Errorf("the login page: %q", found)
		}
		eval[bool](b, harm+`; true`)
		if found := strings.Join(b.axe(), "\n"); !strings.Contains(found, " "+rule+": ") {
			t.Errorf("%s is not seen by axe: %q", rule, found)
		}
	}
}
