package api

func (s *API) exportRoutes() []*route {
	const amount = "amount is in whole fen, amount_yuan in yuan, "
	return []*route{
		exportRoute(s.payouts().list(), "exportPayouts", amount, payoutColumns),
		exportRoute(s.refunds().list(), "exportRefunds", amount, refundColumns),
		exportRoute(s.charges().list(), "exportCharges", amount, chargeColumns),
		exportRoute(s.approvals(), "exportApprovals", "user_id, amount (in whole fen), amount_yuan and payment_status are those of the payout "+
			"or refund in payment_id, ", approvalColumns),
		exportRoute(s.breaks(), "exportBreaks", "amounts are in whole fen, columns that end in _yuan are in yuan, ", breakFileColumns),
		exportRoute(s.appBalanceEntries(), "exportBalanceMovements", "amounts are in whole fen, columns that end in _yuan are in yuan, ",
			balanceEntryColumns),
		exportRoute(s.audits(), "exportAudit", "before and after are JSON, ", auditColumns, auditReaders...),
	}
}
