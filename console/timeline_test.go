package console

import "testing"

// TestTimelineLines: timeline lines of every source are translated.
func TestTimelineLines(t *testing.T) {
	for what, want := range map[string]string{
		"grab acknowledged, hand-off written":                               "抢红包已确认，交接记录已写入",
		"grab acknowledged, hand-off written: seq 17, epoch 2":              "抢红包已确认，交接记录已写入（序号 17，第 2 代）",
		"creation acknowledged, hand-off written":                           "创建已确认，交接记录已写入",
		"run 0198a1b2-c3 started":                                           "运行 0198a1b2-c3 开始",
		"run 0198a1b2-c3 ended: failed":                                     "运行 0198a1b2-c3 结束：失败，须人工处理",
		"run 0198a1b2-c3 ended: paused":                                     "运行 0198a1b2-c3 结束：paused",
		"notification for p3q5k9v0c1m7e2u8h4r6t0003: event evt <b>1</b>\nx": "收到单号 p3q5k9v0c1m7e2u8h4r6t0003 的渠道通知（事件 evt <b>1</b>\nx），随即查询渠道",
		"start or wake-up pending: ask, attempts 3":                         "流程待启动或唤醒（查询渠道），已尝试 3 次",
		"start or wake-up pending: other, attempts 0":                       "流程待启动或唤醒（other），已尝试 0 次",
		"not booked yet":                                                    "尚未入账：交接记录等待工作进程处理，或流程等待 MySQL",
		"cancel by li.na: gone":                                             "取消，操作人 li.na：gone",
		"approve_cancel by wang: seen":                                      "同意，操作人 wang：seen",
		"withdraw_mark_paid by wang: wrong one":                             "撤回申请，操作人 wang：wrong one",
		"withdraw_open_cancel by li.na: in progress for days":               "撤回执行中的取消，操作人 li.na：in progress for days",
		"cancel_carried_out by worker: every order number was asked":        "取消已执行，操作人 worker：every order number was asked",
		"cancel_overtaken by worker: every order number was asked":          "未取消：款项已付出，操作人 worker：every order number was asked",
		"something else":                                                    "something else",
	} {
		if got := translateEvent(chinese, what); got != want {
			t.Errorf("%q: %q, want %q", what, got, want)
		}
	}
}

// TestNoBoundIsNotNothing: a maximum amount of zero is refused instead of read as no bound, which
// would select every payment.
func TestNoBoundIsNotNothing(t *testing.T) {
	for _, text := range []string{"0", "0.00", "¥0.0"} {
		if _, fault := (filterForm{Max: text}).filter(); fault != "filter.bad_amount" {
			t.Errorf("at most %s: %q", text, fault)
		}
		if _, fault := (filterForm{Min: text}).filter(); fault != "" {
			t.Errorf("at least %s: %q", text, fault)
		}
	}
}
