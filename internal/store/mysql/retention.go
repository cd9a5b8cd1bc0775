package mysql

import (
	"time"

	"hongbao/internal/staff"
)

// atEnd selects payments that are final since before a time. Failed and returned ones wait for
// staff, except charges: nothing more happens to them.
const atEnd = "COALESCE((p.status IN ('paid', 'paid_outside', 'cancelled') OR p.kind = 'c' AND p.status IN ('failed', 'returned')) " +
	"AND p.settled_at < @before, FALSE)"

// noneOrEnded is atEnd, or without a payment.
const noneOrEnded = "(p.id IS NULL OR " + atEnd + ")"

// Retained describes how old rows of a table are read and removed.
type Retained struct {
	From   string   // the table as b, its index and joins
	ID, At string   // row number ("" without one) and age
	Key    []string // columns of the primary key
	Gone   string   // rows that may be removed, age apart
}

// RetainedTables are the tables of staff.Retentions.
var RetainedTables = map[staff.RetainedTable]Retained{
	staff.RetainedNotifications: {Key: []string{"provider", "event_id"}, At: "received_at", Gone: noneOrEnded,
		From: "notifications b FORCE INDEX (notifications_received) LEFT JOIN attempts a ON a.order_no = b.order_no " +
			"LEFT JOIN payments p ON p.id = a.payment_id"},
	staff.RetainedEvents: {Key: []string{"id"}, ID: "id", At: "at", Gone: atEnd,
		From: "payment_events b FORCE INDEX (PRIMARY) LEFT JOIN payments p ON p.id = b.payment_id"},
	staff.RetainedLines: {Key: []string{"id"}, ID: "id", At: "created_at",
		Gone: noneOrEnded + " AND NOT EXISTS (SELECT 1 FROM breaks k FORCE INDEX (breaks_subject) WHERE k.payment_id = COALESCE(p.id, '') " +
			"AND k.order_no = b.order_no AND k.resolved_at IS NULL)",
		From: "statement_lines b FORCE INDEX (PRIMARY) LEFT JOIN attempts a ON a.order_no = b.order_no " +
			"LEFT JOIN payments p ON p.id = a.payment_id"},
	staff.RetainedStaffIdempotency: {Key: []string{"owner", "route", "idem_key"}, At: "created_at", Gone: "TRUE",
		From: "staff_idempotency b FORCE INDEX (staff_idempotency_created)"},
	staff.RetainedDecisions: {Key: []string{"id"}, At: "created_at",
		Gone: atEnd + " AND b.status <> 'open' AND COALESCE(b.ended_at, b.expires_at) < @before",
		From: "decisions b FORCE INDEX (decisions_created) LEFT JOIN payments p ON p.id = b.payment_id"},
	staff.RetainedBreaks: {Key: []string{"id"}, At: "resolved_at", Gone: noneOrEnded,
		From: "breaks b FORCE INDEX (breaks_open) LEFT JOIN payments p ON p.id = b.payment_id"},
	staff.RetainedQuarantine: {Key: []string{"lane", "entry_id"}, At: "created_at", Gone: "TRUE",
		From: "quarantine b FORCE INDEX (quarantine_created)"},
}

// RetentionRow is a row of retention.
type RetentionRow struct {
	Name    string
	Removed int64
}

// TableName names the table.
func (RetentionRow) TableName() string { return "retention" }

// EverBefore is before every row. As a lower bound it makes the whole index a range, read from its
// end up to the limit; EXPLAIN distinguishes that from a scan.
var EverBefore = time.Unix(0, 0).UTC()
