package console

// holdMessages are the texts of holds: their list, their page, the forms that place and release them.
var holdMessages = map[string]message{
	"nav.holds":      {"Holds", "暂停"},
	"hold.title":     {"Hold", "暂停"},
	"hold.active":    {"active", "生效中"},
	"hold.released":  {"released", "已解除"},
	"hold.target":    {"Held", "暂停对象"},
	"hold.scope":     {"Scope", "范围"},
	"hold.any_scope": {"any", "不限"},
	"hold.name":      {"Packet, payment or provider", "红包、款项或渠道"},
	"hold.by":        {"Placed by", "操作人"},
	"hold.since":     {"Since", "暂停时间"},
	"hold.release":   {"Release", "解除"},
	"hold.reason":    {"Reason", "理由"},
	"hold.asked":     {"asked for", "已申请"},
	"hold.open":      {"Open the hold", "查看该暂停"},

	"hold_scope.all":      {"everything", "全部"},
	"hold_scope.provider": {"provider", "渠道"},
	"hold_scope.packet":   {"packet", "红包"},
	"hold_scope.payment":  {"payment", "款项"},

	"hold_kind.staff":           {"Placed by staff", "员工暂停"},
	"hold_kind.recovery":        {"Recovery of MySQL", "MySQL 恢复后待核实"},
	"hold_kind.second_success":  {"Cancelled payout was paid", "已取消的付款仍已付出"},
	"hold_kind.still_moves":     {"Cancelled payout may still be paid", "已取消的付款仍可能付出"},
	"hold_kind.charge_returned": {"Charge was returned to the sender", "收款已退回发红包人"},

	"held.packet":  {"The packet is held", "该红包已暂停"},
	"held.payment": {"The payment is held", "该款项已暂停"},
	"held.charge":  {"The charge of the packet is held", "该红包的收款已暂停"},

	"hold_this.packet":  {"Hold this packet", "暂停该红包"},
	"hold_this.payment": {"Hold this payment", "暂停该款项"},
	"hold_about.packet": {"Until the release nothing is sent for this packet, its books stay open, and its payments cannot be retried or " +
		"cancelled. Claims are recorded and queries continue. A send that was recorded before may still leave within 5 seconds.",
		"解除之前，该红包不再发起任何款项，不结账，其款项也不能重付或取消。领取照常入账，查询照常进行。此前已登记的发起，5 秒内仍可能发出。"},
	"hold_about.payment": {"Until the release this payment is not sent, retried or cancelled. Queries continue, and it can be marked as " +
		"paid. A send that was recorded before may still leave within 5 seconds.",
		"解除之前，该款项不会发起，也不能重付或取消。查询照常进行，也可标记为线下已付。此前已登记的发起，5 秒内仍可能发出。"},

	"hold.release_title": {"Release this hold", "解除该暂停"},
	"hold.lets_go":       {"The release lets go", "解除后涉及的资金"},
	"hold.other_holds":   {"Other active holds on the same packet or payment stay.", "同一红包或款项的其他暂停不受影响。"},
	"hold.second":        {"The release needs two persons of finance: one asks for it, another one releases.", "须财务两人办理：一人申请，另一人解除。"},
	"hold.asked_by":      {"Release asked for by", "解除申请人"},
	"hold.asked_reason":  {"Reason of the request", "申请理由"},
	"hold.not_yours": {"You asked for the release: another person of finance has to release the hold as well. Ask again only if what it " +
		"lets go has changed since.", "解除由您申请，须由财务的另一人确认。仅当涉及的资金有变化时才需重新申请。"},
	"hold.finance_only": {"Finance releases a hold on a packet or a payment.", "红包或款项的暂停由财务解除。"},
	"hold.ask":          {"Ask for the release", "申请解除"},
	"hold.do_release":   {"Release", "解除暂停"},
	"hold.released_by":  {"Released by", "解除人"},

	"done.hold_packet":  {"The packet is held.", "红包已暂停。"},
	"done.hold_payment": {"The payment is held.", "款项已暂停。"},
	"done.release_hold": {"The hold is released.", "暂停已解除。"},
	"done.release_waiting": {"Your request is recorded. Nothing is released yet: another person of finance has to release the hold as well.",
		"申请已记录，暂停尚未解除：须由财务的另一人确认解除。"},
	"problem.release_changed": {"What the release lets go has changed since it was asked for. Nothing is released: the first person has to " +
		"ask again.", "申请之后，解除涉及的资金已有变化。暂停没有解除，请申请人重新申请。"},

	"nav.share_conflicts": {"Share conflicts", "份额冲突"},
	"conflict.about": {"A share conflict is an acknowledged claim without a share. Two persons of finance honour it with house " +
		"money, or void it.",
		"份额冲突：已告知用户抢到，但没有对应的份额。由财务两人决定：以平台资金兑现，或作废。"},
	"conflict.list":    {"All open share conflicts", "全部待处理的份额冲突"},
	"conflict.default": {"Default decision", "默认处理"},
	"conflict.many":    {"Decide about all that match the filter", "处理符合筛选条件的全部份额冲突"},
	"conflict.about_many": {"A dry run lists them with the sum. Then the decision covers exactly these, up to 200: the first person of " +
		"finance asks, and another one decides the same. The default decision is to void where the user has another claim of the packet.",
		"先预演，列出各笔和合计；随后只处理预演中的这些，一次最多 200 笔：由财务一人申请，另一人作同样处理后生效。用户在同一红包中另有领取的，默认作废。"},
	"conflict.did":       {"Result", "处理结果"},
	"conflict.asked_by":  {"Asked for by", "申请人"},
	"conflict.none_left": {"Nothing is left for you: what you have asked for waits for another person.", "没有待您处理的份额冲突：您已申请的，须由另一人处理。"},

	"conflict_do.honour": {"honour", "兑现"},
	"conflict_do.void":   {"void", "作废"},

	"conflict_is.would_decide": {"will be decided", "将生效"},
	"conflict_is.decided":      {"decided", "已生效"},
	"conflict_is.waiting":      {"needs two persons", "须两人办理"},
	"conflict_is.skipped":      {"skipped", "跳过"},

	"hold_due.packet":  {"Held packets", "已暂停的红包"},
	"hold_due.payment": {"Held payments", "已暂停的款项"},

	"hold.many": {"Release all that match the filter", "解除符合筛选条件的全部暂停"},
	"hold.about_many": {"A dry run shows what each release moves. Then the release covers exactly these holds, up to 200. When money may " +
		"move, the first person of finance asks, and another one releases what the first one was shown.",
		"先预演，查看每项解除涉及的资金；随后只解除预演中的这些暂停，一次最多 200 项。涉及资金的，由财务一人申请，另一人按申请时所示内容解除。"},
	"hold.release_many": {"Release: %s", "解除 %s 项"},
	"hold.many_did":     {"Result of the release", "解除结果"},
	"hold.none_left":    {"Nothing is left for you: what you have asked for waits for another person.", "没有待您处理的暂停：您已申请的，须由另一人确认解除。"},

	"release_is.would_release": {"will be released", "将解除"},
	"release_is.released":      {"released", "已解除"},
	"release_is.waiting":       {"needs two persons", "须两人办理"},
	"release_is.skipped":       {"skipped", "跳过"},

	"hold.nothing": {"nothing moves now", "目前没有资金变动"},
	"hold.in_one":  {"%s in 1 payment", "%s（1 笔）"},
	"hold.in_many": {"%s in %s payments", "%s（%s 笔）"},

	"releases.charge":            {"%s is charged to the sender", "向发红包人收款 %s"},
	"releases.winners":           {"%s is paid to winners", "%s 付给领取人"},
	"releases.refunds":           {"%s is refunded to the sender", "%s 退回发红包人"},
	"releases.unclaimed":         {"%s goes to winners or back to the sender", "%s 付给领取人或退回发红包人"},
	"releases.remainder":         {"%s goes back to the sender as the remainder", "%s 作为余额退回发红包人"},
	"releases.house_winners":     {"%s is paid by the house to winners", "%s 由平台资金付给领取人"},
	"releases.house_unclaimed":   {"%s is paid by the house to winners who are not recorded yet", "%s 由平台资金付给尚未入账的领取人"},
	"releases.nothing_to_sender": {"nothing goes to the sender", "不退给发红包人"},
	"releases.honours":           {"%s is paid by the house for share conflicts", "%s 由平台出资兑现份额冲突"},
	"releases.after_retry":       {"%s moves after a retry", "%s 待重付后发起"},
	"releases.decided": {"every payment that waits for the release; each was decided before",
		"所有因此暂缓的款项，均为此前已决定发起的"},
}
