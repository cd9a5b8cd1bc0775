package console

import (
	"log/slog"
	"net/http"
	"net/url"

	"hongbao/client"
)

// waiting counts the decisions that wait for this person: of finance, and not the
// one who asked. A page is shown without the number when it cannot be read.
func (v *visit) waiting() (count int64, more bool) {
	if !(page{Role: v.role}).Finance() {
		return 0, false
	}
	found, err := v.staff.SumApprovals(v.r.Context(), waitsForMe)
	if err != nil {
		slog.WarnContext(v.r.Context(), "waiting decisions were not counted", slog.Any("error", err))
		return 0, false
	}
	return found.Count, found.More
}

// waitsForMe is what a person of finance may answer.
var waitsForMe = client.ApprovalFilter{Status: "waiting", ByOthers: true}

// approvalsPage are decisions that need, or needed, two persons.
type approvalsPage struct {
	Filter client.ApprovalFilter
	Tabs   []approvalsTab
	Items  []client.ApprovalItem
	Total  *total // nil: it could not be read
	Next   string
}

// approvalsTab is a part of the list to choose.
type approvalsTab struct {
	Key, Query string
	Current    bool
}

// decisionStatuses are the tabs of the list of decisions; "" is all of them.
var decisionStatuses = []string{"waiting", "open", "carried_out", "overtaken", "rejected", "withdrawn", "expired", ""}

// tabsOf are the parts of the list that a person can choose.
func tabsOf(now client.ApprovalFilter, finance bool) (tabs []approvalsTab) {
	add := func(key string, f client.ApprovalFilter) {
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
		add(key, client.ApprovalFilter{Status: status})
	}
	return tabs
}

// approvalFilter reads the filter of a list of decisions: at first what waits, for this
// person if it can.
func (v *visit) approvalFilter() client.ApprovalFilter {
	switch {
	case v.query.Has("status"):
		return client.ApprovalFilter{Status: v.query.Get("status"), ByOthers: v.query.Get("by_others") == "true"}
	case (page{Role: v.role}).Finance() || v.query.Get("by_others") == "true":
		return waitsForMe
	}
	return client.ApprovalFilter{Status: "waiting"}
}

// approvalQuery is a filter as a query of the console. An empty status stands there too.
func approvalQuery(f client.ApprovalFilter) url.Values {
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

// exportApprovals hands on the file that the API makes of the same filter.
func (v *visit) exportApprovals() error {
	filters := map[string]string{}
	for name, value := range approvalQuery(v.approvalFilter()) {
		filters[name] = value[0]
	}
	return v.export("approvals", filters)
}

// answerApproval gives the second person's yes or no, or withdraws one's own request.
func (v *visit) answerApproval() error {
	id := v.r.PathValue("id")
	req := client.DecisionRequest{IdempotencyKey: v.key(), Reason: v.reason()}
	var err error
	action := v.r.PathValue("action")
	switch action {
	case "approve":
		_, err = v.staff.Approve(v.r.Context(), id, req)
	case "reject":
		_, err = v.staff.Reject(v.r.Context(), id, req)
	case "withdraw":
		_, err = v.staff.Withdraw(v.r.Context(), id, req)
	default:
		return &client.Problem{Status: http.StatusNotFound, Code: client.CodeNotFound}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone(v.returnPath(), action)
}
