package browser

import (
	"testing"

	"hongbao/test/wait"
)

// TestWatchedReconciliation: the open page of a requested reconciliation shows its breaks when it
// ends, and they can be resolved there.
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
	b.fill("#found textarea", "the provider was informed")
	b.follow("#found form button")
	b.has(".note.good", "The break is resolved")
}
