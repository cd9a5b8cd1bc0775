package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// bulkReleasedBody is the answer to a bulk release of holds.
type bulkReleasedBody struct {
	DryRun   bool `json:"dry_run"`
	Count    int
	More     bool
	Releases releasesBody
	Items    []struct {
		HoldID   string `json:"hold_id"`
		Scope    string
		Name     string
		Releases releasesBody
		Result   string
		Code     *string
		AskedBy  *string `json:"asked_by"`
	}
}

type releasesBody struct {
	Amount int64
	What   string
	Parts  []struct {
		Code          string
		Count, Amount *int64
	}
}

// results are "hold result amount" of each item.
func (b bulkReleasedBody) results() (out []string) {
	for _, i := range b.Items {
		text := fmt.Sprint(i.HoldID, " ", i.Result, " ", i.Releases.Amount)
		if i.Code != nil {
			text += " " + *i.Code
		}
		out = append(out, text)
	}
	return out
}

func (h *fixture) placeHold(scope, name string) (id string) {
	h.t.Helper()
	var item struct{ Hold struct{ ID string } }
	r := h.write(h.finance, "holds", "place-"+name, `{"scope":"`+scope+`","name":"`+name+`","reason":"r"}`)
	if r.json(h.t, &item); r.status != http.StatusOK {
		h.t.Fatalf("%s", r)
	}
	return item.Hold.ID
}

// releaseMany releases holds; the results must be as wanted.
func (h *fixture) releaseMany(who owner, key, body string, amount int64, want ...string) bulkReleasedBody {
	h.t.Helper()
	var b bulkReleasedBody
	r := h.write(who, "holds/release", key, `{"reason":"checked",`+body+`}`)
	if r.json(h.t, &b); r.status != http.StatusOK || !slices.Equal(b.results(), want) || b.Releases.Amount != amount {
		h.t.Errorf("%s: %s %q, want %d %q", body, r, b.results(), amount, want)
	}
	return b
}

// TestBulkRelease: a dry run releases nothing; the first person's call asks for what lets money go
// and releases the rest; the same call by another person releases what the first one was shown.
func TestBulkRelease(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	colleague := h.colleague()
	first, _ := h.failed() // 250 owed, 250 not claimed
	second := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	h.placeHold("provider", "sandbox")
	a, b, c := h.placeHold("packet", first), h.placeHold("packet", second), h.placeHold("payment", "p1c5emuasbbm9p6qmv2gr0003")
	again := h.placeHold("payment", payout.ID(payout.KindPayout, second, 0)) // no row yet
	const all = `"filter":{"kind":"staff"}`
	dry := h.releaseMany(h.finance, "dry", all, 1500, again+" would_release 0", c+" would_release 0", b+" waiting 1000", a+" waiting 500")
	if parts := dry.Releases.Parts; !dry.DryRun || dry.Count != 4 || dry.More || len(parts) != 2 || parts[0].Code != "winners" ||
		*parts[0].Count != 1 || *parts[0].Amount != 250 || parts[1].Code != "unclaimed" || parts[1].Count != nil || *parts[1].Amount != 1250 ||
		dry.Releases.What != "2.50 in 1 payment is paid to winners; 12.50 goes to winners or back to the sender" {
		t.Errorf("%+v", dry)
	}
	h.releaseMany(h.finance, "scope", `"filter":{"scope":"payment"}`, 0, again+" would_release 0", c+" would_release 0")
	h.releaseMany(h.finance, "name", `"filter":{"name":"`+second+`"}`, 1000, b+" waiting 1000")
	if n := h.activeHolds(); n != 5 {
		t.Errorf("%d active holds after dry runs", n)
	}
	const real = all + `,"dry_run":false`
	for range 2 { // a repeat returns the same
		h.releaseMany(h.finance, "real", real, 1500, again+" released 0", c+" released 0", b+" waiting 1000", a+" waiting 500")
	}
	if r := h.write(h.finance, "holds/release", "real", `{"reason":"checked",`+all+`}`); r.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", r)
	}
	if n := h.activeHolds(); n != 3 {
		t.Errorf("%d active holds after one person", n)
	}
	h.releaseMany(h.finance, "rest", real, 0) // what is left waits for another person
	if r := h.grab(h.app, second, "v"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	claims, err := h.pool.Claims(t.Context(), second)
	h.check(err)
	_, err = h.store.RecordClaim(t.Context(), claims[0])
	h.check(err)
	seen := h.releaseMany(colleague, "dry", all, 500, b+" skipped 1000 decision_changed", a+" would_release 500")
	if by := seen.Items[1].AskedBy; by == nil || *by != h.finance.key.Owner {
		t.Errorf("%+v", seen)
	}
	h.releaseMany(colleague, "real", real, 500, b+" skipped 1000 decision_changed", a+" released 500")
	named := `"dry_run":false,"filter":{"hold_ids":["` + b + `"]}`
	h.releaseMany(h.finance, "ask-again", named, 1000, b+" waiting 1000")
	h.releaseMany(colleague, "named", named, 1000, b+" released 1000")
	h.releaseMany(colleague, "released-before", named, 0, b+" released 0")
	if n := h.activeHolds(); n != 1 {
		t.Errorf("%d active holds, want that of the provider", n)
	}
}

