package api_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// bulkConflictsBody is the answer to a bulk decision about share conflicts.
type bulkConflictsBody struct {
	DryRun bool `json:"dry_run"`
	Count  int
	Amount int64
	More   bool
	Items  []struct {
		ID      string `json:"payout_id"`
		Packet  string `json:"packet_id"`
		User    string `json:"user_id"`
		Amount  int64
		Default string `json:"default_decision"`
		Result  string
		Code    *string
		AskedBy *string `json:"asked_by"`
	}
}

// results are "user default result" of each item.
func (b bulkConflictsBody) results() (out []string) {
	for _, i := range b.Items {
		text := fmt.Sprint(i.User, " ", i.Default, " ", i.Result)
		if i.Code != nil {
			text += " " + *i.Code
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// decideConflicts decides about share conflicts; the sum and the sorted results must be as wanted.
func (h *fixture) decideConflicts(who owner, decision, key, body string, amount int64, want ...string) bulkConflictsBody {
	h.t.Helper()
	var b bulkConflictsBody
	if key == "dry" {
		key = rand.Text()
	}
	r := h.write(who, "share-conflicts/"+decision, key, `{"reason":"checked",`+body+`}`)
	if r.json(h.t, &b); r.status != http.StatusOK || !slices.Equal(b.results(), want) || b.Amount != amount {
		h.t.Errorf("%s %s: %s %q, want %d %q", decision, body, r, b.results(), amount, want)
	}
	return b
}

// TestR10_BulkDecision: a dry run decides nothing. The first person's call asks; the same call by
// another person honours or voids, each share conflict once. One whose user has a share of the packet
// is voided by default.
func TestR10_BulkDecision(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	colleague := h.colleague()
	p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	a := p.addConflict("a", 0)
	conflict := packet.Claim{PacketID: p.id, UserID: "lost0", ShareIndex: 2, Amount: 250, ClaimedAt: p.packet(p.app, p.id).CreatedAt}
	_, err := p.store.RecordShareConflict(t.Context(), conflict, "another claim")
	h.check(err)
	b := p.addConflict("b", 1)
	const all = `"filter":{"packet_id":"%s"}`
	mine := fmt.Sprintf(all, p.id)
	dry := h.decideConflicts(h.finance, "honour", "dry", mine, 750, "a honour waiting", "b honour waiting", "lost0 void waiting")
	if !dry.DryRun || dry.Count != 3 || dry.More || dry.Items[0].Amount != 250 || dry.Items[0].Packet != p.id {
		t.Errorf("%+v", dry)
	}
	h.decideConflicts(h.finance, "honour", "dry", `"filter":{"default_decision":"honour"}`, 500, "a honour waiting", "b honour waiting")
	h.decideConflicts(h.finance, "void", "dry", `"filter":{"default_decision":"void"}`, 250, "lost0 void waiting")
	h.decideConflicts(h.finance, "void", "dry", `"filter":{"user_id":"b"}`, 250, "b honour waiting")
	const honour, void = `"dry_run":false,"filter":{"default_decision":"honour"}`, `"dry_run":false,"filter":{"default_decision":"void"}`
	for range 2 { // a repeat returns the same
		h.decideConflicts(h.finance, "honour", "real", honour, 500, "a honour waiting", "b honour waiting")
	}
	h.decideConflicts(h.finance, "honour", "more", honour, 0) // what is left waits for another person
	named := `"filter":{"payout_ids":["` + a + `"]}`
	h.decideConflicts(h.finance, "honour", "dry", named, 0, "a honour skipped decision_pending")
	h.decideConflicts(colleague, "void", "dry", named, 0, "a honour skipped decision_pending")
	h.decideConflicts(h.finance, "void", "real", void, 250, "lost0 void waiting")
	h.placeHold("payment", b)
	dry = h.decideConflicts(colleague, "honour", "dry", mine, 250, "a honour would_decide", "b honour skipped held",
		"lost0 void skipped decision_pending")
	for _, i := range dry.Items {
		if by := i.AskedBy; i.ID == a && (by == nil || *by != h.finance.key.Owner) {
			t.Errorf("%+v", i)
		}
	}
	for range 2 {
		h.decideConflicts(colleague, "honour", "real", honour, 250, "a honour decided", "b honour skipped held")
	}
	h.decideConflicts(colleague, "void", "real", void, 250, "lost0 void decided")
	h.decideConflicts(colleague, "honour", "again", honour, 0, "b honour skipped held")
	h.decideConflicts(colleague, "void", "dry", named, 0, "a honour skipped not_retryable")
	if st := h.drive(a); st.Status != payout.StatusPaid {
		t.Errorf("honoured: %+v", st)
	}
	p.hasClaim("a", 0, a, "paid")
	for _, i := range dry.Items {
		if i.User != "lost0" {
			continue
		}
		if st := h.drive(i.ID); st.Status != payout.StatusCancelled {
			t.Errorf("voided: %+v", st)
		}
	}
	p.shows("as without them", sums{paid: 500, remaining: 500})
	for _, body := range []string{`"filter":{}`, `"filter":{"payout_ids":["p` + p.id + `0000"]}`, `"filter":{"default_decision":"keep"}`,
		`"filter":{"payout_ids":["` + a + `"],"user_id":"a"}`, `"filter":{"payout_ids":["h` + p.id + `zzzz"]}`, `"filter":{"status":"failed"}`} {
		if r := h.write(h.finance, "share-conflicts/void", "bad", `{"reason":"r",`+body+`}`); r.code() != "invalid_request" {
			t.Errorf("%s: %s", body, r)
		}
	}
}
