package console

import (
	"fmt"
	"maps"
	"reflect"
)

// message is one text in every language of the console.
type message struct{ en, zh string }

// catalogue holds every text of the console by key. The part of a key after the dot may
// be an API value: a status, a code, a role.
var catalogue = func() map[string]message {
	all := map[string]message{}
	for _, part := range []map[string]message{frameMessages, moneyMessages, closeMessages, listMessages, decisionMessages, statusMessages,
		timelineMessages, eventMessages, healthMessages, auditMessages, breakMessages, campaignMessages, holdMessages} {
		maps.Copy(all, part)
	}
	return all
}()

// translate returns a message in a language, with args formatted into it. An unknown key is an error.
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

// frameMessages are the texts around every page: navigation, sign-in, results and problems.
var frameMessages = map[string]message{
	"app.name":            {"Hongbao Console", "红包管理后台"},
	"nav.skip":            {"Skip to content", "跳到正文"},
	"nav.label":           {"Main", "主导航"},
	"nav.overview":        {"Overview", "总览"},
	"nav.payouts":         {"Payouts", "付款"},
	"nav.refunds":         {"Refunds", "退款"},
	"nav.approvals":       {"Approvals", "复核"},
	"nav.waits_for_me":    {"awaiting my approval", "待我复核"},
	"nav.packets":         {"Packets", "红包"},
	"nav.breaks":          {"Breaks", "差异"},
	"nav.reconciliations": {"Reconciliation", "对账"},
	"nav.audit":           {"Audit log", "审计日志"},
	"search.label":        {"Search", "搜索"},
	"search.placeholder":  {"Order number, provider reference, packet or user", "商户单号、渠道单号、红包或用户"},
	"search.button":       {"Search", "搜索"},
	"search.title":        {"Search", "搜索"},
	"search.for":          {"Results for", "搜索内容"},
	"search.nothing":      {"No results. User ids must match exactly.", "没有找到。用户 ID 须完全一致。"},
	"search.all_payouts":  {"All payouts to this user", "该用户的全部付款"},
	"search.sent":         {"Packets sent", "发出的红包"},
	"who.signed_in":       {"Signed in", "已登录"},
	"who.sign_out":        {"Sign out", "退出"},
	"login.title":         {"Sign in", "登录"},
	"login.about": {"Sign in with your personal staff key. The audit log records your decisions under its name.",
		"请使用本人的员工密钥登录。您的每项操作都会以该密钥的名义记入审计日志。"},
	"login.key":      {"Staff key", "员工密钥"},
	"login.hint":     {"Starts with hb_. Sessions end after 30 minutes of inactivity.", "以 hb_ 开头。30 分钟无操作将自动退出。"},
	"login.button":   {"Sign in", "登录"},
	"login.refused":  {"This key was not accepted. Check that it is complete and that it is a staff key.", "密钥无效。请确认密钥完整，且为员工密钥。"},
	"login.too_many": {"Too many failed attempts. Try again in five minutes.", "失败次数过多，请五分钟后再试。"},
	"login.saved":    {"Your session has ended. Your input is saved: sign in to see it again.", "登录已失效。您填写的内容已保留，登录后会再次显示。"},
	"login.ended": {"Your session has ended. Your input stays on this page. When you submit it, you sign in first and then see it again.",
		"登录已失效。您填写的内容仍保留在本页：提交后请重新登录，内容会再次显示。"},
	"login.not_ended": {"You are signed out in this browser, but the platform could not record it. A copy of the session would stay " +
		"valid until it expires. If a copy may exist, have the key revoked.",
		"本浏览器已退出，但系统未能记录。如果本次登录信息已被他人复制，在其过期前仍然有效。如有此可能，请吊销该密钥。"},
	"done.title":     {"Done.", "操作成功。"},
	"done.hold":      {"The provider is held: nothing more is sent to it.", "渠道已暂停，不再向其发起款项。"},
	"done.release":   {"The provider is released: waiting payments are sent now.", "渠道已恢复，等待中的款项将继续发起。"},
	"done.approve":   {"Approved.", "已同意。"},
	"done.reject":    {"Rejected. No money has moved.", "已驳回，资金没有变动。"},
	"done.withdraw":  {"Request withdrawn. No money has moved.", "申请已撤回，资金没有变动。"},
	"done.resolve":   {"The break is resolved.", "该差异已标记为已处理。"},
	"done.recall":    {"The packet is recalled. The remainder is refunded to the sender.", "红包已撤回，剩余金额将退回发红包人。"},
	"done.reconcile": {"The reconciliation is requested.", "已发起对账。"},

	"problem.title":           {"Not done.", "操作未完成。"},
	"problem.heading":         {"Request failed", "操作失败"},
	"problem.home":            {"Back to overview", "返回总览"},
	"problem.id":              {"Request %s", "请求编号 %s"},
	"problem.other":           {"Unexpected response from the platform", "系统返回异常"},
	"problem.internal":        {"Internal error.", "系统内部错误。"},
	"problem.unavailable":     {"Temporarily unavailable. No data is lost; try again.", "服务暂时不可用，数据没有丢失，请稍后重试。"},
	"problem.forbidden":       {"Your role does not allow this, or another person has to do it.", "您的角色无权进行此操作，或须由他人进行。"},
	"problem.csrf":            {"The form belongs to another session. Reload the page and try again.", "表单与当前登录不符，请刷新页面后重试。"},
	"problem.unreadable_form": {"The form could not be read completely. Nothing was done.", "提交的内容无法完整读取，未执行任何操作。"},
	"problem.invalid_query": {"The page address has a parameter that this page does not know or cannot read. Nothing was shown, " +
		"changed or exported, because ignoring a filter would mislead.",
		"网址中的参数无法识别。为避免筛选条件失效造成误导，系统没有显示、更改或导出任何内容。"},
	"problem.cross_origin": {"The request came from another site and was refused.", "请求来自其他网站，已拒绝。"},
	"problem.not_found":    {"Page not found.", "页面不存在。"},

	"problem.packet_not_found": {"Packet not found.", "红包不存在。"},
	"problem.not_open_yet":     {"The charge is not confirmed yet. Try again when the packet is open.", "收款尚未确认，请在红包可抢后再试。"},
	"problem.payout_not_found": {"Payout not found.", "付款不存在。"},
	"problem.refund_not_found": {"Refund not found.", "退款不存在。"},
	"problem.invalid_request":  {"The input is not valid.", "输入内容有误。"},
	"problem.not_retryable": {"Not possible now: the status has just changed, or a recovery of MySQL left this packet to a manual decision.",
		"当前不能进行此操作：状态可能刚刚变化，或 MySQL 恢复时无法判定、须人工处理。"},
	"problem.decision_pending": {"Another decision is awaiting approval or in progress.", "已有一项处理决定正在复核或执行中。"},
	"problem.recovery_required": {"Only another recovery of MySQL ends this hold: the outcome of the charge is not known yet.",
		"该暂停只能由再次恢复 MySQL 解除：收款结果尚不明确。"},
	"problem.held": {"A hold on the packet or the payment stops this decision. Release the hold first.", "该红包或该款项已暂停，请先解除暂停再处理。"},
	"problem.decision_changed": {"The payment has changed since the request. No money has moved: reject the request, or have it " +
		"withdrawn and submitted again.",
		"申请提交后，款项情况已有变化。资金没有变动：请驳回，或由申请人撤回后重新申请。"},
	"problem.idempotency_key_reused": {"This form was submitted before with different contents. Check the result of that submission " +
		"before you submit again.",
		"该表单此前已以不同内容提交。请先查看那次提交的结果，再重新提交。"},
	"problem.request_in_progress": {"The same request is still in progress.", "相同的请求仍在处理中。"},

	"age.days":    {"%d d %d h", "%d 天 %d 小时"},
	"age.hours":   {"%d h %d min", "%d 小时 %d 分"},
	"age.minutes": {"%d min", "%d 分钟"},
	"age.seconds": {"%d s", "%d 秒"},

	"role.finance": {"finance", "财务"},
	"role.ops":     {"operations", "运维"},
	"role.auditor": {"auditor", "审计员"},
	"role.admin":   {"administrator", "管理员"},
}
