package console

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"hongbao/client"
)

// retryMany says what a retry of the chosen payouts would do, or carries it out:
// those that are ticked, or all that fit the filter of the list.
func (v *visit) retryMany() error {
	if err := v.r.ParseForm(); err != nil {
		return &client.Problem{Status: http.StatusBadRequest, Code: client.CodeInvalidRequest}
	}
	form := v.r.PostForm
	query, err := url.ParseQuery(form.Get("filter"))
	if err != nil {
		return &client.Problem{Status: http.StatusUnprocessableEntity, Code: client.CodeInvalidRequest}
	}
	body := listPage{Kind: "payout", Path: "/payouts", Filter: readFilterForm(query), Cursor: form.Get("cursor"), Reason: form.Get("reason"),
		Selected: map[string]bool{}, All: form.Get("scope") == "all"}
	for _, id := range form["id"] {
		body.Selected[id] = true
	}
	req := client.BulkRetryRequest{IdempotencyKey: v.key(), Reason: body.Reason, DryRun: form.Get("do") != "retry"}
	if req.DryRun {
		req.IdempotencyKey = "" // looked at again, it is looked at anew
		if req.Reason == "" {
			req.Reason = "dry run"
		}
	}
	if body.All {
		f, fault := body.Filter.filter()
		if fault != "" { // read in part, it would select more than was meant
			v.problem = &notice{Key: fault}
			v.show("problem", http.StatusUnprocessableEntity, nil)
			return nil
		}
		req.Filter = bulkFilterOf(f)
	} else {
		req.Filter.PayoutIDs = form["id"]
	}
	body.Bulk, err = v.staff.RetryPayouts(v.r.Context(), req)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status != http.StatusUnauthorized {
		v.sent = v.attempted(p)
	} else if err != nil {
		return err
	}
	if body.Bulk != nil && !body.Bulk.DryRun {
		body.Run = v.carriedOut(body.Bulk)
	}
	if err = v.list(body, v.readPayouts); err != nil && len(body.Run.Items) > 0 {
		slog.WarnContext(v.r.Context(), "list behind a bulk retry could not be read", slog.Any("error", err))
		v.show("progress", http.StatusOK, body.Run) // what was decided has to be seen
		return nil
	}
	return err
}

func bulkFilterOf(f client.PayoutFilter) client.BulkFilter {
	return client.BulkFilter{Status: f.Status, PacketID: f.PacketID, UserID: f.UserID, OrderNo: f.OrderNo, FailureCode: f.FailureCode,
		OlderThanSeconds: int64(f.OlderThan.Seconds()), AmountMin: f.AmountMin, AmountMax: f.AmountMax}
}
