package console

// breakMessages say of each kind of break what happened, and what a person can do. What
// is told of the one case, for engineers, is the API's and stands below it.
var breakMessages = map[string]message{
	"break.detail": {"Detail for engineers", "技术细节"},
	"break.do":     {"What to do", "如何处理"},

	"break_about.mismatch": {"The provider answered about another order number, account or amount than was requested. Nothing was booked " +
		"by that answer; while the outcome is open, the platform asks again by itself.",
		"渠道答复的单号、账户或金额与请求不符。系统未按该答复记账；结果未定时会自动再次查询。"},
	"break_about.contradiction": {"The provider made two statements about one order that cannot both be true: refused and carried out, " +
		"say. Nothing is booked by one such answer alone.",
		"渠道对同一单号先后给出互相矛盾的答复，例如先称拒绝、后称成功。仅凭一次这样的答复不会记账。"},
	"break_about.second_success": {"Money moved under an order number that no longer counted: the payment had been paid under a later " +
		"number, cancelled, or marked as paid. It may have been paid twice. The money stands in suspense in the ledger.",
		"已作废的单号发生交易：该笔已用新单号完成、已取消或已标记为线下已付，资金可能重复变动。该金额记在账本的“挂账”科目。"},
	"break_about.late_success": {"A payment that had been called failed was carried out by the provider after all. It is booked as paid; " +
		"if it came back as well, nothing is booked. The charge of a packet that was rejected goes back to the sender by itself.",
		"已判定失败的付款，渠道后来却执行成功。系统已记为已付；若款项随后又退回，则不记账。若为已被拒红包的收款，会自动全额退回发红包人。"},
	"break_about.forgotten": {"The provider says that it does not know an order which it had accepted or carried out.",
		"渠道称没有某个单号，而此前它已受理或已执行该单。"},
	"break_about.share_conflict": {"A user was told that he had won, and the claim could not be booked: another has the share, or the " +
		"packet's books were closed. Nothing has been paid for it.",
		"用户已被告知抢到，但领取无法入账：该份额已归他人，或红包已结账。尚未为此付款。"},
	"break_about.restored": {"MySQL was restored from a backup, and the recovery could not find out what is true. Until this break is " +
		"dealt with, nothing of the packet is sent, closed or decided.",
		"MySQL 由备份恢复后，系统无法判定实际情况。在此差异处理完毕之前，该红包不付款、不关闭、不执行任何决定。"},
	"break_about.pool_lost": {"Redis lost grabs that had been acknowledged, and nobody knows whose. The detail says how many at most.",
		"Redis 丢失了已确认的领取记录，无从得知属于谁。最多丢失多少笔见下方细节。"},
	"break_about.not_booked": {"The provider's statement has money that moved, and the books do not show it. The provider is asked about " +
		"the order, and the break ends by itself once the books agree.",
		"渠道对账单显示资金已变动，账上没有。系统会向渠道查询该单；账目一致后，此差异自动了结。"},
	"break_about.return_not_booked": {"The provider's statement has money that came back, and the books do not show it. The provider is " +
		"asked about the order, and the break ends by itself once the books agree.",
		"渠道对账单显示已退票，账上没有。系统会向渠道查询该单；账目一致后，此差异自动了结。"},
	"break_about.superseded": {"Money moved under an order number that a later one has taken the place of: it may have been paid twice. " +
		"The provider is asked about it; what moved is then booked in suspense.",
		"已被新单号取代的旧单号发生交易，资金可能重复变动。系统会向渠道查询，并将该金额记入“挂账”科目。"},
	"break_about.not_in_statement": {"The books say that money moved or came back at the provider, and no statement has it.",
		"账上记有交易或退票，但渠道的对账单中没有。"},
	"break_about.amount_differs": {"The provider's statement has one amount, the request or the books have another.",
		"渠道对账单的金额与请求或账上的金额不一致。"},
	"break_about.account_differs": {"The provider's statement names another account than was requested: somebody else may have the money.",
		"渠道对账单的账户与请求不一致：款项可能付给了他人。"},
	"break_about.op_differs": {"The provider's statement has another kind of movement under this number than was requested: a refund under " +
		"the number of a charge, say.",
		"渠道对账单中该单号的交易类型与请求不一致，例如收款的单号下出现退款。"},
	"break_about.moved_twice": {"The provider's statement has the same movement more than once under one number, which may move money only " +
		"once.",
		"渠道对账单中同一单号多次出现同一交易，而一个单号只应交易一次。"},
	"break_about.foreign_order": {"The provider's statement has an order that is not ours, or one that we have never sent: somebody else " +
		"may be using our account at the provider.",
		"渠道对账单中有非本系统的单号，或本系统从未发送过的单号：可能有人盗用我方的渠道账户。"},

	"break_do.mismatch": {"Open the payment. If it has ended, compare it with the provider's records and mark the break as dealt with. If " +
		"its outcome is still unknown, ask the provider, by the order number, to put its answer right; do not pay by other means before.",
		"打开该笔付款。若已有结果，与渠道记录核对后标记为已处理；若仍为结果未知，请凭单号要求渠道更正答复，在此之前不要以其他方式付款。"},
	"break_do.contradiction": {"Open the payment: its attempts show what was said when. Have the provider confirm, by the order number, " +
		"what really happened. If that is where the payment stands, mark the break as dealt with; do not pay by other means before.",
		"打开该笔付款，从各次尝试可见渠道何时如何答复。请渠道凭单号确认实际情况；与付款的当前状态一致后，标记为已处理，在此之前不要以其他方式付款。"},
	"break_do.second_success": {"Get the money back from the recipient, or by the provider, and mark the break as dealt with, saying how. " +
		"If the detail says that it came back, nothing is left to get back.",
		"向收款人或经渠道追回款项，然后标记为已处理并写明方式。若细节注明已退回（came back），则无需追回。"},
	"break_do.late_success": {"Find out whether anybody has paid the person by other means meanwhile; if so, get that back. Then mark the " +
		"break as dealt with.",
		"确认期间是否有人以其他方式付过款；若有，请追回。然后标记为已处理。"},
	"break_do.forgotten": {"Ask the provider, by the order number, whether the money moved. Then open the payment: where its outcome stays " +
		"unknown, it can be retried or marked as paid by two persons. Then mark the break as dealt with.",
		"请渠道凭单号确认款项是否已付。再打开该笔付款：若仍为结果未知，可由两人重付或标记为线下已付。然后将差异标记为已处理。"},
	"break_do.share_conflict": {"Look at the user's failed payout: retry pays it with the house's money, cancel pays nothing, mark as paid " +
		"says that it was honoured by other means. Each needs a second person. Then mark the break as dealt with.",
		"查看该用户失败的付款单：重付由平台出资兑现，取消则不付，标记为线下已付表示已以其他方式兑现；均须第二人复核。然后将差异标记为已处理。"},
	"break_do.restored": {"Find out what happened, from the provider and from your own evidence, and put it right at the provider if need " +
		"be. Mark the break as dealt with only then: that lets the packet go on.",
		"根据渠道记录与我方凭证查明实情，必要时先在渠道更正。之后才可标记为已处理：标记后该红包将继续运行。"},
	"break_do.pool_lost": {"Compare with what users report, and decide what is done for them. Let operations find out why Redis lost its " +
		"data. Then mark the break as dealt with, with what was decided.",
		"与用户反馈核对，决定如何补偿，并由运维查明 Redis 丢失数据的原因。然后标记为已处理并写明决定。"},
	"break_do.not_booked": {"Mostly nothing. If it is still open an hour later, start the reconciliation of the day again, which has the " +
		"provider asked once more.",
		"通常无需处理。若一小时后仍未了结，请重新发起当日对账，系统会再次查询渠道。"},
	"break_do.return_not_booked": {"Mostly nothing: the payment becomes returned, and waits for a decision. If the break is still open an " +
		"hour later, start the reconciliation of the day again, which has the provider asked once more.",
		"通常无需处理：该笔付款会转为退票，等待决定。若一小时后仍未了结，请重新发起当日对账，系统会再次查询渠道。"},
	"break_do.superseded": {"Mostly nothing here: it gives way to the break that says that money moved a second time, and that one is to " +
		"be dealt with. If it is still open an hour later, start the reconciliation of the day again, which has the provider asked once more.",
		"此处通常无需处理：它会由“重复交易”差异取代，请处理后者。若一小时后仍未了结，请重新发起当日对账，系统会再次查询渠道。"},
	"break_do.not_in_statement": {"Ask the provider, by the order number, whether the money really moved. If its statement was wrong, a " +
		"corrected one ends the break when the day is compared again. If no money moved, the provider has to make it good.",
		"请渠道凭单号确认款项是否确已付出。若对账单有误，渠道更正后重新对账即自动了结；若确未付出，须由渠道补付。"},
	"break_do.amount_differs": {"Ask the provider which amount really moved. If its statement was wrong, a corrected one ends the break " +
		"when the day is compared again. If not, settle the difference with it, and mark the break as dealt with, saying how.",
		"请渠道确认实际金额。若对账单有误，渠道更正后重新对账即自动了结；否则与渠道结清差额，标记为已处理并写明方式。"},
	"break_do.account_differs": {"Ask the provider who got the money. If its statement was wrong, a corrected one ends the break when the " +
		"day is compared again. If not, have it brought back, and mark the break as dealt with, saying how.",
		"请渠道确认实际收款人。若对账单有误，渠道更正后重新对账即自动了结；否则要求追回，标记为已处理并写明方式。"},
	"break_do.op_differs": {"Ask the provider what it carried out under the number. If its statement was wrong, a corrected one ends the " +
		"break when the day is compared again. If not, have it put right, and mark the break as dealt with, saying how.",
		"请渠道确认该单号下实际执行的交易。若对账单有误，渠道更正后重新对账即自动了结；否则要求更正，标记为已处理并写明方式。"},
	"break_do.moved_twice": {"Ask the provider whether the money moved twice, or is only listed twice. If it moved twice, get the second " +
		"one back. Then mark the break as dealt with, saying how.",
		"请渠道确认是重复交易还是重复列示。若确为重复交易，请追回多出的一笔。然后标记为已处理并写明结果。"},
	"break_do.foreign_order": {"Tell operations at once, and ask the provider who sent the order. If it was none of you, hold the provider " +
		"and have our key there replaced. Then mark the break as dealt with, with what was found.",
		"立即通知运维，并向渠道查明该单由谁发送。若非本单位所为，请暂停渠道并更换渠道密钥。然后标记为已处理并写明查明的情况。"},
}
