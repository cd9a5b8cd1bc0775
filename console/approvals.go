package console

import (
	"log/slog"
	"net/http"
	"net/url"

	"hongbao/client"
	"hongbao/wire"
)

// waiting counts the requests that this person can approve: those of others, for finance only.
// On error the page shows no number.
func (v *visit) waiting() (count int64, more bool) {
	if !(page{Role: v.role}).Finance() {
		return 0, false
	}
	found, err := v.staff.SumApprovals(v.r.Context(), waitsForMe)
	if err != nil {
		slog.WarnContext(v.r.Context(), "pending approvals could not be counted", slog.Any("error", err))
		return 0, false
	}
	return found.Count, found.More
}

// waitsForMe selects the requests that a person of finance can approve.
var waitsForMe = wire.ApprovalFilter{Status: "waiting", ByOthers: true}

// approvalsPage is a list of decisions that need approval.
type approvalsPage struct {
	Filter wire.ApprovalFilter
	Tabs   []approvalsTab
	Items  []wire.ApprovalItem
	Total  *total // nil if unavailable
	Next   string
}

// approvalsTab is one tab of the list.
type approvalsTab struct {
	Key, Query string
	Current    bool
}

// decisionStatuses are the statuses of the tabs; "" is all of them.
var decisionStatuses = []string{"waiting", "open", "carried_out", "overtaken", "rejected", "withdrawn", "expired", ""}

// tabsOf returns the tabs for a filter and role.
func tabsOf(now wire.ApprovalFilter, finance bool) (tabs []approvalsTab) {
	add := func(key string, f wire.ApprovalFilter) {
		tabs = append(tabs, approvalsTab{key, approvalQuery(f).Encode(), f == now})
	}
	if finance {
		add("filter.for_me", waitsForMe)
	}
	for _, status := range decisionStatuses {
		key := "approval." + status
		if status == "" {
			key = "filter.all"
		}
		add(key, wire.ApprovalFilter{Status: status})
	}
	return tabs
}

// approvalFilter reads the filter from the query. The default is what is awaiting approval, for
// finance by this person.
func (v *visit) approvalFilter() wire.ApprovalFilter {
	switch {
	case v.query.Has("status"):
		return wire.ApprovalFilter{Status: v.query.Get("status"), ByOthers: v.query.Get("by_others") == "true"}
	case (page{Role: v.role}).Finance() || v.query.Get("by_others") == "true":
		return waitsForMe
	}
	return wire.ApprovalFilter{Status: "waiting"}
}

// approvalQuery returns a filter as a query of the console, with an empty status too.
func approvalQuery(f wire.ApprovalFilter) url.Values {
	q := url.Values{"status": {f.Status}}
	if f.ByOthers {
		q.Set("by_others", "true")
	}
	return q
}

// Query is the filter of the list, as a query of the console.
func (p approvalsPage) Query() string { return approvalQuery(p.Filter).Encode() }

func (v *visit) listApprovals() error {
	f := v.approvalFilter()
	found, err := v.staff.ListApprovals(v.r.Context(), f, client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body := approvalsPage{Filter: f, Tabs: tabsOf(f, (page{Role: v.role}).Finance()), Items: found.Items,
		Total: v.sumOf(v.staff.SumApprovals(v.r.Context(), f))}
	if found.NextCursor != nil {
		q := approvalQuery(f)
		q.Set("cursor", *found.NextCursor)
		body.Next = q.Encode()
	}
	v.show("approvals", http.StatusOK, body)
	return nil
}

// exportApprovals returns the API's CSV of the same filter.
func (v *visit) exportApprovals() error {
	filters := map[string]string{}
	for name, value := range approvalQuery(v.approvalFilter()) {
		filters[name] = value[0]
	}
	return v.export("approvals", filters)
}

// answerApproval approves or rejects a request, or withdraws the person's own.
func (v *visit) answerApproval() error {
	id := v.r.PathValue("id")
	key, req := v.key(), wire.Reason{Reason: v.reason()}
	var err error
	action := v.r.PathValue("action")
	switch action {
	case "approve":
		_, err = v.staff.Approve(v.r.Context(), id, req, key)
	case "reject":
		_, err = v.staff.Reject(v.r.Context(), id, req, key)
	case "withdraw":
		_, err = v.staff.Withdraw(v.r.Context(), id, req, key)
	default:
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone(v.returnPath(), action)
}
