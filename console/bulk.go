package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"hongbao/client"
	"hongbao/wire"
)

// maxRetryBatch is how many ids one bulk retry call sends. It equals a page of the list, so the
// body has room for the longest reason.
const maxRetryBatch = 50

// bulkForm parses the selection form of a work list of payouts or refunds.
func bulkForm(kind string, form url.Values) (listPage, error) {
	query, err := readQuery(form.Get("filter"), paymentParams)
	if err != nil {
		return listPage{}, err
	}
	if len(form["seen"]) > maxProgress {
		return listPage{}, &client.Problem{Problem: wire.Problem{Status: http.StatusUnprocessableEntity, Code: wire.CodeInvalidRequest}}
	}
	body := listPage{Kind: kind, Path: "/" + kind + "s", Filter: readFilterForm(query), Cursor: form.Get("cursor"), Reason: form.Get("reason"),
		Selected: map[string]bool{}, All: form.Get("scope") == "all", Previewed: form.Get("looked") == "true", PreviewedIDs: form["seen"]}
	for _, id := range form["id"] {
		body.Selected[id] = true
	}
	return body, nil
}

// retryPayouts is retryMany of payouts.
func (v *visit) retryPayouts() error { return v.retryMany("payout") }

// retryRefunds is retryMany of refunds.
func (v *visit) retryRefunds() error { return v.retryMany("refund") }

// retryMany dry-runs or carries out a retry of the selected payments, or of all that match the
// filter. After a dry run of all, the retry covers exactly the payments of that dry run.
func (v *visit) retryMany(kind string) error {
	form := v.r.PostForm
	body, err := bulkForm(kind, form)
	if err != nil {
		return err
	}
	key, req := v.key(), wire.BulkRetry{Reason: body.Reason}
	if req.DryRun = form.Get("do") != "retry" || body.All && body.Previewed && len(body.PreviewedIDs) == 0; req.DryRun {
		key = "" // a repeated dry run is not deduplicated
		if req.Reason == "" {
			req.Reason = "dry run"
		}
	}
	switch {
	case !body.All:
		req.Filter.IDs = form["id"]
		body.Bulk, err = v.retry(kind, req, key)
	case body.Previewed && !req.DryRun:
		body.Bulk, err = v.retryIDs(kind, req, key, body.PreviewedIDs)
	default:
		f, fault := body.Filter.filter()
		if fault != "" { // a partly read filter would select too many
			v.problem = &notice{Key: fault}
			v.show("problem", http.StatusUnprocessableEntity, nil)
			return nil
		}
		req.Filter.PaymentFilter = f.PaymentFilter
		body.Bulk, err = v.retry(kind, req, key)
	}
	return v.showBulk(body, err)
}

// retry calls the API's bulk retry of payouts or refunds and returns both results in one type.
func (v *visit) retry(kind string, req wire.BulkRetry, key client.Key) (*wire.BulkRetried, error) {
	if kind == "payout" {
		return v.staff.RetryPayouts(v.r.Context(), req, key)
	}
	done, err := v.staff.RetryRefunds(v.r.Context(), wire.BulkRefundRetry{Filter: wire.BulkRefundFilter(req.Filter), Reason: req.Reason,
		DryRun: req.DryRun}, key)
	if err != nil {
		return nil, err
	}
	out := &wire.BulkRetried{BulkSum: done.BulkSum}
	for _, i := range done.Items {
		out.Items = append(out.Items, wire.BulkItem(i))
	}
	return out, nil
}

// retryIDs retries payments in batches, each with its own Idempotency-Key. A repetition after
// an error continues with the batches that were not decided.
func (v *visit) retryIDs(kind string, req wire.BulkRetry, key client.Key, ids []string) (*wire.BulkRetried, error) {
	all, batch := &wire.BulkRetried{}, key
	for part := range slices.Chunk(ids, maxRetryBatch) {
		if len(all.Items) > 0 {
			batch = key + client.Key("."+strconv.Itoa(len(all.Items)))
		}
		req.Filter.IDs = part
		done, err := v.retry(kind, req, batch)
		if err != nil {
			return nil, err
		}
		all.Count += done.Count
		all.Amount += done.Amount
		all.Items = append(all.Items, done.Items...)
	}
	return all, nil
}

// showBulk shows the list with the result of a bulk retry or its dry run, or with its error.
func (v *visit) showBulk(body listPage, err error) error {
	if err != nil {
		p := v.problemOf(err)
		if p.Status == http.StatusUnauthorized {
			return p
		}
		if v.submission = v.failedSubmission(p); v.submission.OutcomeUnknown { // the selected payments may have left the list
			v.submission.separate, body.Reason, body.Selected = true, "", nil
		}
	} else if body.Previewed, body.PreviewedIDs = body.All && body.Bulk.DryRun, nil; body.Previewed {
		for _, item := range body.Bulk.Items {
			if item.Result != "skipped" {
				body.PreviewedIDs = append(body.PreviewedIDs, item.ID)
			}
		}
	}
	if body.Bulk != nil && !body.Bulk.DryRun {
		body.Run = v.newBulkRun(body.Kind, body.Bulk)
	}
	read := v.readPayouts
	if body.Kind == "refund" {
		read = v.readRefunds
	}
	if err = v.list(body, read); err != nil && len(body.Run.Items) > 0 {
		slog.WarnContext(v.r.Context(), "list after a bulk retry could not be read", slog.Any("error", err))
		v.show("progress", http.StatusOK, body.Run) // the decisions must be shown in any case
		return nil
	}
	return err
}
