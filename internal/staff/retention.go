package staff

import "time"

// RetainedTable is a table whose old rows are removed.
type RetainedTable string

// The tables. Every other table keeps its rows for ever, grows by a row a day, or removes rows by
// itself.
const (
	RetainedNotifications    RetainedTable = "notifications"
	RetainedEvents           RetainedTable = "payment_events"
	RetainedLines            RetainedTable = "statement_lines"
	RetainedStaffIdempotency RetainedTable = "staff_idempotency"
	RetainedDecisions        RetainedTable = "decisions"
	RetainedBreaks           RetainedTable = "breaks"
	RetainedQuarantine       RetainedTable = "quarantine"
)

// Retention is the minimum time that rows of a table are kept, in days.
type Retention struct {
	Table   RetainedTable
	Days    int64  // default
	Minimum int64  // the minimum setting; 0 is allowed and keeps rows for ever
	Rows    string // the rows, for the help text of the setting
}

// Retentions are the tables with the needs of finance and audit. Statement lines, breaks and
// decisions are accounting records, kept for ten years. A staff write may be repeated under its key
// during the life of its packet, which opens up to 366 days ahead and stays open for seven, and for
// seven days after that.
var Retentions = []Retention{
	{RetainedNotifications, 180, 30, "notifications of providers about payments at their end"},
	{RetainedEvents, 400, 90, "timelines of payments at their end"},
	{RetainedLines, 3650, 400, "lines of the provider's statements about payments at their end"},
	{RetainedStaffIdempotency, 400, 381, "answers to staff writes, for repeats under the same Idempotency-Key"},
	{RetainedDecisions, 3650, 400, "decisions that have ended, about payments at their end; the audit keeps what it says of them"},
	{RetainedBreaks, 3650, 400, "breaks that were resolved, about payments at their end"},
	{RetainedQuarantine, 400, 90, "hand-offs that could not be decoded"},
}

// RetentionCursor is the position of a removal: behind a row of a table that is read by id, else
// behind the first Kept rows of those of At that stay.
type RetentionCursor struct {
	ID   int64
	At   time.Time
	Kept int
}
