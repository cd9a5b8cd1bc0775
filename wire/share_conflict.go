package wire

import (
	"hongbao/internal/money"
)

// BulkConflictFilter is the filter of a bulk decision about share conflicts.
type BulkConflictFilter struct {
	PacketID        string   `json:"packet_id,omitempty" check:"text" doc:"Share conflicts of this packet."`
	UserID          string   `json:"user_id,omitempty" check:"id" doc:"Share conflicts of this user."`
	DefaultDecision string   `json:"default_decision,omitempty" enum:"honour,void" doc:"Share conflicts with this default decision."`
	IDs             []string `json:"payout_ids,omitempty" nullable:"false" maxItems:"200" check:"conflict" alone:"true" doc:"Exactly these share conflicts; no other member is then allowed."`
}

// BulkConflictDecision is the body of a bulk decision about share conflicts.
type BulkConflictDecision struct {
	Filter BulkConflictFilter `json:"filter" doc:"The filter of the share conflicts, with at least one member."`
	Reason string             `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"worker was suspended, incident 17"`
	DryRun bool               `json:"dry_run" required:"false" default:"true" doc:"true: return what would happen and decide nothing."`
}

// BulkConflictItem is the result for one share conflict.
type BulkConflictItem struct {
	ID              string    `json:"payout_id" doc:"The payout of the share conflict." example:"h3q5k9v0c1m7e2u8h4r6t0001"`
	PacketID        string    `json:"packet_id" doc:"The packet."`
	UserID          string    `json:"user_id" doc:"The user with the acknowledged claim."`
	Amount          money.Fen `json:"amount" doc:"The acknowledged amount."`
	DefaultDecision string    `json:"default_decision" enum:"honour,void" doc:"void: the user has another claim of the packet. Otherwise honour."`
	Result          string    `json:"result" enum:"would_decide,decided,waiting,skipped" doc:"would_decide: in a dry run. decided: two persons have decided it. waiting: a second person has to make the same call, or would have to in a dry run. skipped: not possible."`
	Code            *string   `json:"code" doc:"Of skipped: not_retryable (it is decided), decision_pending (another decision waits, or one of your own, or one of a key that does not count as another person), decision_changed or held; otherwise null."`
	AskedBy         *string   `json:"asked_by" doc:"The person whose same decision waits for a second one; null without one."`
}

// BulkConflictsDecided is the answer to a bulk decision about share conflicts.
type BulkConflictsDecided struct {
	DryRun bool               `json:"dry_run" doc:"true: nothing was decided."`
	Count  int                `json:"count" minimum:"0" doc:"How many are decided or wait for a second person, or would in a dry run."`
	Amount money.Fen          `json:"amount" doc:"The sum of these." fen:"sum"`
	More   bool               `json:"more" doc:"true: more than the 200 share conflicts of one call match."`
	Items  []BulkConflictItem `json:"items" nullable:"false" doc:"Newest share conflict first."`
}
