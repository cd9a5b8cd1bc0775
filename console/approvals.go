package console

import (
	"log/slog"
	"net/http"
	"net/url"

	"hongbao/client"
)

// maxPending is how many waiting decisions are looked through.
const maxPending = 200

// pending are the decisions that wait for a second person, newest first.
func (v *visit) pending() ([]client.ApprovalItem, error) {
	found, err := v.staff.ListApprovals(v.r.Context(), "waiting", client.Page{Limit: maxPending})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// waiting counts the decisions that wait for this person: of finance, and not the
// one who asked. A page is shown without the number when it cannot be read.
func (v *visit) waiting() int {
	if !(page{Role: v.role}).Finance() {
		return 0
	}
	found, err := v.pending()
	if err != nil {
		slog.WarnContext(v.r.Context(), "waiting decisions were not counted", slog.Any("error", err))
		return 0
	}
	n := 0
	for _, a := range found {
		if a.Decision.By != v.owner {
			n++
		}
	}
	return n
}

// approvalsPage are decisions that need, or needed, two persons.
type approvalsPage struct {
	Status string
	Items  []client.ApprovalItem
	Total  *total // nil: it could not be read
	Next   string
}

// decisionStatuses are the tabs of the list of decisions; "" is all of them.
var decisionStatuses = []string{"waiting", "open", "carried_out", "overtaken", "rejected", "expired", ""}

// Tabs are the statuses to choose from.
func (approvalsPage) Tabs() []string { return decisionStatuses }

func (v *visit) listApprovals() error {
	q := v.r.URL.Query()
	body := approvalsPage{Status: approvalStatus(q)}
	found, err := v.staff.ListApprovals(v.r.Context(), body.Status, client.Page{Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	body.Items = found.Items
	body.Total = v.sumOf(v.staff.SumApprovals(v.r.Context(), body.Status))
	if found.NextCursor != nil {
		body.Next = nextQuery("status", body.Status, *found.NextCursor)
	}
	v.show("approvals", http.StatusOK, body)
	return nil
}

// approvalStatus is the status that a list of decisions is about; "" is all of them.
func approvalStatus(q url.Values) string {
	if q.Has("status") {
		return q.Get("status")
	}
	return "waiting"
}

// Query is the filter of the list, as a query of the console.
func (p approvalsPage) Query() string { return url.Values{"status": {p.Status}}.Encode() }

// exportApprovals hands on the file that the API makes of the same filter.
func (v *visit) exportApprovals() error {
	return v.export("approvals", map[string]string{"status": approvalStatus(v.r.URL.Query())})
}

// answerApproval gives the second person's yes or no.
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
	default:
		return &client.Problem{Status: http.StatusNotFound, Code: client.CodeNotFound}
	}
	if err != nil {
		return v.again(err)
	}
	return v.back(v.came(), action)
}
