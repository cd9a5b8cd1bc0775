package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/test/wait"
)

// proposedKey has a key made that waits for a second person and opens nothing.
func (h *fixture) proposedKey(who owner, path, key, body string) owner {
	h.t.Helper()
	made, o := h.issue(who, path, key, body)
	if made.Key.Status != "waiting" || made.Key.ApprovedBy != nil || made.Key.MadeBy == nil || *made.Key.MadeBy != who.key.Owner {
		h.t.Fatalf("%s: %+v", body, made.Key)
	}
	h.opensNothing(o)
	return o
}

// opensNothing checks that a key reads and decides nothing, also after every process has read
// the keys again.
func (h *fixture) opensNothing(o owner) {
	h.t.Helper()
	if code := h.opens("", o); code != "unauthenticated" {
		h.t.Errorf("a key that waits: %q", code)
	}
	for _, path := range []string{"payouts/x/cancel", "approvals/x/approve", "keys", "keys/" + o.key.ID + "/approve"} {
		if r := h.write(o, path, "k", because); r.code() != "unauthenticated" {
			h.t.Errorf("%s with a key that waits: %s", path, r)
		}
	}
}

// named is a second key of a member of staff under another spelling, made on a machine of ours.
func (h *fixture) named(role access.Role, name string) owner {
	h.t.Helper()
	token, id := access.NewToken(role)
	k := access.Key{ID: id, Role: role, Owner: name, SecretHash: access.HashToken(token)}
	if err := h.store.EnsureKey(h.t.Context(), k); err != nil {
		h.t.Fatal(err)
	}
	o := owner{key: k, token: token}
	wait.Until(h.t, "the new key is known", func() bool { return h.opens("", o) == "" })
	return o
}

// TestKeyApproval: with keys that one administrator makes, nobody is two persons: what
// decides about money, or lets others decide, works when a second person has agreed.
func TestKeyApproval(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin, second := h.administrator(), h.administrator()
	path := func(o owner, what string) string { return "keys/" + o.key.ID + "/" + what }
	finance := fmt.Sprintf(`{"role":"finance","owner":%q,"reason":"r"}`, h.finance.key.Owner)

	colleague := h.proposedKey(admin, "keys", "k1", finance)
	for _, who := range []owner{admin, h.named("admin", strings.ToUpper(admin.key.Owner)), h.named("finance", "\u00ad"+admin.key.Owner)} {
		for range 2 {
			if r := h.write(who, path(colleague, "approve"), "a1", because); r.code() != "forbidden" {
				t.Errorf("by the maker as %q: %s", who.key.Owner, r)
			}
		}
	}
	for _, who := range []owner{h.ops, h.auditor, h.app} {
		if r := h.write(who, path(colleague, "approve"), "a1", because); r.code() != "forbidden" {
			t.Errorf("by %s: %s", who.key.Role, r)
		}
	}
	h.opensNothing(colleague)
	first := h.write(second, path(colleague, "approve"), "a1", because)
	var k keyBody
	if first.json(t, &k); first.status != http.StatusOK || k.Status != "active" || *k.ApprovedBy != second.key.Owner ||
		h.opens("", colleague) != "" {
		t.Fatalf("%s", first)
	}
	if r := h.write(second, path(colleague, "approve"), "a1", because); !bytes.Equal(r.body, first.body) ||
		r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repeat: %s", r)
	}
	var again keyBody // perhaps with its use of just now
	r := h.write(h.finance, path(colleague, "approve"), "a2", because)
	if r.json(t, &again); r.status != http.StatusOK || again.Status != "active" || *again.ApprovedBy != second.key.Owner {
		t.Errorf("approved again: %s", r)
	}

	other := h.proposedKey(admin, "keys", "k2", `{"role":"admin","owner":"ghost","reason":"r"}`)
	if r := h.write(h.finance, path(other, "approve"), "a3", because); r.status != http.StatusOK || h.opens("", other) != "" {
		t.Errorf("an administrator approved by finance: %s", r)
	}
	for i, role := range []string{"ops", "auditor", "admin"} {
		body := fmt.Sprintf(`{"role":%q,"owner":%q,"reason":"r"}`, role, strings.ToUpper(admin.key.Owner))
		if made, o := h.issue(admin, "keys", fmt.Sprint("free", i), body); made.Key.Status != "active" || h.opens("", o) != "" {
			t.Errorf("%s: %+v", role, made.Key)
		}
	}

	// A rotation is no way around it, and changes no owner.
	if r := h.write(admin, path(colleague, "rotate"), "k3",
		`{"grace_seconds":60,"owner":"ghost","reason":"r"}`); r.code() != "invalid_request" {
		t.Errorf("another owner: %s", r)
	}
	rotate := `{"grace_seconds":60,"reason":"r"}`
	next := h.proposedKey(admin, path(colleague, "rotate"), "k4", rotate)
	if next.key.Owner != h.finance.key.Owner || h.opens("", colleague) != "" {
		t.Errorf("%+v", next.key)
	}
	last := h.proposedKey(admin, path(next, "rotate"), "k5", `{"grace_seconds":0,"reason":"the token got lost"}`)
	refused := h.write(colleague, path(next, "approve"), "a4", because)
	if again := h.write(colleague, path(next, "approve"), "a4", because); refused.code() != "key_ended" ||
		!bytes.Equal(again.body, refused.body) {
		t.Errorf("rotated concurrently: %s, then %s", refused, again)
	}
	if r := h.write(admin, path(last, "approve"), "a5", because); r.code() != "forbidden" {
		t.Errorf("a rotation by the one who rotated: %s", r)
	}
	if r := h.write(colleague, path(last, "approve"), "a5", because); r.status != http.StatusOK || h.opens("", last) != "" {
		t.Errorf("a rotation by its owner: %s", r)
	}

	revoked := h.proposedKey(admin, "keys", "k6", finance)
	if r := h.write(admin, path(revoked, "revoke"), "k7", because); r.status != http.StatusOK {
		t.Errorf("%s", r)
	}
	if r := h.write(second, path(revoked, "approve"), "a6", because); r.code() != "key_ended" {
		t.Errorf("revoked: %s", r)
	}
	if r := h.write(second, "keys/aaaaaaaaaaaa/approve", "a7", because); r.code() != "not_found" {
		t.Errorf("of nobody: %s", r)
	}
	h.actedWith(map[string]owner{"approve_key key/" + colleague.key.ID: second, "create_key key/" + colleague.key.ID: admin,
		"approve_key key/" + last.key.ID: colleague, "rotate_key key/" + next.key.ID: admin})
}

