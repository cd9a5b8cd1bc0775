package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hongbao/internal/dataformat"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/migrations"
)

// providerName is the provider whose hold is checked: the only one.
const providerName = "sandbox"

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
	seen, err := db.Examine(ctx)
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
	d.checkSeedKey(ctx, db)
	d.checkAccount(ctx, db)
	state, err := db.ProviderState(ctx, providerName)
	if err != nil {
		d.add("provider hold", verdictWrong, "Check MySQL.", "The hold of the provider could not be read: %v", err)
	} else {
		d.checkHold(state)
	}
	v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
	if err := store.NewHealthReader(db).Read(ctx, &v); err != nil {
		d.add("backlogs", verdictWrong, "Check MySQL.", "The backlogs could not be read: %v", err)
		return
	}
	d.checkBacklogs(v)
}

// flushAtCommitAdvice is the next step when commits are not durable.
const flushAtCommitAdvice = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and set it in the server's configuration, before you use " +
	"real money."

func (d *doctor) checkMySQLServer(seen store.Examination) {
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
func (d *doctor) checkSeedKey(ctx context.Context, db *store.Store) {
	if !d.configured("seed key", "seed-key") {
		return
	}
	id, sealed, err := db.NewestSeed(ctx)
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

// checkAccount checks that the payments in MySQL belong to the configured provider account.
func (d *doctor) checkAccount(ctx context.Context, db *store.Store) {
	if !d.configured("provider account", "provider-account") {
		return
	}
	kept, err := db.SavedAdapter(ctx)
	acts := payout.Adapter{Provider: providerName, Account: d.config.text("provider-account")}
	switch {
	case err != nil:
		d.add("provider account", verdictWrong, "Check MySQL.", "The account of its payments could not be read: %v", err)
	case kept == (payout.Adapter{}):
		d.ok("provider account", "The first start of a worker or API will store %s.", acts)
	case kept != acts:
		d.add("provider account", verdictWrong, "Correct HONGBAO_PROVIDER_ACCOUNT, HONGBAO_PROVIDER_URL and HONGBAO_PROVIDER_KEY "+
			"(docs/runbook.md#provider-account). Until then no process starts.", "MySQL holds the payments of %s, the settings name %s.",
			kept, acts)
	default:
		d.ok("provider account", "MySQL holds the payments of %s, as configured.", kept)
	}
}

// ageLimit holds the ages from which a backlog is a warning or a fault.
type ageLimit struct {
	warn, wrong time.Duration // 0: never
	what        string
	do          string
}

// checkBacklog judges a backlog by the age of its oldest entry: a large backlog is harmless while it moves.
func (d *doctor) checkBacklog(check string, b observe.Backlog, l ageLimit) {
	if b.Waiting == 0 {
		d.ok(check, "No %s.", l.what)
		return
	}
	age := max(0, d.now().Sub(b.Oldest))
	says := fmt.Sprintf("%d %s, the oldest for %v.", b.Waiting, l.what, age.Round(time.Second))
	switch {
	case l.wrong > 0 && age > l.wrong:
		d.add(check, verdictWrong, l.do, "%s", says)
	case l.warn > 0 && age > l.warn:
		d.add(check, verdictWarning, l.do, "%s", says)
	default:
		d.ok(check, "%s", says)
	}
}

// anyAge is a limit for backlogs that need attention at any age.
const anyAge = time.Nanosecond

// listCommands returns the commands that list payments in these statuses. Charges have no list: a packet whose charge has
// no outcome is funding.
func listCommands(all []observe.PaymentBacklog, statuses ...payout.Status) string {
	var out []string
	for _, p := range all {
		if p.Waiting == 0 || !slices.Contains(statuses, payout.Status(p.Status)) {
			continue
		}
		line := "hongbao payouts list --status " + p.Status // share conflicts too
		switch p.Kind {
		case "charge":
			line = "hongbao packets list --status funding"
		case "refund":
			line = "hongbao refunds list --status " + p.Status
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, ", ")
}

// addBacklogs adds two backlogs.
func addBacklogs(a, b observe.Backlog) observe.Backlog { return a.Add(b) }

// checkLanes checks that Redis and MySQL hold everything that was acknowledged (R9, R13).
func (d *doctor) checkLanes(v observe.HealthSnapshot) {
	var shut observe.Backlog
	var states []string
	for _, g := range v.Lanes {
		if g.State != string(packet.LaneOpen) && g.Waiting > 0 {
			shut = addBacklogs(shut, g.Backlog)
			states = append(states, fmt.Sprintf("%d %s", g.Waiting, g.State))
		}
	}
	switch {
	case shut.Waiting > 0:
		d.add("gates", verdictWrong, "hongbao pool status; workers rebuild these lanes from MySQL, unless "+
			"HONGBAO_POOL_REBUILD is manual: then hongbao pool rebuild --all. Until then creates and grabs of these lanes get 503.",
			"Lanes of Redis that lost data or may have lost data: %s, the first since %s.", strings.Join(states, ", "), formatTime(shut.Oldest))
	case v.LostGrabs > 0:
		d.add("gates", verdictWarning, "Compare with users' reports; docs/guarantees.md says when acknowledged grabs can be lost.",
			"All lanes are open, but up to %d acknowledged grabs may have been lost before.", v.LostGrabs)
	default:
		d.ok("gates", "All lanes in use are open.")
	}
	if v.MySQLRestored {
		d.add("books", verdictWrong, "hongbao recover: read its --help first. Until then nothing is sent, decided or closed.",
			"MySQL was restored from a backup and lacks later payments.")
	} else {
		d.ok("books", "MySQL is not older than the last heartbeat in Redis.")
	}
}

// failedLists holds the commands that list payments waiting for a decision, by reason.
var failedLists = map[string]string{string(staff.ReasonPayoutFailed): "hongbao payouts list --status failed",
	string(staff.ReasonPayoutReturned): "hongbao payouts list --status returned",
	string(staff.ReasonRefundFailed):   "hongbao refunds list --status failed",
	string(staff.ReasonRefundReturned): "hongbao refunds list --status returned"}

// checkFailedPayments checks the payments that wait for a decision, as on the console's overview.
func (d *doctor) checkFailedPayments(v observe.HealthSnapshot) {
	var all observe.Backlog
	var lists []string
	fen := int64(0)
	for _, due := range v.Decisions {
		if list, is := failedLists[due.Reason]; is && due.Waiting > 0 {
			all, lists, fen = addBacklogs(all, due.Backlog), append(lists, list), fen+due.Fen
		}
	}
	what := "failed or returned payments that wait for a decision"
	if fen > 0 {
		what += ", " + formatYuan(money.Fen(fen)) + " in all"
	}
	d.checkBacklog("failed payments", all, ageLimit{warn: anyAge, what: what,
		do: strings.Join(lists, ", ") + "; docs/finance.md describes each case."})
}

// checkHolds checks the active holds of packets and payments.
func (d *doctor) checkHolds(v observe.HealthSnapshot) {
	what := "active holds of packets and payments"
	if v.HeldFen > 0 {
		what += ", which stop " + formatYuan(money.Fen(v.HeldFen))
	}
	if v.Releases.Waiting > 0 {
		what += fmt.Sprintf(" (%d releases wait for a second person)", v.Releases.Waiting)
	}
	d.checkBacklog("holds", v.HeldItems(), ageLimit{warn: anyAge, what: what,
		do: "hongbao holds list; hongbao holds show states what a release lets go. Release what has no cause any more."})
}

// checkBacklogs checks the backlogs by the limits of docs/metrics.md.
func (d *doctor) checkBacklogs(v observe.HealthSnapshot) {
	d.checkHolds(v)
	d.checkLanes(v)
	byStatus := map[string]observe.Backlog{}
	for _, p := range v.Payments {
		byStatus[p.Status] = addBacklogs(byStatus[p.Status], p.Backlog)
	}
	moving := addBacklogs(byStatus["pending"], byStatus["sending"])
	d.checkBacklog("payments under way", moving, ageLimit{wrong: observe.MovingMaxAge,
		what: "payments that are due or without an answer",
		do: "Check that workers run, and that the provider answers and is not on hold; the runs in the Temporal UI show what they wait " +
			"for. To list them: " + listCommands(v.Payments, payout.StatusPending, payout.StatusSending) + "."})
	d.checkBacklog("unknown outcomes", byStatus["unknown"], ageLimit{wrong: observe.UnknownMaxAge, what: "payments with an unknown outcome",
		do: listCommands(v.Payments, payout.StatusUnknown) + "; workers query them automatically. Contact the provider about the oldest."})
	d.checkFailedPayments(v)
	var overdue, open, lost observe.Backlog
	for _, p := range v.Overdue {
		overdue = addBacklogs(overdue, p.Backlog)
	}
	for _, b := range v.Breaks {
		open = addBacklogs(open, b.Backlog)
	}
	for _, day := range v.CampaignDays {
		lost = addBacklogs(lost, day.Backlog)
	}
	d.checkBacklog("packets overdue", overdue, ageLimit{wrong: observe.OverdueMaxAge, what: "packets past their expiry that are not closed",
		do: "Check their runs in the Temporal UI; for those that wait for a failed refund: hongbao refunds list --status failed."})
	d.checkBacklog("outbox", v.Outbox, ageLimit{wrong: observe.OutboxMaxAge, what: "outbox entries whose run is not started or woken",
		do: "Check that workers run and Temporal answers."})
	d.checkBacklog("approvals", v.Approvals, ageLimit{warn: observe.ApprovalWarnAge, what: "decisions that wait for approval",
		do: "hongbao approvals list --status waiting"})
	d.checkBacklog("reconciliation", v.Unreconciled, ageLimit{warn: anyAge, what: "days that were not compared with the provider's statement",
		do: "hongbao reconcile list --status failed names the cause. Workers retry; hongbao reconcile start retries at once."})
	d.checkBacklog("campaigns", v.Campaigns, ageLimit{warn: 3 * time.Minute, what: "campaign days whose packet is overdue",
		do: "Check that workers run, and read the failures of the runs campaign/<id> in the Temporal UI."})
	d.checkBacklog("campaign days", lost, ageLimit{warn: anyAge, what: "campaign days without a grabbable packet, in the last 24 h",
		do: "docs/runbook.md, HongbaoCampaignDayLost, describes how to find them. The app can create packets for them."})
	if age := d.now().Sub(v.Reconciled); !v.Reconciled.IsZero() && age > observe.ReconciledWarnAge {
		d.add("last reconciliation", verdictWarning, "Check that workers run, and read hongbao reconcile list; run hongbao reconcile start "+
			"--date <day> --reason <text> --wait for each missing day.",
			"No day was compared with the provider's statement for %v.", age.Round(time.Second))
	} else {
		d.ok("last reconciliation", "Within the last %v.", observe.ReconciledWarnAge)
	}
	d.checkBacklog("breaks", open, ageLimit{warn: anyAge, what: "breaks that wait for a decision", do: "hongbao reconcile breaks --open"})
	if v.Quarantined > 0 {
		d.add("quarantine", verdictWrong, "Read the table quarantine and the worker's log: these may be claims that are not paid.",
			"%d hand-offs could not be decoded.", v.Quarantined)
	} else {
		d.ok("quarantine", "No hand-off is in quarantine.")
	}
	switch {
	case v.Imbalanced > 0:
		d.add("ledger", verdictWrong, "hongbao ledger verify, at once.", "The ledger of %d recently posted packets does not balance.",
			v.Imbalanced)
	case v.Suspense > 0:
		d.add("ledger", verdictWarning, "hongbao reconcile breaks --open --kind second_success: recover the money.", "%d fen have moved twice.",
			v.Suspense)
	default:
		d.ok("ledger", "Recent postings balance; \"hongbao ledger verify\" checks all of them.")
	}
}
