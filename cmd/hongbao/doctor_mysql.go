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
	"hongbao/internal/store"
	"hongbao/migrations"
)

// providerName is the provider whose hold is looked at: the only one.
const providerName = "sandbox"

// mysql judges MySQL and what its rows say of work that is left.
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
		d.add("mysql", verdictWrong, do+" Grabs go on and wait; nobody is paid until then.", "MySQL refuses us: %v", err)
		return
	}
	if err != nil {
		d.add("mysql", verdictWrong, "Start it, or correct HONGBAO_MYSQL_DSN. Grabs go on and wait; nobody is paid until it is back.",
			"MySQL does not answer: %v", err)
		return
	}
	d.checkMySQLServer(seen)
	if !d.checkMigrations(ctx, dsn) {
		d.add("backlogs", verdictSkipped, "Migrate first.", "Not looked at: the schema is not the one this program knows.")
		return
	}
	d.checkSeedKey(ctx, db)
	d.checkAccount(ctx, db)
	state, err := db.ProviderState(ctx, providerName)
	if err != nil {
		d.add("provider hold", verdictWrong, "See to MySQL.", "Whether the provider is held could not be read: %v", err)
	} else {
		d.checkHold(state)
	}
	v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
	if err := store.NewHealthReader(db).Read(ctx, &v); err != nil {
		d.add("backlogs", verdictWrong, "See to MySQL.", "What waits could not be read: %v", err)
		return
	}
	d.checkBacklogs(v)
}

// flushAtCommitAdvice is what to do when commits are not on the disk.
const flushAtCommitAdvice = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in the server's configuration, before money is real."

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
		d.add("mysql isolation", verdictWrong, "Something between this program and MySQL resets what connections were set to: go without it, "+
			"or have it keep session variables.",
			"Our connections run at %s instead of READ-COMMITTED.", seen.Isolation)
	} else {
		d.ok("mysql isolation", "Our connections run at READ-COMMITTED.")
	}
	switch {
	case seen.FlushAtCommit == "2":
		d.add("mysql durability", verdictWarning, flushAtCommitAdvice, "innodb_flush_log_at_trx_commit is 2: a crash of its machine, not one of "+
			"MySQL alone, forgets up to a second of bookings.")
	case seen.FlushAtCommit != "1":
		d.add("mysql durability", verdictWrong, flushAtCommitAdvice,
			"innodb_flush_log_at_trx_commit is %s: every crash forgets bookings that were "+
				"acknowledged.", seen.FlushAtCommit)
	case seen.LogBin && seen.SyncBinlog != "1":
		d.add("mysql durability", verdictWarning, "SET GLOBAL sync_binlog = 1, and in the server's configuration.",
			"sync_binlog is %s: a crash of the machine may leave replicas without the last bookings.", seen.SyncBinlog)
	default:
		d.ok("mysql durability", "What MySQL acknowledges is on its disk.")
	}
	d.checkClock("clock of mysql", "MySQL", seen.Ahead)
}

// migrated judges the schema; false: it is not fit to be read.
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
		d.add("migrations", verdictWrong, "See to MySQL, and to what its user may read.", "%v", err)
	case len(missing) > 0:
		d.add("migrations", verdictWrong, "hongbao migrate up", "%d are missing, the first is %s.", len(missing), missing[0])
	case len(unknown) > 0:
		d.add("migrations", verdictWarning, "Use the version that applied them; an older one may not understand what it finds.",
			"%d are newer than this program, the last is number %d.", len(unknown), unknown[len(unknown)-1])
		return true
	default:
		d.ok("migrations", "All are applied.")
		return true
	}
	return false
}

// checkSeedKey sees whether the key that seals seeds is the one that was used.
func (d *doctor) checkSeedKey(ctx context.Context, db *store.Store) {
	if !d.configured("seed key", "seed-key") {
		return
	}
	id, sealed, err := db.NewestSeed(ctx)
	if err != nil {
		d.add("seed key", verdictWrong, "See to MySQL.", "No sealed seed could be read: %v", err)
		return
	}
	if id == "" {
		d.ok("seed key", "There is no packet yet that it has to open.")
		return
	}
	if _, err := packet.OpenSeed(key32(d.config.secret("seed-key")), id, sealed); err != nil {
		d.add("seed key", verdictWrong, "Set HONGBAO_SEED_KEY to the key that packets were made with, for every process: without it no packet "+
			"closes with its seed.", "It does not open the seed of the newest packet: %v.", err)
		return
	}
	d.ok("seed key", "It opens the seed of the newest packet.")
}

