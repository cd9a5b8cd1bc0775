package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"hongbao/internal/devstack"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// tab is a private browser window. Any complaint of its pages, such as a refused script or a
// dialog, fails the test.
type tab struct {
	h   *testbed
	ctx context.Context
}

// tabLimit limits one test in a browser; wait.Limit limits one step of it.
const tabLimit = 10 * time.Minute

// zone is the time zone of the browser. It differs from the server's and has no daylight saving
// time.
const zone = "Asia/Tokyo"

// chrome is the browser of this test binary, started when it is first needed. Each
// tab has cookies, storage and a language of its own, as a private window has.
var chrome struct {
	once  sync.Once
	ctx   context.Context
	agent string // its User-Agent
	err   error
	stop  func()
}

// unusedFeatures would start a renderer process for nearly every page that a test opens. chromedp
// disables the first two by default.
const unusedFeatures = "Translate,BlinkGenPropertyTrees,BackForwardCache,SpareRendererForSitePerProcess,MediaRouter,OptimizationHints"

// startChrome starts the browser.
func startChrome() {
	program := ""
	for _, name := range devstack.Browsers {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		chrome.err = errors.New("no browser is installed: make setup installs the Debian package chromium")
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ExecPath(program),
		chromedp.WindowSize(1280, 900), chromedp.Flag("process-per-site", true), chromedp.Flag("disable-features", unusedFeatures))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(alloc)
	chrome.ctx, chrome.stop = ctx, func() { stop(); stopAlloc() }
	version, err := chromedp.CallBrowser(ctx, browser.GetVersion, cdp.Empty{})
	if err != nil {
		chrome.err = err
		return
	}
	chrome.agent = version.UserAgent
}

// newTab opens a private window that prefers a language.
func (h *testbed) newTab(language string) *tab {
	h.t.Helper()
	chrome.once.Do(startChrome)
	h.must(chrome.err)
	own, closeTab := chromedp.NewContext(chrome.ctx, chromedp.WithNewBrowserContext())
	h.t.Cleanup(closeTab)
	if err := chromedp.Listen(own, func(event any) { reportEvent(h.t, event) }); err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(own, wait.Scaled(tabLimit))
	h.t.Cleanup(cancel)
	b := &tab{h: h, ctx: ctx}
	command(b, log.Enable, cdp.Empty{})
	command(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // beside other tabs
	command(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
	command(b, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: chrome.agent, AcceptLanguage: language})
	return b
}

// reportEvent fails the test for an event that no page of the console may cause.
func reportEvent(t *testing.T, event any) {
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		t.Errorf("a page has opened a dialog: %s", e.Message)
	case *runtime.EventExceptionThrown:
		t.Errorf("a script failed: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if text := e.Entry.Text; string(e.Entry.Source) == "security" || strings.Contains(text, "Content Security Policy") {
			t.Errorf("the browser complains: %s", text)
		}
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.h.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit())
	defer cancel()
	err := chromedp.Do(ctx, steps...)
	for replaced(err) {
		err = chromedp.Do(ctx, steps...)
	}
	if err != nil {
		b.h.t.Fatalf("%v\nat %s", err, b.where())
	}
}

// replaced reports whether a step failed because a live update had just replaced its element; the
// step is then repeated.
func replaced(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) &&
		(strings.HasPrefix(refused.Message, "Could not find node") || strings.HasPrefix(refused.Message, "No node with given id"))
}

// leads runs steps that load another page and returns its status.
func (b *tab) leads(steps ...chromedp.Action[chromedp.Void]) int64 {
	b.h.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit())
	defer cancel()
	res, err := chromedp.RunResponse(ctx, steps...)
	for replaced(err) {
		res, err = chromedp.RunResponse(ctx, steps...)
	}
	if err != nil {
		b.h.t.Fatalf("%v\nat %s", err, b.where())
	}
	if res == nil {
		b.h.t.Fatalf("no page was loaded, still at %s", b.where())
	}
	return res.Status
}

// open loads a page of the console.
func (b *tab) open(path string) int64 {
	b.h.t.Helper()
	return b.leads(chromedp.Navigate(b.h.Staff + path))
}

// follow clicks a link or button that leads to another page.
func (b *tab) follow(selector string) int64 {
	b.h.t.Helper()
	return b.leads(chromedp.Click(chromedp.CSS(selector)))
}

// fill pastes text into an empty field; keys types.
func (b *tab) fill(selector, text string) {
	b.h.t.Helper()
	b.do(chromedp.Focus(chromedp.CSS(selector)))
	command(b, input.InsertText, input.InsertTextParams{Text: text})
}

// signIn signs in with a key.
func (b *tab) signIn(p harness.Owner) {
	b.h.t.Helper()
	b.open("/login")
	b.fill("#key", p.Token)
	b.follow(".login button")
	if b.where() != "/" {
		b.h.t.Fatalf("not signed in, but at %s: %s", b.where(), b.text("main"))
	}
}

