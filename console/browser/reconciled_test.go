package browser

import (
	"testing"

	"hongbao/test/wait"
)

// TestWatchedReconciliation: whoever has asked for a reconciliation and waits on its page
// is shown what it has found, not only how much, and can deal with it there.
func TestWatchedReconciliation(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/reconciliations")
	b.fill("main input[name=reason]", "month end")
	b.follow("main form button")
	b.has("#run", "requested")
	b.has("main", "No entries.")
	h.compare("month end", "stranger")
	wait.Until(h.t, "the page says that it is done", func() bool { return eval[bool](b, `!document.querySelector("#run[hx-get]")`) })
	b.has("main", "foreign_order", "Foreign1", "1 in total")
	b.lacks(".empty")
	b.do(click("#found summary"))
	b.fill("#found textarea", "the provider was told")
	b.follow("#found form button")
	b.has(".note.good", "The break is resolved")
}