func (h *fixture) activeHolds() int {
	h.t.Helper()
	var list struct{ Items []struct{ ID string } }
	h.as(h.finance, "GET", "/v1/staff/holds?active=true&kind=staff", "").json(h.t, &list)
	return len(list.Items)
}

// TestBulkReleaseIsChecked: bodies that select nothing, everything, or a hold of a provider are refused.
func TestBulkReleaseIsChecked(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	provider := h.placeHold("provider", "sandbox")
	for body, want := range map[string]string{
		`{"reason":"r"}`: "filter required", `{"reason":"r","filter":{}}`: "filter required", `{"filter":{"kind":"staff"}}`: "reason required",
		`{"reason":"r","filter":{"scope":"provider"}}`:                     "filter.scope not_allowed",
		`{"reason":"r","filter":{"kind":"mysql_restored"}}`:                "filter.kind not_allowed",
		`{"reason":"r","filter":{"active":true}}`:                          "filter.active unknown_field",
		`{"reason":"r","filter":{"hold_ids":["12"]}}`:                      "filter.hold_ids[0] invalid_format",
		`{"reason":"r","filter":{"hold_ids":["h99"]}}`:                     "filter.hold_ids[0] invalid_format",
		`{"reason":"r","filter":{"hold_ids":["` + provider + `"]}}`:        "filter.hold_ids[0] invalid_format",
		`{"reason":"r","filter":{"kind":"staff","hold_ids":["h1"]}}`:       "filter.hold_ids invalid_format",
		`{"reason":"r","filter":{"kind":"staff"},"dry_run":"yes"}`:         "dry_run wrong_type",
		`{"reason":"r","filter":{"kind":"staff"},"second_person":"other"}`: "second_person unknown_field",
	} {
		if r := h.write(h.finance, "holds/release", "bad", body); r.status != 422 || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%s: %s", body, r)
		}
	}
	if r := h.write(h.ops, "holds/release", "ops", `{"reason":"r","filter":{"kind":"staff"}}`); r.status != http.StatusForbidden {
		t.Errorf("by operations: %s", r)
	}
}

// TestBulkReleaseAfterRecovery: a packet whose charge the last recovery did not know is skipped, and
// of the others the dry run shows the remainder that would go to the sender.
func TestBulkReleaseAfterRecovery(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	ended := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	h.write(h.finance, "providers/sandbox/hold", "hold", because)
	var p packetBody
	h.post(h.app, "unpaid", with()).json(t, &p)
	view, err := h.pool.View(t.Context(), p.ID)
	h.check(err)
	_, err = h.store.RecordPacket(t.Context(), view.Packet, []byte("sealed"), nil)
	h.check(err)
	_, err = h.store.BeginClosing(t.Context(), ended, packet.CloseExpired)
	h.check(err)
	books, err := h.store.DeclareRestored(t.Context(), staff.Write{Owner: "ops", Role: "operator", Reason: "r"}, 0, time.Now())
	h.check(err)
	for _, order := range []string{payout.OrderNo(payout.ID(payout.KindCharge, p.ID, 0), 1),
		payout.OrderNo(payout.ID(payout.KindPayout, ended, 0), 1)} {
		parts, err := payout.Parse(order)
		h.check(err)
		h.check(h.store.NoteUndecided(t.Context(), parts.PacketID, order, "d"))
	}
	const filter = `"filter":{"kind":"recovery"}`
	if r := h.write(h.finance, "holds/release", "restored", `{"reason":"r",`+filter+`}`); r.status/100 == 2 {
		t.Errorf("before the recovery: %s", r)
	}
	_, err = h.store.EndRecovery(t.Context(), staff.Write{Owner: "ops", Role: "operator", Reason: "r"}, books, 0, []string{"sandbox"}, nil,
		nil)
	h.check(err)
	for _, key := range []string{"dry", "real"} {
		var b bulkReleasedBody
		r := h.write(h.finance, "holds/release", key, fmt.Sprintf(`{"reason":"r","dry_run":%t,%s}`, key == "dry", filter))
		r.json(t, &b)
		if len(b.Items) != 2 || b.Items[0].Result != "waiting" || b.Items[0].Name != ended || b.Items[1].Result != "skipped" ||
			*b.Items[1].Code != "recovery_required" || b.Releases.Amount != 1000 || len(b.Releases.Parts) != 1 ||
			b.Releases.Parts[0].Code != "remainder" {
			t.Errorf("%s: %s", key, r)
		}
	}
}