// where is the path of the page, with its query.
func (b *tab) where() string {
	at, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(at, b.h.Staff)
}

// text returns the visible text of the first matching element.
func (b *tab) text(selector string) string {
	b.h.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit())
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	for replaced(err) {
		text, err = chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	}
	if err != nil {
		b.h.t.Fatalf("%s: %v\nat %s", selector, err, b.where())
	}
	return text
}

// has fails if a part of the page lacks a text.
func (b *tab) has(selector string, wanted ...string) {
	b.h.t.Helper()
	text := b.text(selector)
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			b.h.t.Errorf("%s of %s does not say %q:\n%s", selector, b.where(), want, text)
		}
	}
}

// becomes waits until a part of a polling page has a text. One poll reads the facts before the
// decisions, so what is decided between them is in the facts of the next poll only.
func (b *tab) becomes(selector, want string) {
	b.h.t.Helper()
	var text string
	wait.Within(b.h.t, 30*time.Second, func() string { return selector + " with " + want + ":\n" + text }, func() bool {
		text = b.text(selector)
		return strings.Contains(text, want)
	})
}

// lacks fails if an element exists.
func (b *tab) lacks(selectors ...string) {
	b.h.t.Helper()
	for _, selector := range selectors {
		if n := eval[int](b, `document.querySelectorAll("`+selector+`").length`); n > 0 {
			b.h.t.Errorf("%s has %s", b.where(), selector)
		}
	}
}

// appears waits until an element is visible.
func (b *tab) appears(selector string) {
	b.h.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit())
	defer cancel()
	err := chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS(selector)))
	for replaced(err) {
		err = chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS(selector)))
	}
	if err != nil {
		b.h.t.Fatalf("%s is not seen: %v\nat %s:\n%s", selector, err, b.where(), b.text("main"))
	}
}

// eval returns the value of a script; the page's policy does not apply to it.
func eval[T any](b *tab, script string) T {
	b.h.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.h.t.Fatalf("%s: %v", script, err)
	}
	return out
}

// cookies returns the cookies of the tab by name.
func (b *tab) cookies() map[string]*network.Cookie {
	b.h.t.Helper()
	res, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		b.h.t.Fatal(err)
	}
	out := map[string]*network.Cookie{}
	for _, c := range res.Cookies {
		out[c.Name] = c
	}
	return out
}

// look is a window size and colour scheme.
type look struct {
	name          string
	width, height int64
	phone, dark   bool
}

// looks are the looks of each language. Every pair of language, width and colours occurs.
var looks = map[string][]look{
	"en":    {{name: "desk", width: 1280, height: 860}, {name: "phone-dark", width: 360, height: 740, phone: true, dark: true}},
	"zh-CN": {{name: "desk-dark", width: 1280, height: 860, dark: true}, {name: "phone", width: 360, height: 740, phone: true}},
}

// put applies a look to the window.
func (b *tab) put(l look) {
	b.h.t.Helper()
	var options []chromedp.EmulateViewportOption
	scheme := "light"
	if l.phone {
		options = append(options, chromedp.EmulateMobile)
	}
	if l.dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(l.width, l.height, options...))
	command(b, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// desk sets the window size of a laptop.
func (b *tab) desk() { b.put(looks["en"][0]) }

// picture saves a screenshot to the folder in CONSOLE_PICTURES.
func (b *tab) picture(name string) {
	b.h.t.Helper()
	folder := os.Getenv("CONSOLE_PICTURES")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)
	}
	if err != nil {
		b.h.t.Fatal(err)
	}
}

// fits fails if the page is wider than its window.
func (b *tab) fits() {
	b.h.t.Helper()
	if over := eval[int](b, `document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth`); over > 0 {
		b.h.t.Errorf("%s is %d pixels wider than the window", b.where(), over)
	}
}

func command[P, R any](b *tab, c cdp.Command[P, R], params P) {
	b.h.t.Helper()
	if _, err := chromedp.Call(b.ctx, c, params); err != nil {
		b.h.t.Fatal(err)
	}
}

// keys types into the focused element.
func (b *tab) keys(text string) {
	b.h.t.Helper()
	b.do(press(text))
}

func press(text string) chromedp.Action[chromedp.Void] { return chromedp.KeyEvent(text) }

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

// leave ends the session by deleting its cookie.
func (b *tab) leave() {
	b.h.t.Helper()
	command(b, network.DeleteCookies, network.DeleteCookiesParams{Name: "hongbao_desk", URL: b.h.Staff})
}

// value returns the value of a field.
func (b *tab) value(selector string) string {
	b.h.t.Helper()
	return eval[string](b, `document.querySelector(`+quoted(selector)+`).value`)
}
