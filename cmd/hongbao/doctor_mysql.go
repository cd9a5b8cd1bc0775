package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"hongbao/internal/dataformat"
	"hongbao/internal/health"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/migrations"
)

// checkMySQL checks MySQL, its schema, and the work that its rows show as due.
func (d *doctor) checkMySQL(ctx context.Context) {
	if !d.configured("mysql", "mysql-dsn") {
		return
	}
	dsn := d.config.secret("mysql-dsn").Reveal()
	db, err := store.Open(store.Config{DSN: dsn, MaxOpenConns: 2})
	if err != nil {
		d.add("mysql", verdictWrong, "Correct HONGBAO_MYSQL_DSN.", "%v", err)
		return
	}
	defer func() { _ = db.Close() }()
	reports := report.New(db.MySQL())
	seen, err := reports.Examine(ctx)
	if do := mysqlAdvice(err); do != "" {
		d.add("mysql", verdictWrong, do+" Until then grabs are acknowledged, and payouts wait.", "MySQL refuses the connection: %v", err)
		return
	}
	if err != nil {
		d.add("mysql", verdictWrong, "Start it, or correct HONGBAO_MYSQL_DSN. Until then grabs are acknowledged, and payouts wait.",
			"MySQL does not answer: %v", err)
		return
	}
	d.checkMySQLServer(seen)
	if !d.checkMigrations(ctx, dsn) {
		d.add("backlogs", verdictSkipped, "Migrate first: hongbao migrate up.", "Not checked: the schema is not the one of this version.")
		return
	}
	d.checkSeedKey(ctx, reports)
	pays := d.checkAccounts(ctx, db)
	v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
	reader := report.NewHealthReader(reports)
	reader.LowBalance = money.Fen(d.config.number("low-balance"))
	if pays != nil {
		defer pays.Close()
		reader.Providers = pays.Names()
		d.checkPayable(ctx, reports, pays)
	}
	if err := reader.Read(ctx, &v); err != nil {
		d.add("backlogs", verdictWrong, "Check MySQL.", "The backlogs could not be read: %v", err)
		return
	}
	d.judge(v, health.MySQL)
}

// flushAtCommitAdvice is the next step when commits are not durable.
const flushAtCommitAdvice = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and set it in the server's configuration, before you use " +
	"real money."

func (d *doctor) checkMySQLServer(seen report.Examination) {
	version, least := seen.Version, []int{8, 4}
	if strings.Contains(version, "MariaDB") {
		least = []int{10, 11}
	}
	if olderThan(version, least...) {
		d.add("mysql", verdictWrong, "Use MySQL 8.4 or MariaDB 10.11, or newer.", "The server has version %s.", version)
	} else {
		d.ok("mysql", "%s answers.", version)
	}
	if seen.Isolation != "READ-COMMITTED" {
		d.add("mysql isolation", verdictWrong, "A proxy between this program and MySQL resets session variables: remove it, "+
			"or configure it to keep them.",
			"Our connections run at %s instead of READ-COMMITTED.", seen.Isolation)
	} else {
		d.ok("mysql isolation", "Our connections run at READ-COMMITTED.")
	}
	switch {
	case seen.FlushAtCommit == "2":
		d.add("mysql durability", verdictWarning, flushAtCommitAdvice, "innodb_flush_log_at_trx_commit is 2: a crash of the machine (not of "+
			"MySQL alone) loses up to a second of commits.")
	case seen.FlushAtCommit != "1":
		d.add("mysql durability", verdictWrong, flushAtCommitAdvice,
			"innodb_flush_log_at_trx_commit is %s: every crash loses acknowledged commits.", seen.FlushAtCommit)
	case seen.LogBin && seen.SyncBinlog != "1":
		d.add("mysql durability", verdictWarning, "SET GLOBAL sync_binlog = 1, and set it in the server's configuration.",
			"sync_binlog is %s: a crash of the machine may leave replicas without the last commits.", seen.SyncBinlog)
	default:
		d.ok("mysql durability", "Acknowledged commits are on disk.")
	}
	d.checkClock("clock of mysql", "MySQL", seen.Ahead)
}

