package wire

import (
	"hongbao/internal/money"
)

// ReconciliationStatus is the status of a reconciliation.
type ReconciliationStatus string

// The statuses of reconciliations.
const (
	ReconciliationRequested ReconciliationStatus = "requested" // not started yet
	ReconciliationRunning   ReconciliationStatus = "running"
	ReconciliationDone      ReconciliationStatus = "done"
	ReconciliationFailed    ReconciliationStatus = "failed"
)

// ReconciliationFilter selects reconciliations; zero members select all.
type ReconciliationFilter struct {
	Provider string               `json:"provider,omitempty" check:"code" doc:"Reconciliations of this provider." example:"sandbox"`
	Date     Date                 `json:"date,omitempty" doc:"Reconciliations of this day." example:"2026-02-17"`
	Status   ReconciliationStatus `json:"status,omitempty" doc:"Reconciliations in this status." example:"done"`
}

// Reconciliation is one comparison of a day of a provider's statement with our records.
type Reconciliation struct {
	ID          string               `json:"id" doc:"The id." example:"sKQ3X7M2P5R6T4V2W3Y7Z5B6CD"`
	Provider    string               `json:"provider" doc:"The provider of the statement." example:"sandbox"`
	Date        Date                 `json:"date" doc:"The day, in the time zone of the provider's statement."`
	Status      ReconciliationStatus `json:"status" doc:"requested: not started yet. running: in progress. done: complete. failed: the statement could not be read; request it again."`
	Provisional bool                 `json:"provisional" doc:"true: it began before the day was over; another one is needed."`
	RequestedBy string               `json:"requested_by" doc:"The member of staff, or schedule." example:"schedule"`
	Reason      *string              `json:"reason" doc:"The reason, if a person requested it."`
	CreatedAt   Time                 `json:"created_at" doc:"When it was requested."`
	StartedAt   *Time                `json:"started_at" doc:"When it started; movements before this time are compared. null while requested."`
	EndedAt     *Time                `json:"ended_at" doc:"When it ended; null while requested or running."`
	Lines       int64                `json:"lines" minimum:"0" doc:"Lines of the statement."`
	Matched     int64                `json:"matched" minimum:"0" doc:"Lines that match our records."`
	InFlight    int64                `json:"in_flight" minimum:"0" doc:"Movements of the last minute that are not recorded yet."`
	Repaired    int64                `json:"repaired" minimum:"0" doc:"Differences that a query settled: breaks and movements in flight."`
	Breaks      int64                `json:"breaks" minimum:"0" doc:"Open breaks of this day when it ended."`
	Amounts     []OpSums             `json:"amounts" nullable:"false" doc:"Both sides by operation; empty before it is done."`
	Error       *string              `json:"error" doc:"Why it failed, as text for people."`
	Workflow    WorkflowLink         `json:"workflow" doc:"The Temporal workflow of the reconciliation."`
}

// OpSums are the sums of both sides for one operation.
type OpSums struct {
	Op       string `json:"op" enum:"charge,transfer,refund,return,fee,fee_returned,top_up,withdrawal" doc:"The provider's operation."`
	Provider Sums   `json:"provider" doc:"The sums of the statement."`
	Books    Sums   `json:"books" doc:"The sums of our records, for the same movements and for those missing in the statement."`
}

// Sums is a count and a sum of movements.
type Sums struct {
	Count  int64     `json:"count" minimum:"0" doc:"The count."`
	Amount money.Fen `json:"amount" doc:"The sum." fen:"sum"`
}

// ReconcileRequest is the optional body of a request for a reconciliation.
type ReconcileRequest struct {
	Date     Date   `json:"date,omitempty" doc:"The day in the time zone of the provider's statement; by default today. Later days are refused."`
	Provider string `json:"provider,omitempty" default:"sandbox" doc:"The provider of the statement; by default the only provider."`
	Reason   string `json:"reason,omitempty" maxLength:"500" doc:"The reason, for the audit." example:"provider announced corrections"`
}