// account sees whether MySQL has the payments of the account that would be acted for.
func (d *doctor) checkAccount(ctx context.Context, db *store.Store) {
	if !d.configured("provider account", "provider-account") {
		return
	}
	kept, err := db.SavedAdapter(ctx)
	acts := payout.Adapter{Provider: providerName, Account: d.config.text("provider-account")}
	switch {
	case err != nil:
		d.add("provider account", verdictWrong, "See to MySQL.", "Whose payments it has could not be read: %v", err)
	case kept == (payout.Adapter{}):
		d.ok("provider account", "The first start of a worker or API keeps %s.", acts)
	case kept != acts:
		d.add("provider account", verdictWrong, "Correct HONGBAO_PROVIDER_ACCOUNT, HONGBAO_PROVIDER_URL and HONGBAO_PROVIDER_KEY "+
			"(docs/runbook.md#provider-account). Until then no process starts.", "MySQL has the payments of %s, and the settings say %s.",
			kept, acts)
	default:
		d.ok("provider account", "MySQL has the payments of %s, as the settings say.", kept)
	}
}

// limit says when a backlog is too old.
type ageLimit struct {
	warn, wrong time.Duration // 0: never
	what        string
	do          string
}

// backlog judges by the age of the oldest: many are no harm while they move.
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

// now and then something waits; always says that this is worth a look.
const anyAge = time.Nanosecond

// listed are the commands that list payments in these statuses. Charges are in no list
// of their own: a packet whose charge has no answer yet is funding.
func listCommands(all []observe.PaymentBacklog, statuses ...payout.Status) string {
	var out []string
	for _, p := range all {
		if p.Waiting == 0 || !slices.Contains(statuses, payout.Status(p.Status)) {
			continue
		}
		line := "hongbao payouts list --status " + p.Status // promises too
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

// oldest adds backlogs up.
func addBacklogs(a, b observe.Backlog) observe.Backlog { return a.Add(b) }

// trust judges whether Redis and MySQL have everything that was promised (rules R9, R13).
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
		d.add("gates", verdictWrong, "hongbao pool status; workers make these lanes again from MySQL by themselves, unless "+
			"HONGBAO_POOL_REBUILD is manual: then hongbao pool rebuild --all. Creates and grabs there are answered 503 until then.",
			"Lanes of Redis that lack something, or may: %s, the first since %s.", strings.Join(states, ", "), formatTime(shut.Oldest))
	case v.LostGrabs > 0:
		d.add("gates", verdictWarning, "Compare with what users say they have won: docs/guarantees.md says when acknowledged grabs can be lost.",
			"All are open, but up to %d grabs may have been lost before.", v.LostGrabs)
	default:
		d.ok("gates", "All that are in use are open.")
	}
	if v.MySQLRestored {
		d.add("books", verdictWrong, "hongbao recover: read its --help first. Until then no number, no decision and no closing of books.",
			"MySQL is older than reality: it was restored from a backup.")
	} else {
		d.ok("books", "MySQL is not older than what Redis has seen of it.")
	}
}

// failedLists are the commands that list the payments that wait for a decision, by reason.
var failedLists = map[string]string{string(payout.ReasonPayoutFailed): "hongbao payouts list --status failed",
	string(payout.ReasonPayoutReturned): "hongbao payouts list --status returned",
	string(payout.ReasonRefundFailed):   "hongbao refunds list --status failed",
	string(payout.ReasonRefundReturned): "hongbao refunds list --status returned"}

// failed judges the payments that wait for a decision, as the console's overview lists them.
func (d *doctor) checkFailedPayments(v observe.HealthSnapshot) {
	var all observe.Backlog
	var lists []string
	fen := int64(0)
	for _, due := range v.Decisions {
		if list, is := failedLists[due.Reason]; is && due.Waiting > 0 {
			all, lists, fen = addBacklogs(all, due.Backlog), append(lists, list), fen+due.Fen
		}
	}
	what := "payments that failed or came back and wait for a person"
	if fen > 0 {
		what += ", " + formatYuan(money.Fen(fen)) + " in all"
	}
	d.checkBacklog("failed payments", all, ageLimit{warn: anyAge, what: what,
		do: strings.Join(lists, ", ") + "; docs/finance.md says how each is mended."})
}

