package client_test

import (
	"testing"

	"hongbao/client"
	"hongbao/wire"
)

// testKeys lives a key of the staff through: made, rotated, revoked.
func (b *bank) testKeys(t *testing.T) {
	ctx := t.Context()
	want, key := wire.CreateKey{Role: "ops", Owner: "zhou", Name: "night shift", ExpiresInSeconds: new(int64(3600)),
		Reason: "new on the team"}, client.Key("key-1")
	made, err := b.admin.CreateKey(ctx, want, key)
	b.must(err)
	again, err := b.admin.CreateKey(ctx, want, key)
	b.must(err)
	if made.Token == nil || again.Token != nil || again.Key.ID != made.Key.ID || made.Key.ExpiresAt == nil ||
		*made.Key.Name != "night shift" || made.Key.Status != "active" {
		t.Fatalf("%+v, then %+v", made, again)
	}
	_, err = b.staff.CreateKey(ctx, want, key)
	if !client.IsCode(err, wire.CodeForbidden) {
		t.Errorf("finance makes a key: %v", err)
	}
	rotated, err := b.admin.RotateKey(ctx, made.Key.ID, wire.RotateKey{GraceSeconds: 0, Reason: "lost"})
	b.must(err)
	if rotated.Token == nil || *rotated.Replaced.ReplacedBy != rotated.Key.ID || rotated.Replaced.ID != made.Key.ID ||
		rotated.Key.ExpiresAt != nil {
		t.Errorf("%+v", rotated)
	}
	_, err = b.admin.RotateKey(ctx, made.Key.ID, wire.RotateKey{GraceSeconds: 0, Reason: "lost"})
	if !client.IsCode(err, wire.CodeKeyEnded) {
		t.Errorf("rotated twice: %v", err)
	}
	revoked, err := b.admin.RevokeKey(ctx, rotated.Key.ID, wire.Reason{Reason: "left"})
	b.must(err)
	if revoked.Status != "revoked" || revoked.RevokedAt == nil {
		t.Errorf("%+v", revoked)
	}
	_, err = b.admin.RevokeKey(ctx, "../x", wire.Reason{Reason: "r"})
	if !client.IsCode(err, wire.CodeNotFound) {
		t.Errorf("no key: %v", err)
	}
	colleague, err := b.admin.CreateKey(ctx, wire.CreateKey{Role: "finance", Owner: "wang-wei", Reason: "new on the team"})
	b.must(err)
	_, err = b.admin.ApproveKey(ctx, colleague.Key.ID, wire.Reason{Reason: "my own"})
	if colleague.Key.Status != "waiting" || !client.IsCode(err, wire.CodeForbidden) {
		t.Errorf("%+v, %v", colleague.Key, err)
	}
	approved, err := b.staff.ApproveKey(ctx, colleague.Key.ID, wire.Reason{Reason: "knows the job"})
	b.must(err)
	if approved.Status != "active" || approved.ApprovedBy == nil || *approved.MadeBy == *approved.ApprovedBy {
		t.Errorf("%+v", approved)
	}
	seen := map[string]wire.KeyStatus{}
	for k, err := range b.staff.Keys(ctx, wire.KeyFilter{Role: "ops"}) {
		b.must(err)
		seen[k.ID] = k.Status
		if k.ID == rotated.Key.ID {
			_, err := b.admin.RevokeKey(ctx, k.ID, wire.Reason{Reason: "again"})
			b.must(err)
		}
	}
	if len(seen) != 2 || seen[made.Key.ID] != "expired" || seen[rotated.Key.ID] != "revoked" {
		t.Errorf("%v", seen)
	}
}
