package console

import (
	"log/slog"
	"net/http"

	"hongbao/wire"
)

// holdsRelease is the form that releases many holds, and its last result.
type holdsRelease struct {
	Reason string
	Seen   []string // the holds that the last dry run would release or ask for
	Done   *wire.BulkReleased
	Items  []releasedHold // of Done
}

// releasedHold is one hold of a bulk release.
type releasedHold struct {
	hold
	wire.BulkReleaseItem
}

// Why is the message key of why the hold is skipped; "" without.
func (r releasedHold) Why() string {
	switch code := wire.Code(valueOr(r.Code, "")); code {
	case "":
		return ""
	case wire.CodeDecisionChanged:
		return "problem." + string(codeReleaseChanged)
	default:
		return "problem." + string(code)
	}
}

// Bulk reports whether the list can be released as a whole: its filter selects active holds of packets
// or payments.
func (p holdsPage) Bulk() bool {
	return p.Active == "true" && (p.Scope == "" || p.Scope == "packet" || p.Scope == "payment") && p.Scope+p.Name+p.Kind != ""
}

// releaseHolds dry-runs or carries out the release of the holds that match the filter. A release
// covers exactly the holds of the last dry run.
func (v *visit) releaseHolds() error {
	form := v.r.PostForm
	query, err := readQuery(form.Get("filter"), holdParams)
	if err != nil {
		return err
	}
	v.query = query
	body := v.holdsPage()
	body.Release.Reason = form.Get("reason")
	key, req := v.key(), wire.BulkRelease{Reason: body.Release.Reason,
		Filter: wire.BulkHoldFilter{IDs: form["seen"]}}
	if req.DryRun = form.Get("do") != "release" || len(form["seen"]) == 0; req.DryRun {
		key = "" // a repeated dry run is not deduplicated
		req.Filter = wire.BulkHoldFilter{Scope: body.Scope, Name: body.Name, Kind: body.Kind}
		if req.Reason == "" {
			req.Reason = "dry run"
		}
	}
	done, err := v.staff.ReleaseHolds(v.r.Context(), req, key)
	if err != nil {
		return v.showFormAgain(err)
	}
	body.Release.Done = done
	for _, item := range done.Items {
		body.Release.Items = append(body.Release.Items, releasedHold{hold{wire.StaffHold{Scope: item.Scope, Name: item.Name}}, item})
		if done.DryRun && item.Result != "skipped" {
			body.Release.Seen = append(body.Release.Seen, item.ID)
		}
	}
	if err := v.readHolds(&body); err != nil { // the result must be shown in any case
		slog.WarnContext(v.r.Context(), "list after a bulk release could not be read", slog.Any("error", err))
	}
	v.show("holds", http.StatusOK, body)
	return nil
}
