package store

import "hongbao/internal/store/storetest"

// The fixtures of these tests.
var (
	must           = storetest.Must
	wantErr        = storetest.WantErr
	newID          = storetest.NewID
	samplePacket   = storetest.SamplePacket
	recorded       = storetest.Recorded
	chargeID       = storetest.ChargeID
	refundID       = storetest.RefundID
	payoutID       = storetest.PayoutID
	funded         = storetest.Funded
	open           = storetest.Open
	even           = storetest.Even
	claimOf        = storetest.ClaimOf
	claim          = storetest.Claim
	encode         = storetest.Encode
	begin          = storetest.Begin
	observation    = storetest.Observation
	settle         = storetest.Settle
	pay            = storetest.Pay
	fail           = storetest.Fail
	failAs         = storetest.FailAs
	together       = storetest.Together
	owing          = storetest.Owing
	due            = storetest.Due
	claimed        = storetest.Claimed
	closed         = storetest.Closed
	manyLives      = storetest.ManyLives
	verified       = storetest.Verified
	checkLedger    = storetest.CheckLedger
	by             = storetest.By
	second         = storetest.Second
	proposed       = storetest.Proposed
	agreed         = storetest.Agreed
	declineQueries = storetest.DeclineQueries
	financeWrite   = storetest.FinanceWrite
	render         = storetest.Render
	retryPayment   = storetest.RetryPayment
	decide         = storetest.Decide
	renderHold     = storetest.RenderHold
	explain        = storetest.Explain
	sortFree       = storetest.SortFree
	readsAtMost    = storetest.ReadsAtMost
	askMovement    = storetest.AskMovement
	moveBalance    = storetest.MoveBalance
	ofMerchant     = storetest.OfMerchant
	adapter        = storetest.Adapter
	limits         = storetest.Limits
	retryCommand   = storetest.RetryCommand
)

const (
	provider    = storetest.Provider
	approveFrom = storetest.ApproveFrom
)
