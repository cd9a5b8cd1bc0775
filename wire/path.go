package wire

// Paths of the lists, and of what is no list. Further steps of a path are parts of its operation.
const (
	PathPackets         = "/v1/packets"
	PathUsers           = "/v1/users"
	PathCampaigns       = "/v1/campaigns"
	PathAppProviders    = "/v1/providers"
	PathStaffPackets    = "/v1/staff/packets"
	PathStaffCampaigns  = "/v1/staff/campaigns"
	PathPayouts         = "/v1/staff/payouts"
	PathRefunds         = "/v1/staff/refunds"
	PathApprovals       = "/v1/staff/approvals"
	PathBreaks          = "/v1/staff/breaks"
	PathReconciliations = "/v1/staff/reconciliations"
	PathShareConflicts  = "/v1/staff/share-conflicts"
	PathHolds           = "/v1/staff/holds"
	PathProviders       = "/v1/staff/providers"
	PathBalances        = "/v1/staff/balances"
	PathBalance         = "/v1/balance"
	PathCloses          = "/v1/staff/closes"
	PathOverview        = "/v1/staff/overview"
	PathActivity        = "/v1/staff/activity"
	PathHealth          = "/v1/staff/health"
	PathAudit           = "/v1/staff/audit"
	PathKeys            = "/v1/staff/keys"
	PathTicketKeys      = "/v1/staff/ticket-keys"
	PathExports         = "/v1/staff/export"
)
