package main

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/test/harness"
)

// TestStartWithAnotherAccount: the payments in MySQL are of one account at the provider. A
// process with another one does not start, names the setting and changes nothing.
func TestStartWithAnotherAccount(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	db, err := store.Open(store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	kept := payout.Adapter{Provider: "sandbox", Account: "1900007291"}
	if err := db.BindProvider(t.Context(), providerKind, kept); err != nil {
		t.Fatal(err)
	}
	env := []string{"HONGBAO_MYSQL_DSN=" + dsn, "HONGBAO_REDIS_ADDR=" + stacktest.Redis(t), "HONGBAO_LANES=" + strconv.Itoa(harness.Lanes),
		"HONGBAO_TEMPORAL_ADDRESS=127.0.0.1:1", "HONGBAO_PROVIDER_URL=http://127.0.0.1:1", "HONGBAO_PROVIDER_KEY=k",
		"HONGBAO_SEED_KEY=" + strings.Repeat("0f", 32), "HONGBAO_SESSION_KEY=" + strings.Repeat("5e", 32),
		"HONGBAO_SANDBOX_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	for _, account := range []string{"", "HONGBAO_PROVIDER_ACCOUNT=1900007292"} { // the default is another one too
		for command, own := range map[string][]string{"worker": nil, "recover --by ann": nil,
			"api": {"HONGBAO_API_LISTEN=" + freeAddress(t), "HONGBAO_STAFF_LISTEN=" + freeAddress(t)}} {
			var log logBuffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // one that starts would run on
			defer cancel()
			environ := append(append([]string{account}, env...), own...)
			code := execute(ctx, strings.Fields(command), environ, &log, &log)
			if code != exitUsage || ctx.Err() != nil {
				t.Errorf("%s: exit code %d, %s", command, code, log.String())
			}
			for _, says := range []string{"HONGBAO_PROVIDER_ACCOUNT", kept.String(), "docs/runbook.md#provider-account"} {
				if !strings.Contains(log.String(), says) {
					t.Errorf("%s does not say %q: %s", command, says, log.String())
				}
			}
		}
	}
	if now, err := db.ProviderAccount(t.Context(), providerName); err != nil || now != kept {
		t.Errorf("%v, %v", now, err)
	}
}

// TestFirstStartKeepsTheAccount: the account of the first start is kept, and the same again is
// taken. A MySQL that is away keeps nobody from starting: grabs need none.
func TestFirstStartKeepsTheAccount(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	acts := payout.Adapter{Provider: "sandbox", Account: "1900007291"}
	var log logBuffer
	for range 2 {
		db, err := openForProvider(t.Context(), store.Config{DSN: dsn}, acts, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := db.ProviderAccount(t.Context(), providerName); err != nil || kept != acts {
			t.Errorf("%v, %v", kept, err)
		}
		_ = db.Close()
	}
	db, err := openForProvider(t.Context(), store.Config{DSN: "u:p@tcp(127.0.0.1:1)/x"}, acts, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "The provider account could not be compared") {
		t.Errorf("%v, %s", err, log.String())
	}
	_ = db.Close()
}
