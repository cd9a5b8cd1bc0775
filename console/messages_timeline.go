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

	"event.times":   {"%s times", "共 %s 次"},
	"waits.pending": {"Waiting to be sent.", "等待发起。"},
	"waits.sending": {"Waiting for the provider's response.", "等待渠道返回结果。"},
	"waits.unknown": {"The outcome is unknown. The platform queries the provider until it is known.",
		"结果未知，系统会持续查询渠道直到查明。"},
	"waits.awaiting_recipient": {"The recipient has to accept the money at the provider; no decision is needed. The platform queries " +
		"every minute for an hour, then less often, at least every 15 minutes.",
		"等待收款人在渠道确认收款，无需处理。第一个小时内约每分钟查询一次，之后逐渐放慢，至少每 15 分钟查询一次。"},
	"event.grab_acknowledged":     {"Grab acknowledged, hand-off written", "抢红包已确认，交接记录已写入"},
	"event.creation_acknowledged": {"Creation acknowledged, hand-off written", "创建已确认，交接记录已写入"},
	"event.not_booked": {"Not booked yet: the hand-off waits for a worker, or the run waits for MySQL",
		"尚未入账：交接记录等待工作进程处理，或流程等待 MySQL"},
	"event.place":        {" (seq %s, epoch %s)", "（序号 %s，第 %s 代）"},
	"event.run_started":  {"Run %s started", "运行 %s 开始"},
	"event.run_ended":    {"Run %s ended: %s", "运行 %s 结束：%s"},
	"event.notification": {"Notification for %s (event %s): provider query requested", "收到单号 %s 的渠道通知（事件 %s），随即查询渠道"},
	"event.outbox":       {"Start or wake-up pending: %s, attempts so far: %s", "流程待启动或唤醒（%s），已尝试 %s 次"},
}
