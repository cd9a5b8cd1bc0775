package browser

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"hongbao/internal/access"
)

// TestEveryPage visits all pages as each role, in both languages, on laptop and phone, light and
// dark, full of hostile input. No input is executed, no page is wider than its window, and none
// has accessibility faults. Each role sees exactly its pages and forms. Then it inspects pages
// after decisions, refusals, lost answers and outages.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	t.Run("States", func(t *testing.T) {
		t.Parallel()
		newSite(t).becomes()
	})
	t.Run("Pages", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		t.Run("Roles", func(t *testing.T) { s.in(t).entersAll(t) })
		t.Run("AsItIs", func(t *testing.T) { s.in(t).readsHarm(t) })
		t.Run("NoneForgotten", func(t *testing.T) { s.in(t).missesNone(t) })
		s.looksAtAll(t)
	})
}

func (s *site) looksAtAll(t *testing.T) {
	for _, language := range []string{"en", "zh-CN"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s.in(t).looksIn(language)
		})
	}
}

func (s *site) looksIn(language string) {
	tabs := s.tabs(language)
	for i, p := range s.places() {
		b := tabs[cmp.Or(p.who, access.RoleFinance)]
		b.desk()
		if status := b.open(p.path); status != cmp.Or(p.status, http.StatusOK) {
			s.t.Errorf("%s: %d", p.path, status)
		}
		if lang := eval[string](b, "document.documentElement.lang"); lang != language {
			s.t.Errorf("%s: in %s, not %s", p.path, lang, language)
		}
		b.inspect(fmt.Sprintf("page-%02d", i+1), language)
		if language == "zh-CN" && slices.Contains([]string{"/", "/payouts?status=failed", "/reconciliations"}, p.path) {
			b.readsChinese()
		}
	}
}

// tablet is a width between the others: lists are narrow tables.
var tablet = look{name: "tablet", width: 920, height: 860}

// inspect checks the unfolded page in each look of a language.
func (b *tab) inspect(name, language string) {
	b.h.t.Helper()
	eval[int](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), 0`)
	found := b.faults()
	for n, look := range append([]look{tablet}, looks[language]...) {
		b.put(look)
		if n > 0 || b.where() != "/closes" { // its sums are larger than those of any real day
			b.fits()
		}
		found = append(found, eval[[]string](b, badlyLaid)...)
		if n > 0 {
			found = append(found, eval[[]string](b, contrast)...)
		}
		if n == 1 || n > 1 && language == "en" { // the remaining combinations are covered; this takes most of the time
			found = append(found, b.axe()...)
		}
		for _, fault := range found {
			b.h.t.Errorf("%s, %s in %s, %s: %s", name, b.where(), language, look.name, fault)
		}
		found = nil
		b.picture(fmt.Sprintf("%s-%s-%s", name, language, look.name))
	}
	b.desk()
}

// faults checks the page as scripts have left it.
func (b *tab) faults() []string {
	b.h.t.Helper()
	doc, err := html.Parse(strings.NewReader(eval[string](b, "document.documentElement.outerHTML")))
	b.h.must(err)
	return faults(doc)
}

// contrast finds texts with too little contrast.
const contrast = `(() => {
  const out = [];
  const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (el) => {
    for (; el; el = el.parentElement) {
      const c = parse(getComputedStyle(el).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  for (const el of document.body.querySelectorAll('*')) {
    if (![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !el.checkVisibility()) continue;
    const a = light(parse(getComputedStyle(el).color)), b = light(ground(el));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const about = el.tagName + '.' + el.className + ' ' + el.textContent.trim().slice(0, 30);
    if (ratio < 4.5) out.push('contrast ' + ratio.toFixed(2) + ': ' + about);
  }
  return out;
})()`

// badlyLaid finds layout faults: order numbers broken over lines, misaligned values, overlapping
// signs, touching boxes, and content outside its card.
const badlyLaid = `(() => {
  const out = [];
  const say = (what, el) => out.push(what + ': ' + el.outerHTML.slice(0, 120));
  for (const el of document.querySelectorAll('td > a.mono, .facts a.mono, .facts dd.mono'))
    if (/^[a-z][0-9a-v]{19,26}$/.test(el.textContent)) {
      const range = document.createRange();
      range.selectNodeContents(el);
      if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) say('broken over lines', el);
    }
  for (const list of document.querySelectorAll('.facts')) {
    const begins = new Set();
    for (const dd of list.querySelectorAll('dd')) {
      const range = document.createRange();
      range.selectNodeContents(dd);
      const first = [...range.getClientRects()].find((r) => r.width > 0);
      if (first) begins.add(Math.round(first.left / 4));
    }
    if (begins.size > 1 + (list.querySelector('.tag') ? 1 : 0)) say('values begin at ' + [...begins].join(), list);
  }
  for (const dt of document.querySelectorAll('.sum > div + div > dt')) {
    const sign = getComputedStyle(dt.parentElement, '::before');
    if (sign.content !== 'none' && parseFloat(getComputedStyle(dt.parentElement).paddingLeft) < 10) say('a sign lies on', dt);
  }
  for (const el of document.querySelectorAll('main .card, main fieldset')) {
    const box = el.getBoundingClientRect(), before = el.previousElementSibling;
    if (before && before.checkVisibility()) {
      const above = before.getBoundingClientRect();
      if (above.right > box.left && above.left < box.right && box.top - above.bottom < 6) say('touches what is above it', el);
    }
    for (const inner of el.querySelectorAll('.tag, button, .button, dd, p, pre'))
      if (inner.checkVisibility() && !inner.closest('.scroll') && inner.getBoundingClientRect().right > box.right - 4)
        say('sticks out', inner);
  }
  return out;
})()`

// boxes finds Chinese characters without a glyph: they look like two characters without glyphs.
const boxes = `(() => {
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d", {willReadFrequently: true});
  canvas.width = canvas.height = 24;
  const draw = (c) => {
    pen.clearRect(0, 0, 24, 24);
    pen.font = "20px " + getComputedStyle(document.body).fontFamily;
    pen.fillText(c, 1, 20);
    return pen.getImageData(0, 0, 24, 24).data.join();
  };
  const box = draw("\u{10fffe}"), han = [...new Set(document.documentElement.textContent.match(/\p{Script=Han}/gu) || [])];
  return {
    alike: box === draw("\u{3fffe}"), blank: draw(" ") === draw("\u{a0}"), han: han.length, different: new Set(han.map(draw)).size,
    missing: han.filter((c) => [box, draw(" ")].includes(draw(c))).join(""),
  };
})()`

// readsChinese fails if the browser has no font for Chinese.
func (b *tab) readsChinese() {
	b.h.t.Helper()
	got := eval[struct {
		Alike, Blank   bool
		Han, Different int
		Missing        string
	}](b, boxes)
	if !got.Alike || !got.Blank || got.Han < 40 || got.Different != got.Han || got.Missing != "" {
		b.h.t.Errorf("%s: %+v; make setup installs a font", b.where(), got)
	}
}
