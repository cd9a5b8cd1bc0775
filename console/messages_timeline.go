package console

// timelineMessages are the texts of timelines, of Temporal runs and of lists of late payments.
var timelineMessages = map[string]message{
	"filter.late": {"Late", "逾期"},
	"filter.about_late": {"Refunds due for more than five minutes and not completed: remainders of expired or closed packets, and " +
		"amounts of cancelled payouts.",
		"应退已满五分钟而尚未退回发红包人的退款：红包到期或提前关闭后的余额，以及已取消付款的款项。"},
	"filter.overdue": {"Overdue", "逾期未关闭"},
	"filter.about_overdue": {"Packets that expired more than five minutes ago and are not closed: the charge, the closing or the " +
		"refund is late.",
		"到期已满五分钟而尚未关闭的红包：收款、关闭或退款有延误。"},
	"filter.overdue_packets": {"Packets past their expiry that are not closed", "已到期而未关闭的红包"},
	"overview.late_refunds":  {"Late refunds", "逾期退款"},

	"source.redis":        {"Redis", "Redis 红包池"},
	"source.temporal":     {"Temporal", "Temporal 流程"},
	"source.notification": {"notification", "渠道通知"},
	"source.outbox":       {"outbox", "发件箱"},

	"step.scheduled":        {"waiting for the next attempt", "等待下一次尝试"},
	"step.started":          {"in progress", "进行中"},
	"step.cancel_requested": {"cancel requested", "正在取消"},

	"run.running":          {"running", "运行中"},
	"run.completed":        {"completed", "已完成"},
	"run.failed":           {"failed, needs a decision", "失败，须人工处理"},
	"run.canceled":         {"cancelled", "已取消"},
	"run.terminated":       {"terminated manually", "被人工终止"},
	"run.continued_as_new": {"continued as new", "转为新的运行"},
	"run.timed_out":        {"timed out", "超时"},

	"outbox.begin":  {"carry out the payment", "办理款项"},
	"outbox.ask":    {"query the provider", "查询渠道"},
	"outbox.decide": {"carry out a decision", "执行处理决定"},
	"outbox.finish": {"close the packet", "关闭红包"},

	"temporal.away": {"Temporal is not responding: its part of the timeline is missing. Everything else comes from MySQL.",
		"Temporal 没有响应，时间线缺少这一部分，其余内容来自 MySQL。"},
	"temporal.gone":         {"Temporal has no run of this workflow, or its retention period is over.", "Temporal 没有该工作流的记录，或记录已过保留期。"},
	"temporal.pending":      {"Step %s, attempt %d", "步骤 %s，第 %d 次尝试"},
	"temporal.next":         {"next attempt", "下一次"},
	"temporal.last_failure": {"Last failure", "上次失败原因"},

	"timeline.times": {"%s times", "共 %s 次"},
	"waits.pending":  {"Waiting to be sent.", "等待发起。"},
	"waits.sending":  {"Waiting for the provider's response.", "等待渠道返回结果。"},
	"waits.unknown": {"The outcome is unknown. The platform queries the provider until it is known.",
		"结果未知，系统会持续查询渠道直到查明。"},
	"waits.awaiting_recipient": {"The recipient has to accept the money at the provider; no decision is needed. The platform queries " +
		"every minute for an hour, then less often, at least every 15 minutes.",
		"等待收款人在渠道确认收款，无需处理。第一个小时内约每分钟查询一次，之后逐渐放慢，至少每 15 分钟查询一次。"},
}

// eventMessages are the events of timelines, with their arguments (sentence.Fill).
var eventMessages = map[string]message{
	"event.claim_booked":     {"Claim booked, payout owed", "领取已入账，转应付"},
	"event.claim_conflict":   {"Claim acknowledged, not booked (share conflict)", "领取已确认，未能入账（份额冲突）"},
	"event.packet_recorded":  {"Packet recorded, charge due", "红包已登记，待收款"},
	"event.books_closed":     {"Books closed, remainder is refunded", "已结账，剩余金额转退款"},
	"event.payout_cancelled": {"Payout cancelled, the amount is refunded", "付款已取消，款项退回"},

	"event.sent":    {"Sent {order_no}: {outcome}[ ({code})]", "以单号 {order_no} 发起：{outcome}[ ({code})]"},
	"event.queried": {"Queried {order_no}: {outcome}[ ({code})]", "查询单号 {order_no}：{outcome}[ ({code})]"},
	"event.moved": {"Two persons stated that the money of {order_no} has moved; last answer of the provider: {last}; evidence: {evidence}",
		"两人认定单号 {order_no} 资金已划转；渠道最近答复：{last}；凭证：{evidence}"},
	"event.not_moved": {"Two persons stated that the money of {order_no} has not moved; last answer of the provider: {last}; " +
		"evidence: {evidence}",
		"两人认定单号 {order_no} 资金未划转；渠道最近答复：{last}；凭证：{evidence}"},
	"event.decision":       {"{action} by {by}: {reason}", "{action}，操作人 {by}：{reason}"},
	"event.charge_expired": {"The packet expired before the charge was sent", "发起收款前红包已到期"},
	"event.not_recorded":   {"Not recorded: {detail}", "未能入账：{detail}"},
	"event.on_statement": {"The statement of {day} shows money that MySQL lacks ({op}): query requested",
		"{day} 的对账单有 MySQL 缺少的款项（{op}），已安排查询渠道"},
	"event.return_listed": {"Returned without a notification: query requested", "款项已退回但未收到通知，已安排查询渠道"},
	"event.send_recovered": {"The provider knows this order number, and the restored MySQL lacked its send",
		"渠道有此单号，而恢复后的 MySQL 缺少其发起记录"},
	"event.cancel_recovered": {"Cancelled after the backup: the provider knows its refund", "备份之后已取消：渠道有其退款记录"},
	"event.rejection_recovered": {"The packet was rejected after the backup; the provider did not charge it",
		"备份之后红包已被拒绝，渠道未收款"},

	"event.grab_acknowledged": {"Grab acknowledged, hand-off written[ (seq {seq}, epoch {epoch})]",
		"抢红包已确认，交接记录已写入[（序号 {seq}，第 {epoch} 代）]"},
	"event.creation_acknowledged": {"Creation acknowledged, hand-off written", "创建已确认，交接记录已写入"},
	"event.not_booked": {"Not booked yet: the hand-off waits for a worker, or the run waits for MySQL",
		"尚未入账：交接记录等待工作进程处理，或流程等待 MySQL"},
	"event.run_started": {"Run {run_id} started", "运行 {run_id} 开始"},
	"event.run_ended":   {"Run {run_id} ended: {status}", "运行 {run_id} 结束：{status}"},
	"event.notification": {"Notification for {order_no} (event {event_id}): provider query requested",
		"收到单号 {order_no} 的渠道通知（事件 {event_id}），随即查询渠道"},
	"event.outbox": {"Start or wake-up pending: {kind}, attempts so far: {attempts}", "流程待启动或唤醒（{kind}），已尝试 {attempts} 次"},
}