// checkMigrations checks the schema; false means that this version cannot read it.
func (d *doctor) checkMigrations(ctx context.Context, dsn string) bool {
	db, err := store.OpenSQL(dsn)
	if err != nil {
		d.add("migrations", verdictWrong, "Correct HONGBAO_MYSQL_DSN.", "%v", err)
		return false
	}
	defer func() { _ = db.Close() }()
	missing, unknown, err := migrations.Difference(ctx, db)
	_, other := errors.AsType[*dataformat.Error](err)
	switch {
	case other:
		d.add("migrations", verdictWrong, otherFormatAdvice, "%v", err)
	case err != nil:
		d.add("migrations", verdictWrong, "Check MySQL and the rights of its user.", "%v", err)
	case len(missing) > 0:
		d.add("migrations", verdictWrong, "hongbao migrate up", "%d migrations are missing, the first is %s.", len(missing), missing[0])
	case len(unknown) > 0:
		d.add("migrations", verdictWarning, "Use the version that applied them; an older one may not understand their data.",
			"%d migrations are newer than this version, the last is number %d.", len(unknown), unknown[len(unknown)-1])
		return true
	default:
		d.ok("migrations", "All migrations are applied.")
		return true
	}
	return false
}

// checkSeedKey checks that the configured key decrypts the newest seed.
func (d *doctor) checkSeedKey(ctx context.Context, reports *report.Source) {
	if !d.configured("seed key", "seed-key") {
		return
	}
	id, sealed, err := reports.NewestSeed(ctx)
	if err != nil {
		d.add("seed key", verdictWrong, "Check MySQL.", "No encrypted seed could be read: %v", err)
		return
	}
	if id == "" {
		d.ok("seed key", "There is no packet yet.")
		return
	}
	if _, err := packet.OpenSeed(key32(d.config.secret("seed-key")), id, sealed); err != nil {
		d.add("seed key", verdictWrong, "Set HONGBAO_SEED_KEY, for every process, to the key with which packets were created: without it no "+
			"packet "+
			"closes with its seed.", "The key does not decrypt the seed of the newest packet: %v.", err)
		return
	}
	d.ok("seed key", "The key decrypts the seed of the newest packet.")
}

// checkAccounts checks that the payments in MySQL belong to the configured provider accounts, and returns the configured
// providers, which the caller closes; nil: they could not be opened.
func (d *doctor) checkAccounts(ctx context.Context, db *store.Store) *providers {
	pays := d.openProviders("provider account")
	if pays == nil {
		return nil
	}
	for _, p := range pays.All() {
		d.checkAccount(ctx, db, p.Limits().Adapter)
	}
	return pays
}

// checkPayable compares what each provider may still have to pay out with what our account there holds.
func (d *doctor) checkPayable(ctx context.Context, reports *report.Source, pays *providers) {
	var v observe.HealthSnapshot
	if err := (&providerBalances{providers: pays.All(), payable: reports.Payable}).source(ctx, &v); err != nil {
		d.add("payable", verdictWrong, "Check MySQL.", "What the providers may still have to pay out could not be read: %v", err)
		return
	}
	for _, a := range v.Accounts {
		holds := "what our account holds is unknown"
		if a.Known {
			holds = "our account holds " + formatAmount(money.Fen(a.Available))
		}
		d.ok("payable", "%s may still have to pay out %s; %s.", a.Provider, formatAmount(money.Fen(a.Payable)), holds)
	}
	d.judge(v, health.Providers)
}

func (d *doctor) checkAccount(ctx context.Context, db *store.Store, acts payout.Adapter) {
	kept, err := db.ProviderAccount(ctx, acts.Provider)
	switch {
	case err != nil:
		d.add("provider account", verdictWrong, "Check MySQL.", "The account of its payments could not be read: %v", err)
	case kept == (payout.Adapter{}):
		d.ok("provider account", "The first start of a worker or API will store %s.", acts)
	case kept != acts:
		d.add("provider account", verdictWrong, "Correct HONGBAO_PROVIDER_ACCOUNT, HONGBAO_PROVIDER_URL and HONGBAO_PROVIDER_KEY, or "+
			"HONGBAO_PROVIDERS_FILE "+
			"(docs/runbook.md#provider-account). Then release its hold.", "MySQL holds the payments of %s, the settings name %s.",
			kept, acts)
	default:
		d.ok("provider account", "MySQL holds the payments of %s, as configured.", kept)
	}
}
