package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// maxProgress is the maximum number of payments in a bulk retry.
const maxProgress = 200

// bulkRun is a bulk retry that was carried out, with the progress of its payments.
type bulkRun struct {
	Kind   string // payout or refund
	Began  time.Time
	Items  []bulkRunItem
	Unread bool // the last read of the progress failed
}

// bulkRunItem is the decision about a payment and its last known status; "" if not read yet.
type bulkRunItem struct {
	wire.BulkItem
	Status wire.PayoutStatus
}

// InProgress reports whether the payment was retried and has no final status yet.
func (i bulkRunItem) InProgress() bool {
	return i.Result == "retried" && (i.Status == "" || payment{Status: i.Status}.Open())
}

// String encodes the item for a form field; no part contains a space.
func (i bulkRunItem) String() string {
	return strings.Join([]string{i.ID, i.Result, valueOr(i.Code, ""), valueOr(i.OrderNo, ""), strconv.FormatBool(i.SameOrderNo),
		string(i.Status)}, " ")
}

// readBulkRunItem decodes String; false if the text is invalid.
func readBulkRunItem(text string) (out bulkRunItem, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 6 {
		return out, false
	}
	out.ID, out.Result, out.SameOrderNo, out.Status = parts[0], parts[1], parts[4] == "true", wire.PayoutStatus(parts[5])
	for i, to := range []**string{&out.Code, &out.OrderNo} {
		if text := parts[2+i]; text != "" {
			*to = &text
		}
	}
	_, result := catalogue["bulk."+out.Result]
	_, status := catalogue["status."+string(out.Status)]
	return out, result && (status || out.Status == "")
}

// Sent is the number of retried payments.
func (b bulkRun) Sent() int {
	return b.countIf(func(i bulkRunItem) bool { return i.Result == "retried" })
}

// Ended is the number of retried payments with a final status.
func (b bulkRun) Ended() int {
	return b.countIf(func(i bulkRunItem) bool { return i.Result == "retried" && !i.InProgress() })
}

func (b bulkRun) countIf(fits func(bulkRunItem) bool) (n int) {
	for _, i := range b.Items {
		if fits(i) {
			n++
		}
	}
	return n
}

// Statuses counts the retried payments by status, in the order of the work lists.
func (b bulkRun) Statuses() (out []statusCount) {
	for _, s := range workLists {
		if s == "" {
			continue // all of them
		}
		if n := b.countIf(func(i bulkRunItem) bool { return i.Result == "retried" && i.Status == s }); n > 0 {
			out = append(out, statusCount{s, n})
		}
	}
	return out
}

type statusCount struct {
	Status wire.PayoutStatus
	Count  int
}

// Pause is the poll interval of the page in seconds: most payments are final at once, others
// may take hours.
func (b bulkRun) Pause() int {
	if time.Since(b.Began) < time.Minute {
		return 2
	}
	return 15
}

// refreshStatuses reads the current statuses, of all payments or of those in progress, and
// reports whether the page changes. An unavailable API sets Unread. Errors: a refusal (4xx).
func (v *visit) refreshStatuses(b *bulkRun, all bool) (changed bool, err error) {
	var ids []string
	for _, item := range b.Items {
		if all || item.InProgress() {
			ids = append(ids, item.ID)
		}
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), statusTimeout)
	defer cancel()
	read := v.staff.PayoutStatuses
	if b.Kind == "refund" {
		read = v.staff.RefundStatuses
	}
	found, err := read(ctx, ids)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status < http.StatusInternalServerError {
		return false, err
	}
	if err != nil {
		slog.WarnContext(ctx, "progress of a bulk retry could not be read", slog.Any("error", err))
	}
	changed = b.Unread != (err != nil)
	b.Unread = err != nil
	for i := range b.Items {
		if status, ok := found[b.Items[i].ID]; ok && status != b.Items[i].Status {
			b.Items[i].Status, changed = status, true
		}
	}
	return changed, nil
}

// statusTimeout limits one read of the statuses.
const statusTimeout = 10 * time.Second

// newBulkRun returns the run of a bulk retry that was just carried out. Errors only set Unread,
// because the decisions must be shown in any case.
func (v *visit) newBulkRun(kind string, done *wire.BulkRetried) bulkRun {
	b := bulkRun{Kind: kind, Began: time.Now()}
	for _, item := range done.Items {
		b.Items = append(b.Items, bulkRunItem{BulkItem: item})
	}
	if _, err := v.refreshStatuses(&b, true); err != nil {
		slog.WarnContext(v.r.Context(), "progress of a bulk retry was refused", slog.Any("error", err))
		b.Unread = true
	}
	return b
}

// payoutProgress is showProgress of payouts.
func (v *visit) payoutProgress() error { return v.showProgress("payout") }

// refundProgress is showProgress of refunds.
func (v *visit) refundProgress() error { return v.showProgress("refund") }

// showProgress shows the progress of a bulk retry. A poll gets 204 while nothing has changed.
func (v *visit) showProgress(kind string) error {
	if err := v.r.ParseForm(); err != nil {
		return &client.Problem{Problem: wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeInvalidRequest}}
	}
	began, err := strconv.ParseInt(v.r.PostForm.Get("began"), 10, 64)
	texts := v.r.PostForm["item"]
	if err != nil || len(texts) == 0 || len(texts) > maxProgress {
		return &client.Problem{Problem: wire.Problem{Status: http.StatusUnprocessableEntity, Code: wire.CodeInvalidRequest}}
	}
	run := bulkRun{Kind: kind, Began: time.Unix(began, 0), Unread: v.r.PostForm.Get("unread") == "true"}
	for _, text := range texts {
		item, ok := readBulkRunItem(text)
		if !ok {
			return &client.Problem{Problem: wire.Problem{Status: http.StatusUnprocessableEntity, Code: wire.CodeInvalidRequest}}
		}
		run.Items = append(run.Items, item)
	}
	changed, err := v.refreshStatuses(&run, false)
	if err != nil {
		return err
	}
	if v.polls() && !changed && v.r.PostForm.Get("pause") == strconv.Itoa(run.Pause()) {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	v.show("progress", http.StatusOK, run)
	return nil
}
