package console

// timelineMessages are what a timeline and Temporal say.
var timelineMessages = map[string]message{
	"filter.late": {"Late", "逾期"},
	"filter.about_late": {"Due for five minutes and not back with the sender: what nobody took, once its packet has expired or was " +
		"closed before; what a cancelled payout held, once that was cancelled.", "应退已满五分钟而尚未退回发红包人的退款：红包到期或提前关闭后的余额，以及已取消付款单的款项。"},
	"filter.overdue": {"Overdue", "逾期未关闭"},
	"filter.about_overdue": {"Expired at least five minutes ago and not closed: the charge, the closing or the refund is late.",
		"到期已满五分钟而尚未关闭：收款、关闭或退款有延误。"},
	"filter.overdue_packets": {"Packets that are past their end and not closed", "已到期而未关闭的红包"},
	"overview.late_refunds":  {"Refunds late", "逾期退款"},

	"source.redis":        {"Redis", "Redis 交接"},
	"source.temporal":     {"Temporal", "Temporal 流程"},
	"source.notification": {"notification", "渠道通知"},
	"source.outbox":       {"outbox", "待发起"},

	"step.scheduled":        {"waits for its next try", "等待下一次尝试"},
	"step.started":          {"is under way", "进行中"},
	"step.cancel_requested": {"is being cancelled", "正在取消"},

	"run.running":          {"running", "运行中"},
	"run.completed":        {"completed", "已完成"},
	"run.failed":           {"failed: a person is needed", "失败，需人工处理"},
	"run.canceled":         {"cancelled", "已取消"},
	"run.terminated":       {"terminated by somebody", "被人为终止"},
	"run.continued_as_new": {"goes on as a new run", "转为新的运行"},
	"run.timed_out":        {"timed out", "超时"},

	"errand.begin":  {"to pay", "付款"},
	"errand.ask":    {"to ask the provider", "查询渠道"},
	"errand.decide": {"to carry out a decision", "执行决定"},
	"errand.finish": {"to close the packet", "关闭红包"},

	"temporal.away": {"Temporal does not answer: its part of the timeline is missing. Everything else is as the books have it.",
		"Temporal 没有应答，时间线缺少其部分；其余内容以账本为准。"},
	"temporal.gone":         {"Temporal knows no run of it, or none any more.", "Temporal 没有该流程的记录，或记录已过保留期。"},
	"temporal.pending":      {"Step %s, try %d,", "步骤 %s，第 %d 次，"},
	"temporal.next":         {"next try", "下一次"},
	"temporal.last_failure": {"The last try failed:", "上次失败原因："},

	"event.times":   {"%s times", "共 %s 次"},
	"waits.pending": {"It waits to be sent.", "等待发送。"},
	"waits.sending": {"It waits for the provider's answer.", "等待渠道答复。"},
	"waits.unknown": {"It waits for the provider to say what became of it, and is asked about until that is known.",
		"等待渠道说明结果，系统会持续查询，直到得知。"},
	"waits.awaiting_recipient": {"It waits for its recipient, who has to accept the money at the provider. Nothing has to be decided. " +
		"The provider is asked about every minute for an hour, then less often, and every quarter of an hour at least.",
		"等待收款人在渠道确认收款，无需处理。第一个小时约每分钟查询一次，此后逐渐减少，至少每 15 分钟查询一次。"},
	"event.grab_acknowledged":     {"Grab acknowledged, hand-off written", "抢红包已确认，交接记录已写入"},
	"event.creation_acknowledged": {"Creation acknowledged, hand-off written", "创建已确认，交接记录已写入"},
	"event.not_booked":            {"Not booked yet: its hand-off waits for a worker, or its run for MySQL", "尚未入账：交接记录等待处理，或流程等待 MySQL"},
	"event.place":                 {" (number %s of epoch %s)", "（第 %s 号，纪元 %s）"},
	"event.run_started":           {"Run %s started", "运行 %s 开始"},
	"event.run_ended":             {"Run %s ended: %s", "运行 %s 结束：%s"},
	"event.told":                  {"Told about %s (event %s); the provider is asked", "收到单号 %s 的通知（事件 %s），随即查询渠道"},
	"event.errand":                {"A run is to be started or woken %s; tries so far: %s", "待发起或唤醒流程（%s），已尝试 %s 次"},
}
