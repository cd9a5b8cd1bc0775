package console

// breakMessages explain each kind of break: what happened and what staff can do. The API's
// technical detail of the single break is shown below them.
var breakMessages = map[string]message{
	"break.detail": {"Technical detail", "技术细节"},
	"break.do":     {"What to do", "如何处理"},

	"break_about.mismatch": {"The provider's response names another order number, account or amount than the request. Nothing was " +
		"booked from it. While the outcome is unknown, the platform keeps querying.",
		"渠道返回的单号、账户或金额与请求不符，系统未据此入账。结果未知期间会自动继续查询。"},
	"break_about.contradiction": {"The provider gave two contradictory responses about one order, such as declined and succeeded. " +
		"Nothing is booked from one such response alone.",
		"渠道对同一单号先后返回互相矛盾的结果，例如先失败、后成功。系统不会仅凭其中一次入账。"},
	"break_about.second_success": {"Money moved under an order number that was no longer in use: the payment was already paid under a " +
		"later number, cancelled, or marked as paid. It may have been paid twice. The amount is in suspense in the ledger.",
		"已作废的单号发生交易：该款项此前已用新单号付出、已取消或已标记为线下已付，可能重复付款。该金额已记入总账“挂账”科目。"},
	"break_about.late_success": {"The provider carried out a payment that had been recorded as failed. It is booked as paid; if it was " +
		"also returned, nothing is booked. The charge of a rejected packet is refunded to the sender automatically.",
		"已判定失败的款项，渠道后来执行成功。系统已记为已付；若款项随后又退回，则不入账。若为收款失败的红包，会自动全额退回发红包人。"},
	"break_about.forgotten": {"The provider no longer knows an order that it had accepted or carried out.",
		"渠道查无此单，而此前它已受理或已执行该单。"},
	"break_about.outcome_unknown": {"The provider has not reported the outcome of an order, and may have forgotten it by now. Nothing is " +
		"sent under its number any more; the platform keeps querying.",
		"渠道一直没有给出该单的结果，且已超过其查询期限。系统不会再用该单号发起，仅继续查询。"},
	"break_about.share_conflict": {"A user's grab was acknowledged, but the claim cannot be recorded: another user has the share, or the " +
		"packet's books are closed. Nothing has been paid for it.",
		"用户的领取已确认，但无法入账：该份已归他人，或红包已结账。尚未为此付款。"},
	"break_about.restored": {"MySQL was restored from a backup, and the recovery could not determine what happened. A hold on the packet " +
		"stops sends, closing and decisions until two persons release it.",
		"MySQL 由备份恢复后，系统无法判定实际情况。该红包已暂停：两人解除暂停之前，不发起款项、不结账、不执行任何处理决定。"},
	"break_about.pool_lost": {"Redis lost acknowledged grabs, and the users are not known. The detail states the maximum number.",
		"Redis 丢失了已确认的领取记录，且无法得知属于哪些用户。最多丢失多少笔见下方细节。"},
	"break_about.not_booked": {"The provider's statement shows a movement that our records do not have. The platform queries the " +
		"order; the break closes automatically once the records agree.",
		"渠道账单有该笔交易，我方没有入账。系统会查询该单，账目一致后此差异自动关闭。"},
	"break_about.return_not_booked": {"The provider's statement shows a return that our records do not have. The platform queries the " +
		"order; the break closes automatically once the records agree.",
		"渠道账单显示已退票，我方没有入账。系统会查询该单，账目一致后此差异自动关闭。"},
	"break_about.superseded": {"Money moved under an order number that a later one has replaced: it may have been paid twice. The " +
		"platform queries the order; the movement is then booked to suspense.",
		"已被新单号取代的旧单号发生交易，可能重复付款。系统会查询该单，并将该金额记入“挂账”科目。"},
	"break_about.not_in_statement": {"Our records show a movement or a return at the provider, but no statement contains it.",
		"我方已记录交易或退票，但渠道账单中没有。"},
	"break_about.amount_differs": {"The amount in the provider's statement differs from the request or from our records.",
		"渠道账单的金额与请求或我方入账的金额不一致。"},
	"break_about.account_differs": {"The provider's statement names another account than the request: someone else may have received " +
		"the money.",
		"渠道账单的账户与请求不一致：款项可能付给了他人。"},
	"break_about.op_differs": {"The provider's statement shows another type of movement under this order number than requested, such " +
		"as a refund under the number of a charge.",
		"渠道账单中该单号的交易类型与请求不一致，例如收款的单号下出现退款。"},
	"break_about.moved_twice": {"The provider's statement lists the same movement more than once under one order number. An order " +
		"number may move money only once.",
		"渠道账单中同一单号多次出现同一交易，而一个单号只应交易一次。"},
	"break_about.foreign_order": {"The provider's statement contains an order that is not ours or that was never sent: someone else " +
		"may be using our account at the provider.",
		"渠道账单中有非本系统的单号，或从未发起过的单号：我方的渠道账户可能被他人使用。"},

	"break_do.mismatch": {"Open the payment. If it is final, compare it with the provider's records and resolve the break. If its " +
		"outcome is still unknown, ask the provider to correct its response for this order number. Do not pay by other means before that.",
		"打开该款项。若已有最终结果，与渠道记录核对后标记为已处理。若仍为结果未知，请凭单号要求渠道更正，在此之前不要以其他方式付款。"},
	"break_do.contradiction": {"Open the payment: its attempts show each response. Have the provider confirm by order number what " +
		"happened. If that matches the payment's status, resolve the break. Do not pay by other means before that.",
		"打开该款项，在付款尝试中查看渠道的每次返回。请渠道凭单号确认实际结果；与款项状态一致后标记为已处理，在此之前不要以其他方式付款。"},
	"break_do.second_success": {"Recover the money from the recipient or through the provider, then resolve the break and state how. " +
		"If the detail says that it was returned, there is nothing to recover.",
		"向收款人或经渠道追回款项，然后标记为已处理并写明方式。若细节注明已退回（returned），则无需追回。"},
	"break_do.late_success": {"Check whether someone has already paid the recipient by other means; if so, recover that payment. Then " +
		"resolve the break.",
		"确认期间是否已有人以其他方式付款；若有，请追回。然后标记为已处理。"},
	"break_do.forgotten": {"Ask the provider by order number whether the money moved. Then open the payment: while its outcome is " +
		"unknown, two persons can retry it or mark it as paid. Then resolve the break.",
		"请渠道凭单号确认款项是否已付出。再打开该款项：若仍为结果未知，可经两人复核后重付或标记为线下已付。然后将差异标记为已处理。"},
	"break_do.outcome_unknown": {"Ask the provider by order number, or check its statement. Then state here whether the money has moved, " +
		"with evidence and a second person; a payout or refund can also be retried or marked as paid.",
		"请渠道凭单号查明，或核对其账单。然后在此登记款项是否已付出，须附凭证并由另一人复核；付款和退款也可重付或标记为线下已付。"},
	"break_do.share_conflict": {"Open the user's failed payout. Retry honours it with house money; cancel voids it; mark as paid " +
		"records that it was honoured by other means. Each needs approval by a second person. Then resolve the break.",
		"查看该用户失败的付款：重付由平台出资兑现，取消则作废，标记为线下已付表示已以其他方式兑现；均须另一人复核。然后将差异标记为已处理。"},
	"break_do.restored": {"Find out what happened from the provider's records and your own evidence, and correct it at the provider if " +
		"necessary. Then resolve the break and release the hold on the packet, which needs two persons.",
		"根据渠道记录与我方凭证查明实情，必要时先在渠道更正。然后将差异标记为已处理，并由两人解除该红包的暂停。"},
	"break_do.pool_lost": {"Compare with users' reports and decide how to compensate them. Have operations find out why Redis lost " +
		"data. Then resolve the break and state the decision.",
		"与用户反馈核对，决定如何补偿，并由运维查明 Redis 丢失数据的原因。然后标记为已处理并写明决定。"},
	"break_do.not_booked": {"Usually nothing. If the break is still open after an hour, reconcile the day again: the platform queries " +
		"the provider once more.",
		"通常无需处理。若一小时后仍未关闭，请重新发起当日对账，系统会再次查询渠道。"},
	"break_do.return_not_booked": {"Usually nothing: the payment becomes returned and then needs a decision. If the break is still " +
		"open after an hour, reconcile the day again: the platform queries the provider once more.",
		"通常无需处理：该款项会转为退票，待您决定如何处理。若一小时后仍未关闭，请重新发起当日对账，系统会再次查询渠道。"},
	"break_do.superseded": {"Usually nothing: a “duplicate movement” break replaces this one, and that one needs your action. If this " +
		"break is still open after an hour, reconcile the day again: the platform queries the provider once more.",
		"此处通常无需处理：它会由“重复交易”差异取代，请处理后者。若一小时后仍未关闭，请重新发起当日对账，系统会再次查询渠道。"},
	"break_do.not_in_statement": {"Ask the provider by order number whether the money moved. If the statement was wrong, a corrected " +
		"statement closes the break when the day is reconciled again. If no money moved, the provider has to make up for it.",
		"请渠道凭单号确认款项是否确已付出。若账单有误，渠道更正后重新对账即自动关闭；若确未付出，须由渠道补付。"},
	"break_do.amount_differs": {"Ask the provider for the actual amount. If the statement was wrong, a corrected statement closes the " +
		"break when the day is reconciled again. Otherwise settle the difference with the provider, then resolve the break and state how.",
		"请渠道确认实际金额。若账单有误，渠道更正后重新对账即自动关闭；否则与渠道结清差额，标记为已处理并写明方式。"},
	"break_do.account_differs": {"Ask the provider which account received the money. If the statement was wrong, a corrected statement " +
		"closes the break when the day is reconciled again. Otherwise have the money recovered, then resolve the break and state how.",
		"请渠道确认实际收款账户。若账单有误，渠道更正后重新对账即自动关闭；否则要求追回，标记为已处理并写明方式。"},
	"break_do.op_differs": {"Ask the provider what it carried out under this order number. If the statement was wrong, a corrected " +
		"statement closes the break when the day is reconciled again. Otherwise have it corrected, then resolve the break and state how.",
		"请渠道确认该单号下实际执行的交易。若账单有误，渠道更正后重新对账即自动关闭；否则要求更正，标记为已处理并写明方式。"},
	"break_do.moved_twice": {"Ask the provider whether the money moved twice or is only listed twice. If it moved twice, recover the " +
		"second movement. Then resolve the break and state the result.",
		"请渠道确认是重复交易还是重复列示。若确为重复交易，请追回多出的一笔。然后标记为已处理并写明结果。"},
	"break_do.foreign_order": {"Inform operations at once, and ask the provider who sent the order. If it was not your organisation, " +
		"hold the provider and replace our key there. Then resolve the break and state the findings.",
		"立即通知运维，并向渠道查明该单由谁发起。若非我方所为，请暂停渠道并更换渠道密钥。然后标记为已处理并写明查明的情况。"},
}
