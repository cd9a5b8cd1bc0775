package failpoint

// Steps returns all steps in the order of a packet's life.
func Steps() []Step { return append([]Step(nil), steps...) }

var steps []Step

func step(path Path, name, meaning string) Step {
	s := Step{Path: path, Name: name, Meaning: meaning, before: Point(name + ".before"), after: Point(name + ".after")}
	steps = append(steps, s)
	return s
}

// Administration is for transactions that move no money and promise none: apps,
// keys, campaigns, and the comparison with a provider's statement. They have no points.
var Administration Step

// The list. Each step is used in exactly one place of the code, and each of its
// two points is reached by the test that kills the process there.
var (
	// Create: from the request to the open pool.
	CreateStage  = step(PathCreate, "create_stage", "the packet is staged in Redis and its hand-off left")
	CreateAnswer = step(PathCreate, "create_answer", "the first answer to the create request is stored in Redis")
	CreateRecord = step(PathCreate, "create_record", "packet row and pending charge are in MySQL")
	ChargeBegin  = step(PathCreate, "charge_begin", "the send of the charge is noted, its number and request are stored")
	ChargeLapse  = step(PathCreate, "charge_lapse", "a charge of which nothing was sent is failed: its packet has expired")
	ChargeSend   = step(PathCreate, "charge_send", "the charge was sent to the provider, which has answered")
	ChargeSettle = step(PathCreate, "charge_settle", "what became of the charge is booked")
	CreateFund   = step(PathCreate, "create_fund", "the packet is open in MySQL, with one row a share")
	CreateOpen   = step(PathCreate, "create_open", "a chunk of the shares is in Redis, with the last one the pool is open")
	RejectRow    = step(PathCreate, "reject_row", "a packet whose charge was declined is rejected in MySQL")
	RejectPool   = step(PathCreate, "reject_pool", "a packet whose charge was declined is rejected in Redis")

	// Grab: a batch is one call of grab.lua.
	GrabTake = step(PathGrab, "grab_take", "shares are taken, winners and their hand-off written, in Redis")

	// Hand-off: Redis to Temporal.
	RelayPacket     = step(PathHandOff, "relay_packet", "Temporal has the packet's workflow, its hand-off is not acknowledged")
	RelayPayout     = step(PathHandOff, "relay_payout", "Temporal has the payout's workflow, its hand-off is not acknowledged")
	RelayClose      = step(PathHandOff, "relay_close", "the packet's workflow was told that it is sold out or recalled")
	RelayAck        = step(PathHandOff, "relay_ack", "hand-offs are acknowledged and deleted")
	RelayTakeOver   = step(PathHandOff, "relay_take_over", "hand-offs of a dead worker are pending for a living one")
	RelayQuarantine = step(PathHandOff, "relay_quarantine", "a hand-off that cannot be decoded is kept in MySQL")

	// Payout: from the claim to the provider's answer.
	ClaimBook  = step(PathPayout, "claim_book", "the share is claimed in MySQL, its payout pending, the money owed")
	ClaimBegin = step(PathPayout, "claim_begin", "the share is claimed in MySQL, the money owed, and the first send noted with its "+
		"number and request, all at once")
	ClaimConflict = step(PathPayout, "claim_conflict", "a promise that cannot be booked is kept as a break")
	PayoutBegin   = step(PathPayout, "payout_begin", "the send of the payout is noted, its number and request are stored")
	PayoutSend    = step(PathPayout, "payout_send", "the payout was sent to the provider, which has answered")
	PayoutSettle  = step(PathPayout, "payout_settle", "what became of the payout is booked")
	PayoutNow     = step(PathPayout, "payout_now", "a payout was sent and its outcome booked within a workflow task, of which Temporal "+
		"knows nothing")
	OrderAsk = step(PathPayout, "order_ask", "the provider has said what became of an order")

	// Closing: from the last grab to the closed books.
	RecallPlan   = step(PathClosing, "recall_plan", "the audit says that a person of staff recalls the packet")
	RecallFlag   = step(PathClosing, "recall_flag", "the packet is recalled in Redis and a hand-off left")
	RecallEnd    = step(PathClosing, "recall_end", "the answer to a recall by staff is stored")
	CloseBegin   = step(PathClosing, "close_begin", "the packet is closing in MySQL")
	ClosePool    = step(PathClosing, "close_pool", "the pool is closed in Redis")
	CloseReason  = step(PathClosing, "close_reason", "the reason that the pool knows is in MySQL")
	DrainStart   = step(PathClosing, "drain_start", "Temporal has the payout of a winner whose hand-off was lost")
	CloseBooks   = step(PathClosing, "close_books", "the books are closed, a remainder is a pending refund with its outbox row")
	PacketFinish = step(PathClosing, "packet_finish", "the packet is closed in MySQL")
	PoolRetire   = step(PathClosing, "pool_retire", "a chunk of the pool is gone from Redis, in the end all but the tombstone")

	// Refund: the remainder goes back.
	RefundBegin  = step(PathRefund, "refund_begin", "the send of the refund is noted, its number and request are stored")
	RefundSend   = step(PathRefund, "refund_send", "the refund was sent to the provider, which has answered")
	RefundSettle = step(PathRefund, "refund_settle", "what became of the refund is booked")

	// Decision: what a person decides, and the outbox that carries it to Temporal.
	Decide = step(PathDecision, "decide", "a decision about a payment is made, or waits for a second person: row, outbox, audit "+
		"and answer")
	DecideAnswer   = step(PathDecision, "decide_answer", "a second person has agreed to a decision, or rejected it")
	DecideBulkPlan = step(PathDecision, "decide_bulk_plan", "which payments a bulk decision is about is stored")
	DecideBulkEnd  = step(PathDecision, "decide_bulk_end", "the answer of a bulk decision is stored")
	DecideCarryOut = step(PathDecision, "decide_carry_out", "a payout is cancelled in MySQL, its refund pending with its outbox row")
	ProviderHold   = step(PathDecision, "provider_hold", "a provider is held or released: while it is held no send is noted")
	OutboxTake     = step(PathDecision, "outbox_take", "due rows of the outbox are put off, those that have moved deleted")
	OutboxRun      = step(PathDecision, "outbox_run", "Temporal has the run of a payment whose row wants one, or has woken it")

	// Notification: the provider says that something happened.
	NotificationNote = step(PathNotification, "notification_note", "a notification is stored, its order to be asked about")

	// Rebuild: a lane of Redis is made again from MySQL (rule R9).
	RebuildBegin = step(PathRebuild, "rebuild_begin", "the lane is taken for a rebuild in MySQL, in its next epoch")
	RebuildShut  = step(PathRebuild, "rebuild_shut", "the lane is in that epoch in Redis, behind a closed gate")
	RebuildPool  = step(PathRebuild, "rebuild_pool", "the pool of a packet is made again")
	RebuildOpen  = step(PathRebuild, "rebuild_open", "the gate of the lane is open in Redis")
	RebuildEnd   = step(PathRebuild, "rebuild_end", "the gate is open in MySQL, and what came of the rebuild is kept")

	// Recover: what restored books lack is put back (rule R13).
	RecoverDeclare   = step(PathRecover, "recover_declare", "the books are declared restored")
	RecoverNumber    = step(PathRecover, "recover_number", "an order number that the provider knows is put back, its outcome unknown")
	RecoverCancel    = step(PathRecover, "recover_cancel", "a payout whose cancel's refund the provider knows is cancelled")
	RecoverRemainder = step(PathRecover, "recover_remainder", "the books of a packet whose remainder the provider has refunded are closed")
	RecoverLane      = step(PathRecover, "recover_lane", "a lane is brought up to what was found of it in Redis")
	RecoverEnd       = step(PathRecover, "recover_end", "the books are normal, and payments go on")
)
