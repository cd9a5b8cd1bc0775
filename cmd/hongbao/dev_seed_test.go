package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"hongbao/devstack"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/provider"
	"hongbao/provider/sandbox"
	"hongbao/store"
)

// TestSeed fills the books of a new home and looks at both sides of them.
func TestSeed(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	seed := func(more ...string) (int, string) {
		var out bytes.Buffer
		args := append([]string{"dev", "seed", "--home", home, "--no-install", "--days", "3", "--payouts", "400"}, more...)
		return execute(t.Context(), args, nil, &out, &out), out.String()
	}
	if code, text := seed(); code != exitOK || !strings.Contains(text, "400 / 400") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	if code, text := seed(); code == exitOK || !strings.Contains(text, "make reset") {
		t.Errorf("a second past: exit code %d: %s", code, text)
	}
	tools, err := setUp(t.Context(), devstack.Setup{NoInstall: true, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	err = devstack.OpenBooks(t.Context(), home, tools, prepare, func(ctx context.Context, books devstack.Books) error {
		if code, text := seed(); code == exitOK || !strings.Contains(text, "already running") {
			t.Errorf("a past for books that are in use: exit code %d: %s", code, text)
		}
		seededBooks(ctx, t, books)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// seededBooks compares the books with what the provider has moved, packet by packet.
func seededBooks(ctx context.Context, t *testing.T, books devstack.Books) {
	t.Helper()
	db, err := store.Open(store.Config{DSN: books.MySQLDSN})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	found, err := db.VerifyLedger(ctx, func(v payout.Violation) error {
		t.Errorf("%+v", v)
		return nil
	})
	if err != nil || found.Payments < 400 {
		t.Fatalf("%+v, %v", found, err)
	}
	server, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: books.ProviderDB, APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	defer func() {
		stop()
		if err := errors.Join(<-served, server.Close()); err != nil {
			t.Error(err)
		}
	}()
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://" + server.Addr().String(), APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	defer pay.Close()
	packets, err := db.Packets(ctx, packet.RecordFilter{Limit: 1000})
	if err != nil || int64(len(packets)) != found.Packets {
		t.Fatalf("%d packets of %d, %v", len(packets), found.Packets, err)
	}
	for _, p := range packets {
		moved, err := pay.Totals(ctx, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		booked, err := db.Balances(ctx, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := payout.ProviderTotals{Charged: booked.ByKind[payout.PostCharge], Transferred: booked.ByKind[payout.PostPaid],
			Returned: booked.ByKind[payout.PostReturned], Refunded: booked.ByKind[payout.PostRefunded]}
		if moved != want {
			t.Errorf("packet %s: the provider moved %+v, booked is %+v", p.ID, moved, want)
		}
		if _, err := packet.OpenSeed(key32(Secret{books.SeedKey}), p.ID, p.SealedSeed); err != nil {
			t.Error(err)
		}
	}
}
