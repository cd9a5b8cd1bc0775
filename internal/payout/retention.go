package payout

import "time"

// Retained is a table whose old rows are removed.
type RetainedTable string

// The tables. Every other one keeps its rows for ever, grows by a row a day, or removes
// them by itself.
const (
	RetainedNotifications    RetainedTable = "notifications"
	RetainedEvents           RetainedTable = "payment_events"
	RetainedLines            RetainedTable = "statement_lines"
	RetainedStaffIdempotency RetainedTable = "staff_idempotency"
	RetainedDecisions        RetainedTable = "decisions"
	RetainedBreaks           RetainedTable = "breaks"
	RetainedQuarantine       RetainedTable = "quarantine"
)

// Retention says for how long rows of a table are kept at least, in days.
type Retention struct {
	Table RetainedTable
	Days  int64  // unless it is configured
	Least int64  // less is refused, 0 apart: for ever
	What  string // the rows, for the help of the setting
}

// Retentions are the tables, with what finance and audit need of them. Statement lines,
// breaks and decisions are records of accounts, kept for ten years. A staff write is
// repeated under its key while its packet lives, which opens up to 366 days ahead and
// stays open for seven, and seven days longer.
var Retentions = []Retention{
	{RetainedNotifications, 180, 30, "notifications of providers about payments at their end"},
	{RetainedEvents, 400, 90, "timelines of payments at their end"},
	{RetainedLines, 3650, 400, "lines of the provider's statements about payments at their end"},
	{RetainedStaffIdempotency, 400, 381, "answers to staff writes, for repeats under the same Idempotency-Key"},
	{RetainedDecisions, 3650, 400, "decisions that have ended, about payments at their end; the audit keeps what it says of them"},
	{RetainedBreaks, 3650, 400, "breaks that were resolved, about payments at their end"},
	{RetainedQuarantine, 400, 90, "hand-offs that could not be decoded"},
}

// RetentionCursor is how far the removal of a turn has come: behind a row of a table that is
// read by its numbers, else behind the first Kept of those of At that stay.
type RetentionCursor struct {
	ID   int64
	At   time.Time
	Kept int
}
