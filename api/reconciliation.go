package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Reconciliation is one comparison of a day of a provider's statement with our records.
type Reconciliation struct {
	ID          string               `json:"id" doc:"The id." example:"sKQ3X7M2P5R6T4V2W3Y7Z5B6CD"`
	Provider    string               `json:"provider" doc:"The provider of the statement." example:"sandbox"`
	Date        Date                 `json:"date" doc:"The day, in the time zone of the provider's statement."`
	Status      ReconciliationStatus `json:"status" doc:"requested: not started yet. running: in progress. done: complete. failed: the statement could not be read; request it again."`
	Provisional bool                 `json:"provisional" doc:"true: it began before the day was over; another one is needed."`
	RequestedBy string               `json:"requested_by" doc:"The member of staff, or schedule." example:"schedule"`
	Reason      Nullable[string]     `json:"reason" doc:"The reason, if a person requested it."`
	CreatedAt   Stamp                `json:"created_at" doc:"When it was requested."`
	StartedAt   Nullable[Stamp]      `json:"started_at" doc:"When it started; movements before this time are compared. null while requested."`
	EndedAt     Nullable[Stamp]      `json:"ended_at" doc:"When it ended; null while requested or running."`
	Lines       int64                `json:"lines" minimum:"0" doc:"Lines of the statement."`
	Matched     int64                `json:"matched" minimum:"0" doc:"Lines that match our records."`
	InFlight    int64                `json:"in_flight" minimum:"0" doc:"Movements of the last minute that are not recorded yet."`
	Repaired    int64                `json:"repaired" minimum:"0" doc:"Differences that a query settled: breaks and movements in flight."`
	Breaks      int64                `json:"breaks" minimum:"0" doc:"Open breaks of this day when it ended."`
	Amounts     []OpSums             `json:"amounts" nullable:"false" doc:"Both sides by operation; empty before it is done."`
	Error       Nullable[string]     `json:"error" doc:"Why it failed, as text for people."`
	Workflow    WorkflowLink         `json:"workflow" doc:"The Temporal workflow of the reconciliation."`
}

// OpSums are the sums of both sides for one operation.
type OpSums struct {
	Op       string `json:"op" enum:"charge,transfer,refund,return" doc:"The provider's operation."`
	Provider Sums   `json:"provider" doc:"The sums of the statement."`
	Books    Sums   `json:"books" doc:"The sums of our records, for the same movements and for those missing in the statement."`
}

// Sums is a count and a sum of movements.
type Sums struct {
	Count  int64    `json:"count" minimum:"0" doc:"The count."`
	Amount TotalFen `json:"amount" doc:"The sum."`
}

// Reconciliations is a page of reconciliations.
type Reconciliations struct {
	Items      []Reconciliation `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// ReconcileRequest is the optional body of a request for a reconciliation.
type ReconcileRequest struct {
	Date     Date   `json:"date,omitempty" doc:"The day in the time zone of the provider's statement; by default today. Later days are refused."`
	Provider string `json:"provider,omitempty" default:"sandbox" doc:"The provider of the statement; by default the only provider."`
	Reason   string `json:"reason,omitempty" maxLength:"500" doc:"The reason, for the audit." example:"provider announced corrections"`
}

// Date is a day in answers and requests.
type Date string

// Schema implements huma.SchemaProvider.
func (Date) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date", Examples: []any{"2026-02-17"}}
}

// ReconciliationStatus is staff.ReconciliationStatus with its schema.
type ReconciliationStatus staff.ReconciliationStatus

var reconciliationStatuses = []staff.ReconciliationStatus{staff.ReconciliationRequested, staff.ReconciliationRunning,
	staff.ReconciliationDone, staff.ReconciliationFailed}

// Schema implements huma.SchemaProvider.
func (ReconciliationStatus) Schema(huma.Registry) *huma.Schema { return enum(reconciliationStatuses) }

func (s *Server) renderReconciliation(r staff.Reconciliation) Reconciliation {
	out := Reconciliation{
		ID: r.ID, Provider: r.Provider, Date: Date(r.Day), Status: ReconciliationStatus(r.Status), Provisional: r.Provisional,
		RequestedBy: r.RequestedBy, Reason: textOrNull(r.Reason), CreatedAt: Stamp(r.CreatedAt), StartedAt: stampOrNull(r.StartedAt),
		EndedAt: stampOrNull(r.EndedAt), Lines: r.Lines, Matched: r.Matched, InFlight: r.InFlight, Repaired: r.Repaired, Breaks: r.Breaks,
		Amounts: []OpSums{}, Error: textOrNull(r.Error), Workflow: s.workflowLink("reconcile/" + r.Provider + "/" + string(r.Day)),
	}
	for _, sum := range r.Sums {
		out.Amounts = append(out.Amounts, OpSums{Op: string(sum.Op),
			Provider: Sums{sum.Provider.Count, TotalFen(sum.Provider.Amount)}, Books: Sums{sum.Books.Count, TotalFen(sum.Books.Amount)}})
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
		body.Date = Date(payout.DayOf(r.server.cfg.Now(), r.server.cfg.Provider.Zone()))
	}
	stored, err := r.server.cfg.Store.RequestReconciliation(r.ctx, w, body.Provider, payout.Day(body.Date),
		func(one staff.Reconciliation) (int, []byte) {
			return accepted(r.server.renderReconciliation(one))
		})
	return staffAnswer(stored, err, noSuch("reconciliation"))
}

func (r *request) readReconcile() (ReconcileRequest, error) {
	o, err := readOptional(r.payload)
	if err != nil {
		return ReconcileRequest{}, err
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
	return ReconcileRequest{Date: Date(valueOr(day, "")), Provider: valueOr(name, p.Name()), Reason: valueOr(reason, "")}, o.done()
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
func pageOf[R, I any](rows []R, limit int, place func(R) listCursor, render func(R) I) (items []I, next Nullable[string]) {
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
	var page Reconciliations
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
