package console

import (
	"slices"
	"strings"
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/sentence"
	"hongbao/wire"
)

// entryOf is an event as the API returns it.
func entryOf(e payout.Event) wire.TimelineEntry {
	return wire.TimelineEntry{At: wire.At(e.At), Source: e.Source, Event: wire.EventCode(e.Event), Args: e.Arguments(), What: e.What()}
}

// TestTimelineLines: events of every source are worded with the labels of their arguments.
func TestTimelineLines(t *testing.T) {
	type args = map[string]string
	decision := func(action, by, reason string) payout.Event {
		return payout.Event{Event: payout.EventDecision, Outcome: "waiting", Args: args{"action": action, "by": by, "reason": reason}}
	}
	for want, e := range map[string]payout.Event{
		"以单号 t1 发起：成功":                 {Event: payout.EventSent, OrderNo: "t1", Outcome: "succeeded"},
		"查询单号 t1：被拒绝 (account_frozen)": {Event: payout.EventQueried, OrderNo: "t1", Outcome: "declined", Code: "account_frozen"},
		"查询单号 t1：other":                {Event: payout.EventQueried, OrderNo: "t1", Outcome: "other"},
		"两人认定单号 t1 资金未划转；渠道最近答复：无有效响应；凭证：letter": {Event: payout.EventNotMoved, OrderNo: "t1", Outcome: "declined",
			Args: args{"last": "no_answer", "evidence": "letter"}},
		"抢红包已确认，交接记录已写入":              {Event: payout.EventGrabAcknowledged},
		"抢红包已确认，交接记录已写入（序号 17，第 2 代）": {Event: payout.EventGrabAcknowledged, Args: args{"seq": "17", "epoch": "2"}},
		"运行 0198a1b2-c3 结束：失败，须人工处理":  {Event: payout.EventRunEnded, Args: args{"run_id": "0198a1b2-c3", "status": "failed"}},
		"运行 0198a1b2-c3 结束：paused":    {Event: payout.EventRunEnded, Args: args{"run_id": "0198a1b2-c3", "status": "paused"}},
		"收到单号 t1 的渠道通知（事件 evt <b>1</b>\nx），随即查询渠道": {Event: payout.EventNotification, OrderNo: "t1",
			Args: args{"event_id": "evt <b>1</b>\nx"}},
		"流程待启动或唤醒（查询渠道），已尝试 3 次":                   {Event: payout.EventOutbox, Args: args{"kind": "ask", "attempts": "3"}},
		"流程待启动或唤醒（other），已尝试 0 次":                  {Event: payout.EventOutbox, Args: args{"kind": "other", "attempts": "0"}},
		"2026-02-17 的对账单有 MySQL 缺少的款项（转账），已安排查询渠道": {Event: payout.EventOnStatement, Args: args{"day": "2026-02-17", "op": "transfer"}},
		"申请取消，操作人 li.na：{by}":                      decision("cancel", "li.na", "{by}"),
		"同意取消，操作人 wang：seen":                       decision("approve_cancel", "wang", "seen"),
		"撤回执行中的取消，操作人 li.na：in progress for days":  decision("withdraw_open_cancel", "li.na", "in progress for days"),
		"未取消：款项已付出，操作人 worker：every order number was queried": decision("cancel_overtaken", "worker",
			"every order number was queried"),
		"of_a_newer_version": {Event: "of_a_newer_version"},
	} {
		if got := eventText(chinese, entryOf(e)); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// TestEventMessages: the text of every event has the arguments of the API's text, in both languages.
func TestEventMessages(t *testing.T) {
	for _, code := range payout.EventCodes {
		m, ok := catalogue["event."+string(code)]
		if !ok {
			t.Errorf("%s has no message", code)
			continue
		}
		names := slices.Sorted(slices.Values(sentence.Names(m.en)))
		if zh := slices.Sorted(slices.Values(sentence.Names(m.zh))); !slices.Equal(names, zh) {
			t.Errorf("%s has arguments %q in English and %q in Chinese", code, names, zh)
		}
		args := map[string]string{}
		for _, name := range names {
			args[name] = "<" + name + ">"
		}
		what := payout.Event{Event: code, Args: args}.What()
		for _, name := range names {
			if strings.Count(what, args[name]) != 1 {
				t.Errorf("%s: no argument %s in %q", code, name, what)
			}
		}
		if strings.Contains(what, "{") {
			t.Errorf("%s: %q has other arguments than %q", code, what, names)
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
