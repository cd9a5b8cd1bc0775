package failpoint

// Steps returns all steps in the order of a packet's life.
func Steps() []Step { return append([]Step(nil), steps...) }

var steps []Step

func step(path Path, name, meaning string) Step {
	s := Step{Path: path, Name: name, Meaning: meaning, before: Point(name + ".before"), after: Point(name + ".after")}
	steps = append(steps, s)
	return s
}

// Administration is for transactions that neither move nor promise money: apps, keys, campaigns,
// and the comparison with a provider's statement. They have no points.
var Administration Step

// The list. Each step is used in exactly one place of the code, and a test kills the process at
// each of its two points.
var (
	// Create: from the request to the open pool.
	CreateStage   = step(PathCreate, "create_stage", "the packet is staged in Redis and its hand-off written")
	CreateAnswer  = step(PathCreate, "create_answer", "the first answer to the create request is stored in Redis")
	CreateRecord  = step(PathCreate, "create_record", "packet row and pending charge are in MySQL")
	ChargeBegin   = step(PathCreate, "charge_begin", "the send of the charge is recorded, with its order number and request")
	ChargeExpire  = step(PathCreate, "charge_lapse", "an unsent charge is failed: its packet has expired")
	ChargeClose   = step(PathCreate, "charge_close", "the provider was asked to close an order that waits for a person, and has answered")
	ChargeClosing = step(PathCreate, "charge_closing", "it is recorded that an order is to be closed at the provider")
	ChargeClosed  = step(PathCreate, "charge_closed", "the answer to the close of an order is recorded")
	PoolAction    = step(PathCreate, "pool_action", "the sealed client data of an unpaid charge is in its pool, or withdrawn")
	ChargeSend    = step(PathCreate, "charge_send", "the charge was sent to the provider, which has answered")
	ChargeSettle  = step(PathCreate, "charge_settle", "the outcome of the charge is settled")
	CreateFund    = step(PathCreate, "create_fund", "the packet is open in MySQL, with one row a share")
	CreateOpen    = step(PathCreate, "create_open", "a chunk of the shares is in Redis, with the last one the pool is open")
	RejectRow     = step(PathCreate, "reject_row", "a packet whose charge was declined is rejected in MySQL")
	RejectPool    = step(PathCreate, "reject_pool", "a packet whose charge was declined is rejected in Redis")

	// Grab: a batch is one call of grab.lua.
	GrabTake = step(PathGrab, "grab_take", "shares are claimed in Redis, with claims and hand-off")

	// Hand-off: Redis to Temporal.
	RelayPacket     = step(PathHandOff, "relay_packet", "Temporal has the packet's workflow, its hand-off is not acknowledged")
	RelayPayout     = step(PathHandOff, "relay_payout", "Temporal has the payout's workflow, its hand-off is not acknowledged")
	RelayClose      = step(PathHandOff, "relay_close", "the packet's workflow was signalled that it is sold out or recalled")
	RelayAck        = step(PathHandOff, "relay_ack", "hand-offs are acknowledged and deleted")
	RelayTakeOver   = step(PathHandOff, "relay_take_over", "hand-offs of a dead worker are pending for a running one")
	RelayQuarantine = step(PathHandOff, "relay_quarantine", "a hand-off that cannot be decoded is kept in MySQL")

	// Payout: from the claim to the provider's answer.
	ClaimRecord = step(PathPayout, "claim_book", "the claim is recorded in MySQL, its payout pending, the money owed")
	ClaimBegin  = step(PathPayout, "claim_begin", "the claim is recorded in MySQL, the money owed, and the first send recorded with its "+
		"order number and request, in one transaction")
	ClaimKeep     = step(PathPayout, "claim_keep", "a claim from before the rebuild of its lane is in the pool, without a share")
	ClaimConflict = step(PathPayout, "claim_conflict", "a share conflict is stored as a break")
	PayoutBegin   = step(PathPayout, "payout_begin", "the send of the payout is recorded, with its order number and request")
	PayoutSend    = step(PathPayout, "payout_send", "the payout was sent to the provider, which has answered")
	PayoutSettle  = step(PathPayout, "payout_settle", "the outcome of the payout is settled")
	PayoutNow     = step(PathPayout, "payout_now", "a payout was sent and its outcome settled within a workflow task of which Temporal "+
		"knows nothing")
	OrderQuery = step(PathPayout, "order_ask", "the provider has answered a query about an order")

	// Closing: from the last grab to the closed books.
	RecallPlan   = step(PathClosing, "recall_plan", "the audit has the recall of the packet by staff")
	RecallFlag   = step(PathClosing, "recall_flag", "the packet is recalled in Redis, with a hand-off")
	RecallEnd    = step(PathClosing, "recall_end", "the answer to a recall by staff is stored")
	CloseBegin   = step(PathClosing, "close_begin", "the packet is closing in MySQL")
	ClosePool    = step(PathClosing, "close_pool", "the pool is closed in Redis")
	DrainStart   = step(PathClosing, "drain_start", "Temporal has the payout of a claim whose hand-off was lost")
	CloseBooks   = step(PathClosing, "close_books", "the books are closed, a remainder is a pending refund with its outbox entry")
	PacketFinish = step(PathClosing, "packet_finish", "the packet is closed in MySQL")
	PoolRetire   = step(PathClosing, "pool_retire", "a chunk of the pool is removed from Redis, finally all but the tombstone")

	// Refund: the remainder goes back.
	RefundBegin  = step(PathRefund, "refund_begin", "the send of the refund is recorded, with its order number and request")
	RefundSend   = step(PathRefund, "refund_send", "the refund was sent to the provider, which has answered")
	RefundSettle = step(PathRefund, "refund_settle", "the outcome of the refund is settled")

	// Decision: decisions of staff, and the outbox that passes them to Temporal.
	Decide = step(PathDecision, "decide", "a decision about a payment is made, or waits for a second person: row, outbox, audit "+
		"and answer")
	DecideAnswer   = step(PathDecision, "decide_answer", "a second person has approved or rejected a decision")
	DecideBulkPlan = step(PathDecision, "decide_bulk_plan", "the list of payments of a bulk decision is stored")
	DecideBulkEnd  = step(PathDecision, "decide_bulk_end", "the answer of a bulk decision is stored")
	DecideCarryOut = step(PathDecision, "decide_carry_out", "a payout is cancelled in MySQL, its refund pending with its outbox entry")
	ProviderHold   = step(PathDecision, "provider_hold", "a provider is held or released: while it is held no send is recorded")
	OutboxTake     = step(PathDecision, "outbox_take", "due outbox entries are postponed, those whose rows have moved are deleted")
	OutboxRun      = step(PathDecision, "outbox_run", "Temporal has started or woken the run of a due payment")

	// Notification: the provider reports that something happened.
	NotificationStore = step(PathNotification, "notification_note", "a notification is stored, and a query of its order is due")

	// Rebuild: a lane of Redis is rebuilt from MySQL.
	RebuildBegin = step(PathRebuild, "rebuild_begin", "the lane is taken for a rebuild in MySQL, in its next epoch")
	RebuildShut  = step(PathRebuild, "rebuild_shut", "the lane is in that epoch in Redis, behind a shut fence")
	RebuildPool  = step(PathRebuild, "rebuild_pool", "the pool of a packet is rebuilt")
	RebuildOpen  = step(PathRebuild, "rebuild_open", "the fence of the lane is open in Redis")
	RebuildEnd   = step(PathRebuild, "rebuild_end", "the fence is open in MySQL, and the result of the rebuild is stored")

	// Recover: what a restored MySQL lacks is put back.
	RecoverDeclare   = step(PathRecover, "recover_declare", "MySQL is declared restored")
	RecoverAttempt   = step(PathRecover, "recover_number", "an order number that the provider knows is restored, its outcome unknown")
	RecoverCancel    = step(PathRecover, "recover_cancel", "a payout whose cancel's refund the provider knows is cancelled")
	RecoverRemainder = step(PathRecover, "recover_remainder", "the books of a packet whose remainder the provider has refunded are closed")
	RecoverLane      = step(PathRecover, "recover_lane", "the position of a lane is raised to that of Redis")
	RecoverEnd       = step(PathRecover, "recover_end", "MySQL is normal again, and payments continue")
)