// vitals judges what waits, by the limits of docs/metrics.md.
func (d *doctor) checkBacklogs(v observe.HealthSnapshot) {
	d.checkLanes(v)
	byStatus := map[string]observe.Backlog{}
	for _, p := range v.Payments {
		byStatus[p.Status] = addBacklogs(byStatus[p.Status], p.Backlog)
	}
	moving := addBacklogs(byStatus["pending"], byStatus["sending"])
	d.checkBacklog("payments under way", moving, ageLimit{wrong: observe.MovingMaxAge,
		what: "payments that are to be sent or were not answered",
		do: "See whether workers run, the provider answers and nobody holds it; the runs in the Temporal UI say what they wait for. They are " +
			"in: " + listCommands(v.Payments, payout.StatusPending, payout.StatusSending) + "."})
	d.checkBacklog("unknown outcomes", byStatus["unknown"], ageLimit{wrong: observe.UnknownMaxAge, what: "payments whose outcome nobody knows",
		do: listCommands(v.Payments, payout.StatusUnknown) + "; they are asked about by themselves. Ask the provider about the oldest."})
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
		do: "See their runs in the Temporal UI; one that waits for a failed refund: hongbao refunds list --status failed."})
	d.checkBacklog("outbox", v.Outbox, ageLimit{wrong: observe.OutboxMaxAge, what: "runs that are to be started or woken",
		do: "See whether workers run and Temporal answers."})
	d.checkBacklog("approvals", v.Approvals, ageLimit{warn: observe.ApprovalWarnAge, what: "decisions that wait for a second person",
		do: "hongbao approvals list --status waiting"})
	d.checkBacklog("reconciliation", v.Unreconciled, ageLimit{warn: anyAge, what: "days that were not compared with the provider's statement",
		do: "hongbao reconcile list --status failed says why. They are tried again by themselves; hongbao reconcile start does so at once."})
	d.checkBacklog("campaigns", v.Campaigns, ageLimit{warn: 3 * time.Minute, what: "days of campaigns whose packet should have been made",
		do: "See whether workers run, and what the runs of their schedules, campaign/<id> in the Temporal UI, fail of."})
	d.checkBacklog("campaign days", lost, ageLimit{warn: anyAge, what: "days of campaigns without a packet that could be grabbed, in the " +
		"last 24 h",
		do: "docs/runbook.md, HongbaoCampaignDayLost, says how to find out which. The app can make up for them."})
	if age := d.now().Sub(v.Reconciled); !v.Reconciled.IsZero() && age > observe.ReconciledWarnAge {
		d.add("last reconciliation", verdictWarning, "See whether workers run, and what hongbao reconcile list says; hongbao reconcile start "+
			"--date <day> --reason <text> --wait for each day that was left out.",
			"No day was compared with the provider's statement for %v.", age.Round(time.Second))
	} else {
		d.ok("last reconciliation", "Not longer ago than %v.", observe.ReconciledWarnAge)
	}
	d.checkBacklog("breaks", open, ageLimit{warn: anyAge, what: "disagreements that wait for a person", do: "hongbao reconcile breaks --open"})
	if v.Quarantined > 0 {
		d.add("quarantine", verdictWrong, "Read the table quarantine and the worker's log: somebody may have won and not be paid.",
			"%d hand-offs could not be decoded.", v.Quarantined)
	} else {
		d.ok("quarantine", "No hand-off is put aside.")
	}
	switch {
	case v.Imbalanced > 0:
		d.add("ledger", verdictWrong, "hongbao ledger verify, at once.", "The ledger of %d packets posted to lately does not add up.",
			v.Imbalanced)
	case v.Suspense > 0:
		d.add("ledger", verdictWarning, "hongbao reconcile breaks --open --kind second_success: get it back.", "%d fen have moved twice.",
			v.Suspense)
	default:
		d.ok("ledger", "What was posted to lately adds up; \"hongbao ledger verify\" looks at everything.")
	}
}
