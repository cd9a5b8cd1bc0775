package client_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// testTickets lives a key of tickets through, and signs users in and out of a packet.
func (b *bank) testTickets(t *testing.T) {
	ctx := t.Context()
	public, private, err := ed25519.GenerateKey(nil)
	b.must(err)
	der, err := x509.MarshalPKIXPublicKey(public)
	b.must(err)
	want := wire.AddTicketKey{AppID: b.app.ID, Name: "campaigns", Reason: "r",
		PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
	key, err := b.admin.AddTicketKey(ctx, want, client.Key("tickets-1"))
	b.must(err)
	if key.AppID != b.app.ID || *key.Name != "campaigns" || key.Status != "active" ||
		key.PublicKey != base64.StdEncoding.EncodeToString(public) || key.RevokedAt != nil {
		t.Errorf("%+v", key)
	}
	p := b.open(wire.CreatePacket{SenderID: "u1", TotalAmount: 1200, ShareCount: len(names) + 1, Tickets: true})
	if !p.Tickets {
		t.Errorf("%+v", p)
	}
	ticket := func(user string, until time.Time) string {
		signed, err := client.SignTicket(private, key.ID, p.ID, user, until)
		b.must(err)
		return signed
	}
	soon := time.Now().Add(time.Minute)
	for _, user := range names {
		_, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: user})
		if !client.IsCode(err, wire.CodeNotEligible) {
			t.Errorf("%q without a ticket: %v", user, err)
		}
		claim, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: user, Ticket: ticket(user, soon)})
		b.must(err)
		if claim.UserID != user || claim.Replayed {
			t.Errorf("%+v", claim)
		}
	}
	_, err = b.client.Grab(ctx, p.ID, wire.Grab{UserID: "late", Ticket: ticket("late", time.Now().Add(-time.Second))})
	if !client.IsCode(err, wire.CodeNotEligible) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired: %v", err)
	}
	if _, err := client.SignTicket(private[:32], key.ID, p.ID, "u", soon); err == nil {
		t.Error("a seed signs")
	}
	ended, err := b.admin.RevokeTicketKey(ctx, key.ID, wire.Reason{Reason: "leaked"})
	b.must(err)
	if ended.Status != "revoked" || ended.RevokedAt == nil {
		t.Errorf("%+v", ended)
	}
	_, err = b.client.Grab(ctx, p.ID, wire.Grab{UserID: "late", Ticket: ticket("late", soon)})
	if !client.IsCode(err, wire.CodeNotEligible) {
		t.Errorf("after the key has ended: %v", err)
	}
	_, err = b.admin.AddTicketKey(ctx, want, client.Key("tickets-2"))
	if !client.IsCode(err, wire.CodeInvalidRequest) {
		t.Errorf("the error contains the key: %v", err)
	}
	_, err = b.staff.RevokeTicketKey(ctx, key.ID, wire.Reason{Reason: "r"})
	if !client.IsCode(err, wire.CodeForbidden) {
		t.Errorf("finance: %v", err)
	}
	seen := 0
	for k, err := range b.staff.TicketKeys(ctx, wire.TicketKeyFilter{AppID: b.app.ID}) {
		b.must(err)
		seen++
		if k.ID != key.ID || k.Status != "revoked" {
			t.Errorf("%+v", k)
		}
	}
	page, err := b.auditor.ListTicketKeys(ctx, wire.TicketKeyFilter{}, client.Page{Limit: 1})
	b.must(err)
	if seen != 1 || len(page.Items) != 1 {
		t.Errorf("%d, %+v", seen, page)
	}
}
