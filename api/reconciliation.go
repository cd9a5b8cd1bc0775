package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

var reconciliationStatuses = []staff.ReconciliationStatus{staff.ReconciliationRequested, staff.ReconciliationRunning,
	staff.ReconciliationDone, staff.ReconciliationFailed}

func (s *Server) renderReconciliation(r staff.Reconciliation) wire.Reconciliation {
	out := wire.Reconciliation{
		ID: r.ID, Provider: r.Provider, Date: wire.Date(r.Day), Status: wire.ReconciliationStatus(r.Status), Provisional: r.Provisional,
		RequestedBy: r.RequestedBy, Reason: textOrNull(r.Reason), CreatedAt: wire.At(r.CreatedAt), StartedAt: timeOrNull(r.StartedAt),
		EndedAt: timeOrNull(r.EndedAt), Lines: r.Lines, Matched: r.Matched, InFlight: r.InFlight, Repaired: r.Repaired, Breaks: r.Breaks,
		Amounts: []wire.OpSums{}, Error: textOrNull(r.Error), Workflow: s.workflowLink("reconcile/" + r.Provider + "/" + string(r.Day)),
	}
	for _, sum := range r.Sums {
		out.Amounts = append(out.Amounts, wire.OpSums{Op: string(sum.Op),
			Provider: wire.Sums{Count: sum.Provider.Count, Amount: sum.Provider.Amount}, Books: wire.Sums{Count: sum.Books.Count,
				Amount: sum.Books.Amount}})
	}
	return out
}

func checkDay(s string) *fault {
	if _, err := payout.ParseDay(s); err != nil {
		return &fault{faultFormat, fmt.Sprintf("must be a day, YYYY-MM-DD, of the years %d to %d", payout.FirstYear, payout.LastYear)}
	}
	return nil
}

// startReconciliation records the request; the worker carries it out.
func startReconciliation(r *request) (answer, error) {
	body, err := r.readReconcile()
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	w.Route = r.c.Method() + " " + r.route.path
	if body.Date == "" { // not stored with the key: the default changes every day
		body.Date = wire.Date(payout.DayOf(r.server.cfg.Now(), r.server.cfg.Provider.Zone()))
	}
	stored, err := r.server.cfg.Store.RequestReconciliation(r.ctx, w, body.Provider, payout.Day(body.Date),
		func(one staff.Reconciliation) (int, []byte) {
			return accepted(r.server.renderReconciliation(one))
		})
	return staffAnswer(stored, err, noSuch("reconciliation"))
}

func (r *request) readReconcile() (wire.ReconcileRequest, error) {
	o, err := readOptional(r.payload)
	if err != nil {
		return wire.ReconcileRequest{}, err
	}
	p := r.server.cfg.Provider
	day := o.text("date", false, func(s string) *fault {
		if f := checkDay(s); f != nil {
			return f
		}
		if payout.Day(s) > payout.DayOf(r.server.cfg.Now(), p.Zone()) {
			return &fault{faultRange, "must not be after today in the time zone of the provider's statement"}
		}
		return nil
	})
	name := o.text("provider", false, func(s string) *fault {
		if s != p.Name() {
			return &fault{faultEnum, "is not a provider"}
		}
		return nil
	})
	reason := o.text("reason", false, checkReason)
	return wire.ReconcileRequest{Date: wire.Date(valueOr(day, "")), Provider: valueOr(name, p.Name()), Reason: valueOr(reason, "")}, o.done()
}

// listCursor is the last item of a page, with the filters of its list.
type listCursor struct {
	Filters map[string]string `json:"f"`
	To      time.Time         `json:"to,omitzero"`
	At      time.Time         `json:"at"`
	ID      string            `json:"id"`
}

func readReconciliationFilter(q *query) staff.ReconciliationFilter {
	f := staff.ReconciliationFilter{Provider: q.text("provider", checkCode), Day: payout.Day(q.text("date", checkDay))}
	f.Status = staff.ReconciliationStatus(q.text("status", func(s string) *fault {
		for _, known := range reconciliationStatuses {
			if s == string(known) {
				return nil
			}
		}
		return &fault{faultEnum, "is not a status of reconciliations"}
	}))
	return f
}

// continueList parses the cursor of a list and applies its filters with read. The client may
// repeat but not change the filters.
func continueList(text string, given map[string]string, read func(*query)) (listCursor, error) {
	var c listCursor
	if decodeCursor(text, &c) != nil || c.ID == "" || !inMySQLRange(c.At) || !c.To.IsZero() && !inMySQLRange(c.To) || len(given) > 0 &&
		!maps.Equal(given, c.Filters) {
		return c, badCursor()
	}
	q := filtersOf(c.Filters)
	if read(q); q.done() != nil {
		return c, badCursor()
	}
	return c, nil
}

// pageOf renders the rows of a page and the cursor of the next one. rows has one row more than
// the page if there are more; place returns the position of a row.
func pageOf[R, I any](rows []R, limit int, place func(R) listCursor, render func(R) I) (items []I, next *string) {
	if len(rows) > limit {
		rows = rows[:limit]
		next = encodeCursor(place(rows[limit-1]))
	}
	items = make([]I, len(rows))
	for i, row := range rows {
		items[i] = render(row)
	}
	return items, next
}

// readList reads the parameters of a list: its filter, from the cursor if there is one, the
// given filters, the position and the page size.
func readList[F any](r *request, read func(*query) F) (filter F, given map[string]string, after listCursor, limit int, err error) {
	q := readQuery(r)
	filter = read(q)
	given = q.given()
	limit, text := q.page()
	if err := q.done(); err != nil {
		return filter, nil, after, 0, err
	}
	if text != "" {
		if after, err = continueList(text, given, func(q *query) { filter = read(q) }); err != nil {
			return filter, nil, after, 0, err
		}
		given = after.Filters
	}
	return filter, given, after, limit, nil
}

func listReconciliations(r *request) (answer, error) {
	filter, given, after, limit, err := readList(r, readReconciliationFilter)
	if err != nil {
		return answer{}, err
	}
	filter.AfterTime, filter.AfterID, filter.Limit = after.At, after.ID, limit+1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.Reconciliations(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	var page wire.List[wire.Reconciliation]
	page.Items, page.NextCursor = pageOf(rows, limit, func(k staff.Reconciliation) listCursor {
		return listCursor{Filters: given, At: k.CreatedAt, ID: k.ID}
	}, r.server.renderReconciliation)
	return answer{status: http.StatusOK, body: page}, nil
}

func getReconciliation(r *request) (answer, error) {
	id, err := url.PathUnescape(r.c.Params("id"))
	if err != nil {
		return answer{}, noSuch("reconciliation")
	}
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	one, err := r.server.cfg.Store.Reconciliation(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return answer{}, noSuch("reconciliation")
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: r.server.renderReconciliation(one)}, nil
}
