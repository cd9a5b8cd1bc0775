package console

import (
	"fmt"
	"maps"
	"reflect"
)

// saying is one message in every language of the console.
type message struct{ en, zh string }

// catalogue is everything that the console says, by key. What follows a dot may be
// a word of the API: a status, a code, a role.
var catalogue = func() map[string]message {
	all := map[string]message{}
	for _, part := range []map[string]message{frameMessages, moneyMessages, closeMessages, listMessages, decisionMessages, statusMessages,
		timelineMessages, healthMessages, auditMessages, breakMessages, campaignMessages} {
		maps.Copy(all, part)
	}
	return all
}()

// translate says a message in a language. An unknown key is an error.
func translate(l language, key string, args ...any) (string, error) {
	m, ok := catalogue[key]
	if !ok {
		return "", fmt.Errorf("message %q is not in the catalogue", key)
	}
	text := m.en
	if l == chinese {
		text = m.zh
	}
	if len(args) == 0 {
		return text, nil
	}
	for i, arg := range args {
		if v := reflect.ValueOf(arg); v.Kind() == reflect.Pointer && !v.IsNil() {
			args[i] = v.Elem().Interface()
		}
	}
	return fmt.Sprintf(text, args...), nil
}

// frameMessages are those around every page.
var frameMessages = map[string]message{
	"app.name":            {"Hongbao desk", "红包工作台"},
	"nav.skip":            {"Skip to content", "跳到正文"},
	"nav.label":           {"Main", "主导航"},
	"nav.overview":        {"Overview", "总览"},
	"nav.payouts":         {"Payouts", "付款单"},
	"nav.refunds":         {"Refunds", "退款"},
	"nav.approvals":       {"Approvals", "复核"},
	"nav.waits_for_me":    {"waits for me:", "等我处理："},
	"nav.packets":         {"Packets", "红包"},
	"nav.breaks":          {"Breaks", "差异"},
	"nav.reconciliations": {"Reconciliation", "对账"},
	"nav.audit":           {"Audit", "审计"},
	"search.label":        {"Search", "搜索"},
	"search.placeholder":  {"Order number, provider's number, packet or user", "商户单号、渠道单号、红包或用户"},
	"search.button":       {"Find", "查找"},
	"search.title":        {"Search", "搜索"},
	"search.for":          {"Found for", "搜索内容"},
	"search.nothing":      {"Nothing was found. User ids are compared letter by letter.", "没有找到。用户号须逐字相同。"},
	"search.all_payouts":  {"All payouts of this user", "该用户的全部付款单"},
	"search.sent":         {"Packets sent", "发出的红包"},
	"who.signed_in":       {"Signed in:", "已登录："},
	"who.sign_out":        {"Sign out", "退出"},
	"login.title":         {"Sign in", "登录"},
	"login.about": {"With your personal staff key. What you decide here is written to the audit under its name.",
		"请使用本人的员工密钥。您在此所做的决定都会以该密钥的名义记入审计。"},
	"login.key":      {"Staff key", "员工密钥"},
	"login.hint":     {"It begins with hb_. You are signed out after 30 minutes without doing anything.", "以 hb_ 开头。30 分钟无操作将自动退出。"},
	"login.button":   {"Sign in", "登录"},
	"login.refused":  {"This key does not open the desk. Check that it is whole and a staff key.", "该密钥无法登录工作台。请确认密钥完整且为员工密钥。"},
	"login.too_many": {"Too many failed attempts. Try again in five minutes.", "失败次数过多，请五分钟后再试。"},
	"login.held": {"Your sign-in has ended. What you have written is kept: sign in, and it is shown to you again.",
		"登录已失效。您填写的内容已保留，登录后会再次显示。"},
	"login.ended": {"Your sign-in has ended. What you write stays here: when you send it you are asked to sign in, and it is " +
		"shown to you again.", "登录已失效。您填写的内容仍保留在此：提交后请重新登录，内容会再次显示。"},
	"login.not_ended": {"You are signed out in this browser. The platform could not note it: a copy of the sign-in, if somebody has " +
		"one, is good until it ends by itself. Have the key revoked if that may be so.",
		"本浏览器已退出，但系统未能记录：若有人持有本次登录的副本，在其自行失效前仍可使用。如有此可能，请吊销该密钥。"},
	"done.title":              {"Done.", "已完成。"},
	"done.hold":               {"The provider is held: nothing more is sent to it.", "渠道已暂停：不再向其发送付款。"},
	"done.release":            {"The provider is released: what waited goes out.", "渠道已恢复：等待中的付款将继续发送。"},
	"done.approve":            {"You have agreed.", "您已同意。"},
	"done.reject":             {"You have refused; nothing has moved.", "您已驳回，资金没有变动。"},
	"done.withdraw":           {"Your request is withdrawn; nothing has moved.", "申请已撤回，资金没有变动。"},
	"done.resolve":            {"The break is marked as dealt with.", "该差异已标记为处理完毕。"},
	"done.recall":             {"The packet is recalled; the remainder goes back to the sender.", "红包已撤回，剩余金额将退回发红包人。"},
	"done.reconcile":          {"The reconciliation was asked for.", "已发起对账。"},
	"problem.title":           {"Not done.", "未完成。"},
	"problem.heading":         {"This did not work", "操作未成功"},
	"problem.home":            {"Back to the overview", "返回总览"},
	"problem.id":              {"Request %s", "请求号 %s"},
	"problem.other":           {"The platform answered:", "平台答复："},
	"problem.internal":        {"Something went wrong on our side.", "系统内部出错。"},
	"problem.unavailable":     {"This cannot be answered now. Nothing is lost; try again.", "暂时无法答复，没有任何丢失，请稍后再试。"},
	"problem.forbidden":       {"Your role may not do this, or another person has to.", "您的角色无权进行此操作，或须由另一人进行。"},
	"problem.csrf":            {"The form does not belong to this sign-in. Load the page again and repeat.", "表单与本次登录不符，请刷新页面后重试。"},
	"problem.unreadable_form": {"What was sent cannot be read as a whole. Nothing was done.", "提交的内容无法完整读取，未执行任何操作。"},
	"problem.invalid_query": {"The address of the page asks for something that the page does not know or cannot read. Nothing was shown, " +
		"changed or exported: a filter that is not applied would mislead.",
		"网址中含有本页不认识或无法读取的条件。系统未显示、更改或导出任何内容：不生效的筛选条件会造成误导。"},
	"problem.cross_origin": {"The request came from another site and was refused.", "请求来自其他网站，已拒绝。"},
	"problem.not_found":    {"There is nothing here.", "此处没有内容。"},

	"problem.packet_not_found": {"There is no such packet.", "没有这个红包。"},
	"problem.not_open_yet":     {"Its charge has no answer yet; try again when it is open.", "收款尚无结果，请在红包可抢后再试。"},
	"problem.payout_not_found": {"There is no such payout.", "没有这张付款单。"},
	"problem.refund_not_found": {"There is no such refund.", "没有这笔退款。"},
	"problem.invalid_request":  {"Something that was put in is not right.", "输入内容有误。"},
	"problem.not_retryable": {"This is not possible now: its status has changed meanwhile, or a recovery of the books has left it " +
		"to people.", "目前不能进行此操作：状态可能刚刚变化，或账本恢复时无法判定、须人工处理。"},
	"problem.decision_pending": {"Another decision about it waits for a second person, or is being carried out.", "另有一项决定正在等待复核或执行。"},
	"problem.decision_changed": {"What it is about has changed since it was asked for. Nothing has moved: refuse it, or have it " +
		"withdrawn and " +
		"asked for again.", "申请之后，情况已有变化。资金没有变动：请驳回，或由申请人撤回后重新申请。"},
	"problem.idempotency_key_reused": {"The form was answered before, with other contents. See what became of that before you send it anew.",
		"该表单此前已以其他内容提交并得到答复。请先查看其结果，再重新提交。"},
	"problem.request_in_progress": {"The same request is still under way.", "相同的请求仍在处理中。"},

	"age.days":    {"%d d %d h", "%d天%d小时"},
	"age.hours":   {"%d h %d min", "%d小时%d分"},
	"age.minutes": {"%d min", "%d分钟"},
	"age.seconds": {"%d s", "%d秒"},

	"role.finance": {"finance", "财务"},
	"role.ops":     {"operations", "运维"},
	"role.auditor": {"auditor", "审计员"},
	"role.admin":   {"administrator", "管理员"},
}
