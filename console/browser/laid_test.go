package browser

import (
	"testing"

	"hongbao/payout"
)

// badlyLaid finds what is not where it belongs: numbers of payments that are broken over
// lines, values that do not begin where the others of their list do, signs of a sum that
// lie on its words, boxes that touch, and what sticks out of its card.
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
      if (inner.checkVisibility() && !inner.closest('.scroll') && inner.getBoundingClientRect().right > box.right - 4) say('sticks out', inner);
  }
  return out;
})()`

// TestLaidOut: on a laptop, on a phone and between, everything stands where it belongs.
func TestLaidOut(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "acme-hr", "total_amount": 600_000, "share_count": 3, "split": "random", "greeting": "Happy New Year"})
	bad := h.grab(id, "zhou-ting~frozen", "")
	h.grab(id, "maria.g", "Maria")
	h.finish(id)
	h.decide(h.second, bad, "cancel", "left the company")
	run := h.compare("month end", "x")
	refund := payout.ID(payout.KindRefund, id, 0)
	for _, language := range []string{"en", "zh-CN"} {
		b, auditor := h.newTab(language), h.newTab(language)
		b.signIn(h.finance)
		auditor.signIn(h.auditor)
		for _, path := range []string{"/", "/payouts?status=failed", "/payouts/" + bad, "/refunds?status=paid", "/refunds/" + refund, "/approvals", "/packets", "/packets/" + id, "/campaigns", "/campaigns/" + h.campaign(),
			"/breaks", "/reconciliations", "/reconciliations/" + run, "/closes", "/search?q=" + bad, "/audit"} {
			who := b
			if path == "/audit" {
				who = auditor
			}
			who.desk()
			who.open(path)
			for _, l := range []look{{name: "laptop", width: 1280, height: 860}, {name: "tablet", width: 920, height: 860}, {name: "phone", width: 360, height: 740, phone: true}} {
				who.put(l)
				who.fits()
				for _, fault := range eval[[]string](who, badlyLaid) {
					t.Errorf("%s in %s, %s: %s", path, language, l.name, fault)
				}
			}
		}
	}
}
