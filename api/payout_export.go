package api

import (
	"context"
	"slices"
	"strconv"

	"hongbao/internal/payout"
	"hongbao/internal/staff"

	"hongbao/wire"
)

// payoutColumns are the members of a Payout, one per column, followed by columns formatted for
// people: the amount in yuan, and times in a named time zone.
var payoutColumns = slices.Concat([]string{"id", "packet_id", "user_id", "share_index"}, paymentColumns)

// refundColumns are the columns for a Refund.
var refundColumns = slices.Concat([]string{"id", "packet_id", "kind", "payout_id", "user_id"}, paymentColumns)

// paymentColumns are the columns that payouts and refunds share.
var paymentColumns = []string{
	"amount", "currency", "status", "order_no", "provider", "provider_ref",
	"failure_code", "failure_message", "failure_retryable", "failure_next_action", "attempt_count", "created_at", "updated_at", "workflow_id",
	"workflow_url", "amount_yuan", "created_local", "updated_local", "local_zone",
}

// paymentCells returns the cells of paymentColumns.
func paymentCells(r staff.PaymentRow, link wire.WorkflowLink, form fileForm) []string {
	failure := make([]string, 4)
	if f := r.Failure; f != nil {
		failure = []string{cell(f.Code), cell(f.Message), strconv.FormatBool(f.Retryable), cell(f.NextAction)}
	}
	return slices.Concat(
		[]string{strconv.FormatInt(int64(r.Amount), 10), r.Currency, string(r.Status), cell(r.OrderNo), cell(r.Provider),
			cell(r.ProviderRef)}, failure,
		[]string{strconv.Itoa(r.AttemptCount), wire.At(r.CreatedAt).String(), wire.At(r.UpdatedAt).String(), cell(link.ID), link.URL,
			r.Amount.String(), form.local(r.CreatedAt), form.local(r.UpdatedAt), form.zone.String()})
}

func (s *Server) payoutLine(r staff.PaymentRow, form fileForm) []string {
	share := ""
	if r.ShareIndex >= 0 {
		share = strconv.Itoa(r.ShareIndex)
	}
	return append([]string{cell(r.ID), cell(r.PacketID), cell(r.UserID), share}, paymentCells(r, s.workflowLink(payoutWorkflow(r)), form)...)
}

func (s *Server) refundLine(r staff.PaymentRow, form fileForm) []string {
	refund := s.renderRefund(r)
	return append([]string{cell(r.ID), cell(r.PacketID), string(refund.Kind), optionalCell(refund.PayoutID), cell(r.UserID)},
		paymentCells(r, refund.Workflow, form)...)
}

func exportPayouts(r *request) (answer, error) {
	return r.exportPayments(payout.KindPayout, listFile{name: "payouts", columns: payoutColumns}, r.server.payoutLine)
}

func exportRefunds(r *request) (answer, error) {
	return r.exportPayments(payout.KindRefund, listFile{name: "refunds", columns: refundColumns}, r.server.refundLine)
}

// exportPayments answers with the file of the payments of one kind.
func (r *request) exportPayments(kind payout.Kind, file listFile, line func(staff.PaymentRow, fileForm) []string) (answer, error) {
	now, store := r.server.cfg.Now().UTC(), r.server.cfg.Store
	q := readQuery(r)
	filter := readFilter(q, now)
	q.late(&filter, kind, now)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Kind, filter.Limit = kind, exportStep
	file.more = func(ctx context.Context) (lines [][]string, end bool, err error) {
		rows, err := store.Payments(ctx, filter)
		if err != nil {
			return nil, false, err
		}
		for _, row := range rows {
			lines = append(lines, line(row, form))
			filter.AfterTime, filter.AfterID = row.CreatedAt, row.ID
		}
		return lines, len(rows) < exportStep, nil
	}
	return r.sendFile(form, file)
}
