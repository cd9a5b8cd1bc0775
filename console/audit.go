package console

import (
	"net/http"
	"net/url"
	"strings"

	"hongbao/client"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// auditPage is a page of the audit log.
type auditPage struct {
	Actor, Action, Subject string
	Items                  []auditLine
	Total                  *total // nil if unavailable
	Next                   string
	Verdict                *wire.AuditVerdict // set after a verification
}

// auditActions are suggested as a filter; others can be entered.
var auditActions = []string{"retry", "cancel", "mark_paid", "ask", "approve_retry", "approve_cancel", "approve_mark_paid", "reject_retry",
	"reject_cancel", "reject_mark_paid", "withdraw_retry", "withdraw_cancel", "withdraw_mark_paid",
	"withdraw_open_cancel",
	"cancel_carried_out", "cancel_overtaken", "moved", "not_moved", "approve_moved", "approve_not_moved", "reject_moved", "reject_not_moved",
	"withdraw_moved", "withdraw_not_moved", "withdraw_open_not_moved", "not_moved_carried_out", "not_moved_overtaken",
	"written_off", "approve_written_off", "reject_written_off", "withdraw_written_off",
	"credit", "debit", "approve_credit", "approve_debit", "reject_credit", "reject_debit", "withdraw_credit", "withdraw_debit",
	"recall", "set_recipient", "pause_campaign", "end_campaign", "hold", "release", "ask_release", "reconcile",
	"resolve_break",
	"create_key", "rotate_key", "approve_key", "revoke_key", "add_ticket_key", "revoke_ticket_key", "books_restored", "books_recovered"}

// Actions are the suggested actions.
func (auditPage) Actions() []string { return auditActions }

// auditLine is an audit entry with its states as text.
type auditLine struct {
	wire.AuditEntry
	BeforeText, AfterText string
	Link                  string // page of its subject; "" if none
}

func (v *visit) listAudit() error { return v.audit(nil) }

// verifyAudit has the whole hash chain verified, which may take a minute.
func (v *visit) verifyAudit() error {
	verdict, err := v.staff.VerifyAudit(v.r.Context())
	if err != nil {
		return err
	}
	return v.audit(verdict)
}

func readAuditPage(q url.Values) auditPage {
	return auditPage{Actor: q.Get("actor"), Action: q.Get("action"), Subject: q.Get("subject")}
}

func (p auditPage) filters() map[string]string {
	return map[string]string{"actor": p.Actor, "action": p.Action, "subject": p.Subject}
}

// Query is the filter of the list, as a query of the console.
func (p auditPage) Query() string { return queryOf(p.filters()).Encode() }

// exportAudit returns the API's CSV of the same filter.
func (v *visit) exportAudit() error {
	return v.export("audit", readAuditPage(v.query).filters())
}

func (v *visit) audit(verdict *wire.AuditVerdict) error {
	body := readAuditPage(v.query)
	body.Verdict = verdict
	filter := wire.AuditFilter{Actor: body.Actor, Action: body.Action, Subject: body.Subject}
	found, err := v.staff.ListAudit(v.r.Context(), filter, client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body.Total = v.countOf(v.staff.CountAudit(v.r.Context(), filter))
	for _, e := range found.Items {
		line := auditLine{AuditEntry: e, BeforeText: stateText(e.Before), AfterText: stateText(e.After)}
		if id, ok := strings.CutPrefix(e.Subject, "packet/"); ok && packet.ValidID(id) {
			line.Link = "/packets/" + id
		} else if id, ok := strings.CutPrefix(e.Subject, "hold/"); ok {
			line.Link = "/holds/h" + id
		} else if len(e.Subject) == idLen {
			line.Link = paymentPath(e.Subject)
		}
		body.Items = append(body.Items, line)
	}
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	v.show("audit", http.StatusOK, body)
	return nil
}

// stateText returns a state as JSON on one line; "" for none.
func stateText(state wire.State) string {
	if string(state) == "null" {
		return ""
	}
	return string(state)
}