// BreakFilter selects breaks; zero members select all.
type BreakFilter struct {
	Kind             string `json:"kind,omitempty" check:"code" doc:"Breaks of this kind." example:"not_in_statement"`
	PacketID         string `json:"packet_id,omitempty" check:"text" doc:"Breaks about this packet." example:"3q5k9v0c1m7e2u8h4r6t"`
	ReconciliationID string `json:"reconciliation_id,omitempty" check:"text" doc:"Breaks that this reconciliation was the last to see." example:"sKQ3X7M2P5R6T4V2W3Y7Z5B6CD"`
	Resolved         *bool  `json:"resolved,omitempty" doc:"false: open breaks only; true: resolved breaks only." example:"false"`
	OlderThanSeconds *int64 `json:"older_than_seconds,omitempty" minimum:"0" maximum:"8589934592" doc:"Breaks first seen at least this many seconds ago." example:"3600"`
}

// Break is a difference that staff has to look into.
type Break struct {
	ID               string      `json:"id" doc:"The id." example:"b4711"`
	Kind             string      `json:"kind" doc:"The kind of difference; docs/reconciliation.md lists the kinds." example:"not_in_statement"`
	PacketID         *string     `json:"packet_id" doc:"The packet that the break is about; null if none of ours."`
	PaymentID        *string     `json:"payment_id" doc:"The payout, refund or charge that the break is about."`
	OrderNo          *string     `json:"order_no" doc:"The order number that the break is about; it may be unknown to us."`
	UserID           *string     `json:"user_id" doc:"Of a share conflict: the user of the claim."`
	Detail           string      `json:"detail" doc:"What was found, as text for people."`
	Provider         *string     `json:"provider" doc:"Of breaks found by reconciliation: the provider of the statement."`
	Amount           *money.Fen  `json:"amount" doc:"Of breaks found by reconciliation: the amount that moved or was booked; for several lines of the order number, their sum."`
	PaymentAmount    *money.Fen  `json:"payment_amount" doc:"The amount of the payment that the break is about; null if none of ours."`
	ReconciliationID *string     `json:"reconciliation_id" doc:"The last reconciliation that saw it."`
	Seen             int         `json:"seen" minimum:"1" doc:"How many times it was seen."`
	CreatedAt        Time        `json:"created_at" doc:"When it was first seen."`
	LastSeenAt       Time        `json:"last_seen_at" doc:"When it was last seen."`
	AgeSeconds       int64       `json:"age_seconds" minimum:"0" doc:"Seconds since it was first seen, until now or until it was resolved. A break that was opened again also counts from the first time."`
	Resolved         *Resolution `json:"resolved" doc:"The resolution; null while the break is open."`
}

// Resolution is how a break was resolved, by which person.
type Resolution struct {
	At     Time   `json:"at" doc:"When it was resolved."`
	By     string `json:"by" doc:"The member of staff; reconciliation when both sides agreed later." example:"li.na"`
	Reason string `json:"reason" doc:"How it was resolved."`
}

// ResolveBreak is the body of the resolution of a break.
type ResolveBreak struct {
	Reason   string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the recipient confirms it, see ticket 4711"`
	Outcome  string `json:"outcome,omitempty" enum:"none,moved,not_moved,written_off" doc:"What became of the money of the break's order number; none, the default, states nothing. moved: a statement line or the provider's last answer has to show it, and it is booked as the provider's success. not_moved: of a payout or refund whose outcome is open, and of a charge after the provider's memory of its order number; it fails. written_off: what the order number has in suspense is our loss; after its return, our gain. Each is a decision about the payment by two persons, and the break is resolved when it has taken effect." example:"not_moved"`
	Evidence string `json:"evidence,omitempty" minLength:"1" maxLength:"500" doc:"The evidence of the outcome: 1 to 500 characters. Required with another outcome than none, refused otherwise." example:"letter of the provider, 2026-04-02"`
}

// DecidedBreak is the answer to a resolution with an outcome: a decision about the break's payment.
type DecidedBreak struct {
	Decision Decision  `json:"decision" doc:"The decision."`
	Payout   *Payout   `json:"payout" doc:"The payout, or charge, of the break; null for a refund."`
	Refund   *Refund   `json:"refund" doc:"The refund of the break; null for another payment."`
	Approval *Approval `json:"approval" doc:"Set while a second person has to approve; nothing has moved yet."`
}

// States reports whether the resolution has an outcome, and so is a decision by two persons.
func (r ResolveBreak) States() bool { return r.Outcome != "" && r.Outcome != "none" }
