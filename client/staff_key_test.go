package client_test

import (
	"testing"

	"hongbao/client"
)

// testKeys lives a key of the staff through: made, rotated, revoked.
func (b *bank) testKeys(t *testing.T) {
	ctx := t.Context()
	want := client.CreateKeyRequest{IdempotencyKey: "key-1", Role: "ops", Owner: "zhou", Name: "night shift", ExpiresInSeconds: 3600,
		Reason: "new on the team"}
	made, err := b.admin.CreateKey(ctx, want)
	b.must(err)
	again, err := b.admin.CreateKey(ctx, want)
	b.must(err)
	if made.Token == nil || again.Token != nil || again.Key.ID != made.Key.ID || made.Key.ExpiresAt == nil ||
		*made.Key.Name != "night shift" || made.Key.Status != "active" {
		t.Fatalf("%+v, then %+v", made, again)
	}
	_, err = b.staff.CreateKey(ctx, want)
	if !client.IsCode(err, client.CodeForbidden) {
		t.Errorf("finance makes a key: %v", err)
	}
	rotated, err := b.admin.RotateKey(ctx, made.Key.ID, client.RotateKeyRequest{GraceSeconds: 0, Reason: "lost"})
	b.must(err)
	if rotated.Token == nil || *rotated.Replaced.ReplacedBy != rotated.Key.ID || rotated.Replaced.ID != made.Key.ID ||
		rotated.Key.ExpiresAt != nil {
		t.Errorf("%+v", rotated)
	}
	_, err = b.admin.RotateKey(ctx, made.Key.ID, client.RotateKeyRequest{GraceSeconds: 0, Reason: "lost"})
	if !client.IsCode(err, client.CodeKeyEnded) {
		t.Errorf("rotated twice: %v", err)
	}
	revoked, err := b.admin.RevokeKey(ctx, rotated.Key.ID, client.RevokeKeyRequest{Reason: "left"})
	b.must(err)
	if revoked.Status != "revoked" || revoked.RevokedAt == nil {
		t.Errorf("%+v", revoked)
	}
	_, err = b.admin.RevokeKey(ctx, "../x", client.RevokeKeyRequest{Reason: "r"})
	if !client.IsCode(err, client.CodeNotFound) {
		t.Errorf("no key: %v", err)
	}
	colleague, err := b.admin.CreateKey(ctx, client.CreateKeyRequest{Role: "finance", Owner: "wang-wei", Reason: "new on the team"})
	b.must(err)
	_, err = b.admin.ApproveKey(ctx, colleague.Key.ID, client.DecisionRequest{Reason: "my own"})
	if colleague.Key.Status != "waiting" || !client.IsCode(err, client.CodeForbidden) {
		t.Errorf("%+v, %v", colleague.Key, err)
	}
	approved, err := b.staff.ApproveKey(ctx, colleague.Key.ID, client.DecisionRequest{Reason: "knows the job"})
	b.must(err)
	if approved.Status != "active" || approved.ApprovedBy == nil || *approved.MadeBy == *approved.ApprovedBy {
		t.Errorf("%+v", approved)
	}
	seen := map[string]string{}
	for k, err := range b.staff.Keys(ctx, client.KeyFilter{Role: "ops"}) {
		b.must(err)
		seen[k.ID] = k.Status
		if k.ID == rotated.Key.ID {
			_, err := b.admin.RevokeKey(ctx, k.ID, client.RevokeKeyRequest{Reason: "again"})
			b.must(err)
		}
	}
	if len(seen) != 2 || seen[made.Key.ID] != "expired" || seen[rotated.Key.ID] != "revoked" {
		t.Errorf("%v", seen)
	}
}
