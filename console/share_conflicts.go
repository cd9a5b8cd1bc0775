package console

import (
	"net/http"

	"hongbao/wire"
)

// conflictsPage selects share conflicts by a filter, and shows the last bulk decision about them.
type conflictsPage struct {
	PacketID, UserID, Default string // the filter

	Decision string   // of the last dry run: honour or void
	Seen     []string // what it would decide or ask for
	Reason   string
	Done     *wire.BulkConflictsDecided
}

// Decisions are the decisions about share conflicts.
func (conflictsPage) Decisions() []string { return []string{"honour", "void"} }

// Query is the filter of the page.
func (p conflictsPage) Query() string {
	return queryOf(map[string]string{"packet_id": p.PacketID, "user_id": p.UserID, "default_decision": p.Default}).Encode()
}

// conflictsPage is the requested page. After a decision that was not carried out it has the input.
func (v *visit) conflictsPage() conflictsPage {
	q := v.query
	p := conflictsPage{PacketID: q.Get("packet_id"), UserID: q.Get("user_id"), Default: q.Get("default_decision")}
	if sent := v.submission; sent != nil && sent.Path == "/share-conflicts/decide" {
		p.Reason, p.Seen, p.Decision = sent.Reason, sent.form["seen"], sent.form.Get("decision")
	}
	return p
}

func (v *visit) showConflicts() error {
	v.show("share-conflicts", http.StatusOK, v.conflictsPage())
	return nil
}

// decideConflicts dry-runs or carries out a decision about the share conflicts that match the filter. A
// decision covers exactly those of the last dry run.
func (v *visit) decideConflicts() error {
	form := v.r.PostForm
	query, err := readQuery(form.Get("filter"), conflictParams)
	if err != nil {
		return err
	}
	v.query = query
	body := v.conflictsPage()
	body.Reason, body.Decision = form.Get("reason"), form.Get("decision")
	key, req := v.key(), wire.BulkConflictDecision{Reason: body.Reason, Filter: wire.BulkConflictFilter{IDs: form["seen"]}}
	if do := form.Get("do"); do != "decide" || len(form["seen"]) == 0 {
		body.Decision, req.DryRun = do, true
		key = "" // a repeated dry run is not deduplicated
		req.Filter = wire.BulkConflictFilter{PacketID: body.PacketID, UserID: body.UserID, DefaultDecision: body.Default}
		if req.Reason == "" {
			req.Reason = "dry run"
		}
	}
	call := v.staff.HonourShareConflicts
	if body.Decision == "void" {
		call = v.staff.VoidShareConflicts
	}
	done, err := call(v.r.Context(), req, key)
	if err != nil {
		return v.showFormAgain(err)
	}
	body.Done = done
	for _, item := range done.Items {
		if done.DryRun && item.Result != "skipped" {
			body.Seen = append(body.Seen, item.ID)
		}
	}
	v.show("share-conflicts", http.StatusOK, body)
	return nil
}
