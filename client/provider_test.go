package client_test

import (
	"errors"
	"testing"

	"hongbao/client"
	"hongbao/wire"
)

// testProviders holds and releases the provider as people of the staff do.
func (b *bank) testProviders(t *testing.T) {
	ctx := t.Context()
	before, err := b.staff.ListProviders(ctx)
	b.must(err)
	if len(before.Items) != 2 || before.Items[0].Name != "balance" || before.Items[1].Held || before.Items[1].Hold != nil {
		t.Fatalf("%+v", before.Items)
	}
	name := before.Items[1].Name
	held, err := b.staff.HoldProvider(ctx, name, wire.Reason{Reason: "statement does not tie"})
	b.must(err)
	if !held.Held || held.Hold == nil || held.Hold.Reason != "statement does not tie" || held.Hold.By == "" || held.Hold.Since.IsZero() {
		t.Errorf("held: %+v", held)
	}
	released, err := b.staff.ReleaseProvider(ctx, name, wire.Reason{Reason: "solved"}, client.Key("k-1"))
	b.must(err)
	again, err := b.staff.ReleaseProvider(ctx, name, wire.Reason{Reason: "solved"}, client.Key("k-1"))
	b.must(err)
	if released.Held || released.ReleasedAt == nil || !again.ReleasedAt.Equal(released.ReleasedAt.Time) {
		t.Errorf("released: %+v, %+v", released, again)
	}
	_, err = b.staff.HoldProvider(ctx, "a/b", wire.Reason{Reason: "r"})
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != wire.CodeNotFound {
		t.Errorf("unknown provider: %v", err)
	}
}