// actedWith checks which key the audit names for what was done.
func (h *fixture) actedWith(want map[string]owner) {
	h.t.Helper()
	for what, who := range want {
		action, subject, _ := strings.Cut(what, " ")
		found := h.audit("?action=" + action + "&subject=" + subject).Items
		if len(found) != 1 || found[0].Actor != who.key.Owner || found[0].KeyID == nil || *found[0].KeyID != who.key.ID {
			h.t.Errorf("%s: %+v, want key %s", what, found, who.key.ID)
		}
	}
}

// TestKeyApprovalLastAdministrator: a key that waits administers nothing, so the last one that
// works is not rotated by another person.
func TestKeyApprovalLastAdministrator(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	_, passing := h.issue(admin, "keys", "k1", fmt.Sprintf(`{"role":"admin","owner":%q,"expires_in_seconds":3600,"reason":"r"}`,
		admin.key.Owner))
	other := h.proposedKey(admin, "keys", "k2", `{"role":"admin","owner":"other","expires_in_seconds":3600,"reason":"r"}`)
	if r := h.write(h.finance, "keys/"+other.key.ID+"/approve", "a1", because); r.status != http.StatusOK {
		t.Fatalf("%s", r)
	}
	rotate := `{"grace_seconds":60,"reason":"r"}`
	if r := h.write(other, "keys/"+admin.key.ID+"/rotate", "k3", rotate); r.code() != "last_admin_key" {
		t.Errorf("by another person: %s", r)
	}
	if made, o := h.issue(passing, "keys/"+admin.key.ID+"/rotate", "k4", rotate); made.Key.Status != "active" || h.opens("", o) != "" {
		t.Errorf("by the person with another key: %+v", made.Key)
	}
}

// TestKeyIDOfDecisions: decisions contain the keys of both persons, and another spelling of a
// name does not count as a second person.
func TestKeyIDOfDecisions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	asked := h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	if asked.Decision.KeyID != h.finance.key.ID {
		t.Errorf("%+v", asked.Decision)
	}
	again := h.named("finance", strings.ToUpper(h.finance.key.Owner))
	if r := h.write(again, "approvals/"+asked.Approval.ID+"/approve", "a", because); r.code() != "forbidden" {
		t.Errorf("the same person: %s", r)
	}
	colleague := h.colleague()
	h.decided(h.write(colleague, "approvals/"+asked.Approval.ID+"/reject", "a", because), "rejected")
	var page struct {
		Items []struct {
			Decision struct {
				KeyID string `json:"key_id"`
			}
			AnswerKeyID string `json:"answer_key_id"`
		}
	}
	h.page(h.finance, "/v1/staff/approvals?payment_id="+bad, &page)
	if len(page.Items) != 1 || page.Items[0].Decision.KeyID != h.finance.key.ID || page.Items[0].AnswerKeyID != colleague.key.ID {
		t.Errorf("%+v", page)
	}
	h.actedWith(map[string]owner{"cancel " + bad: h.finance, "reject_cancel " + bad: colleague})
}
