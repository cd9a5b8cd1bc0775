package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// workLists are the statuses of the tabs, in order; "" is all of them.
var workLists = []wire.PayoutStatus{wire.PayoutFailed, wire.PayoutReturned, wire.PayoutUnknown, wire.PayoutAwaitingRecipient,
	wire.PayoutPending, wire.PayoutSending, wire.PayoutPaid, wire.PayoutCancelled, wire.PayoutPaidOutside, ""}

// chargeLists are the tabs of the list of charges.
var chargeLists = []wire.PayoutStatus{wire.PayoutUnknown, wire.PayoutAwaitingPayer, wire.PayoutPending, wire.PayoutSending,
	wire.PayoutFailed, wire.PayoutReturned, wire.PayoutPaid, ""}

// filterForm is the filter of a work list as entered. Amounts are in yuan.
type filterForm struct {
	Status, Code, Packet, User, Order, Older, Min, Max string
	Late                                               string // "true": only late refunds
}

func readFilterForm(q url.Values) filterForm {
	return filterForm{Status: q.Get("status"), Code: q.Get("code"), Packet: q.Get("packet"), User: q.Get("user"), Order: q.Get("order"),
		Older: q.Get("older"), Min: q.Get("min"), Max: q.Get("max"), Late: q.Get("late")}
}

// values returns the form as a query without empty fields.
func (f filterForm) values() url.Values {
	v := url.Values{}
	for _, one := range []struct{ name, value string }{{"status", f.Status}, {"code", f.Code}, {"packet", f.Packet}, {"user", f.User},
		{"order", f.Order}, {"older", f.Older}, {"min", f.Min}, {"max", f.Max}, {"late", f.Late}} {
		if one.value != "" {
			v.Set(one.name, one.value)
		}
	}
	return v
}

// With is the query of the same list with another status.
func (f filterForm) With(status wire.PayoutStatus) string {
	f.Status, f.Late = string(status), ""
	return f.values().Encode()
}

// LateOnly is the query of the same list of refunds, late ones only.
func (f filterForm) LateOnly() string {
	f.Status, f.Late = "", "true"
	return f.values().Encode()
}

// Unconfirmed is the query of the payouts that the list of failed ones omits, because their recipients did not
// confirm in time; "" when it omits none.
func (f filterForm) Unconfirmed(kind string) string {
	if kind != "payout" || f.Status != string(wire.PayoutFailed) || f.Code != "" || f.Packet != "" || f.User != "" || f.Order != "" {
		return ""
	}
	f.Code = "confirmation_expired"
	return f.values().Encode()
}

// Query is the query of this list.
func (f filterForm) Query() string { return f.values().Encode() }

// filter converts the form to a filter of the API. fault is the message key of an invalid
// field, "" if all are valid.
func (f filterForm) filter() (out wire.RefundFilter, fault string) {
	out.PaymentFilter = wire.PaymentFilter{Status: wire.PayoutStatus(f.Status), PacketID: f.Packet, UserID: f.User,
		OrderNo: f.Order, FailureCode: f.Code}
	out.Late = f.Late == "true"
	if f.Older != "" {
		seconds, err := strconv.ParseInt(f.Older, 10, 32)
		if err != nil || seconds < 0 {
			return out, "filter.bad_age"
		}
		out.OlderThanSeconds = wire.NonZero(seconds)
	}
	low, lowOK := parseYuan(f.Min)
	high, highOK := parseYuan(f.Max)
	if !lowOK || !highOK || f.Max != "" && high == 0 { // 0 is no bound
		return out, "filter.bad_amount"
	}
	out.AmountMin, out.AmountMax = wire.NonZero(low), wire.NonZero(high)
	return out, ""
}

// wholeYuan matches whole yuan with optional commas between thousands: 1,50 is not 150.
var wholeYuan = regexp.MustCompile(`^(\d*|\d{1,3}(,\d{3})+)(\.|$)`)

// parseYuan parses an amount in yuan: 12, 12.3, 12.34 or 1,234.5; "" is 0.
func parseYuan(s string) (money.Fen, bool) {
	if s == "" {
		return 0, true
	}
	s = strings.TrimLeft(s, "¥￥")
	whole, cents, _ := strings.Cut(s, ".")
	if len(cents) > 2 || !wholeYuan.MatchString(s) {
		return 0, false
	}
	f, err := money.Parse(strings.ReplaceAll(whole, ",", "") + "." + cents + strings.Repeat("0", 2-len(cents)))
	return f, err == nil
}

// listPage is a work list.
type listPage struct {
	Kind         string // payout, refund or charge
	Path         string
	Filter       filterForm
	Tabs         []wire.PayoutStatus
	Codes        []string
	Ages         []string
	Cursor       string // of this page; "" on the first one
	Items        []payment
	Sum          *wire.PaymentSum
	Next         string // the query of the next page; "" on the last one
	Fault        string
	Selected     map[string]bool
	All          bool     // a bulk retry of all that match the filter, not of the selected ones
	Previewed    bool     // the dry run of All is done,
	PreviewedIDs []string // and would retry these
	Reason       string
	Bulk         *wire.BulkRetried
	Run          bulkRun // of Bulk, after it was carried out
}

// ages are the choices of "older than", in seconds.
var ages = []string{"600", "3600", "86400", "604800"}

// failureCodes are suggested as a filter; others can be entered.
var failureCodes = []string{"declined", "payee_declined", "account_frozen", "declined_by_rule", "never_received", "returned",
	"share_conflict", "confirmation_expired", "operator_not_moved"}

// chargeCodes are failureCodes of charges.
var chargeCodes = []string{"payer_declined", "insufficient_sender_balance", "funding_expired", "funding_cancelled",
	"expired_before_charge", "declined", "never_received", "returned"}

func (v *visit) listPayouts() error {
	body, err := v.workList("payout")
	if err != nil {
		return err
	}
	return v.list(body, v.readPayouts)
}

// workList returns the requested list. After an interrupted bulk retry it has the selection
// of the saved form. Errors: that form is invalid.
func (v *visit) workList(kind string) (listPage, error) {
	body := listPage{Kind: kind, Path: "/" + kind + "s", Filter: readFilterForm(v.query), Cursor: v.query.Get("cursor")}
	if v.submission != nil && v.submission.Path == body.Path+"/retry" {
		return bulkForm(kind, v.submission.form)
	}
	return body, nil
}

// readPayouts reads a page of payouts, the cursor of the next page, and the sum of all.
func (v *visit) readPayouts(ctx context.Context, f wire.RefundFilter, p client.Page) ([]payment, *string, *wire.PaymentSum, error) {
	found, err := v.staff.ListPayouts(ctx, f.PayoutFilter, p)
	if err != nil {
		return nil, nil, nil, err
	}
	sum, err := v.staff.SumPayouts(ctx, f.PayoutFilter)
	return paymentsOf(found.Items, paymentOfPayout), found.NextCursor, sum, err
}

func (v *visit) listRefunds() error {
	body, err := v.workList("refund")
	if err != nil {
		return err
	}
	return v.list(body, v.readRefunds)
}

// readRefunds is readPayouts for refunds.
func (v *visit) readRefunds(ctx context.Context, f wire.RefundFilter, p client.Page) ([]payment, *string, *wire.PaymentSum, error) {
	found, err := v.staff.ListRefunds(ctx, f, p)
	if err != nil {
		return nil, nil, nil, err
	}
	sum, err := v.staff.SumRefunds(ctx, f)
	return paymentsOf(found.Items, paymentOfRefund), found.NextCursor, sum, err
}

func (v *visit) listCharges() error {
	return v.list(listPage{Kind: "charge", Path: "/charges", Filter: readFilterForm(v.query), Cursor: v.query.Get("cursor")}, v.readCharges)
}

// readCharges is readPayouts for charges.
func (v *visit) readCharges(ctx context.Context, f wire.RefundFilter, p client.Page) ([]payment, *string, *wire.PaymentSum, error) {
	found, err := v.staff.ListCharges(ctx, f.PayoutFilter, p)
	if err != nil {
		return nil, nil, nil, err
	}
	sum, err := v.staff.SumCharges(ctx, f.PayoutFilter)
	return paymentsOf(found.Items, paymentOfCharge), found.NextCursor, sum, err
}

func paymentsOf[T any](items []T, of func(T) payment) []payment {
	out := make([]payment, len(items))
	for i, one := range items {
		out[i] = of(one)
	}
	return out
}

// reader reads a page of a work list: readPayouts, readRefunds or readCharges.
type reader func(context.Context, wire.RefundFilter, client.Page) ([]payment, *string, *wire.PaymentSum, error)

// list shows a page of a work list.
func (v *visit) list(body listPage, read reader) error {
	body.Tabs, body.Codes, body.Ages = workLists, failureCodes, ages
	if body.Kind == "charge" {
		body.Tabs, body.Codes = chargeLists, chargeCodes
	}
	f, fault := body.Filter.filter()
	if fault != "" {
		body.Fault = fault
		v.show("payments", http.StatusUnprocessableEntity, body)
		return nil
	}
	status := http.StatusOK
	items, next, sum, err := read(v.r.Context(), f, client.Page{Cursor: body.Cursor})
	if err != nil {
		if status, err = v.refused(err); err != nil {
			return err
		}
	}
	body.Items, body.Sum = items, sum
	if next != nil {
		q := body.Filter.values()
		q.Set("cursor", *next)
		body.Next = q.Encode()
	}
	v.show("payments", status, body)
	return nil
}

// exportPayouts returns the API's CSV of the same filter.
func (v *visit) exportPayouts() error { return v.exportPayments("payouts") }

func (v *visit) exportRefunds() error { return v.exportPayments("refunds") }

func (v *visit) exportCharges() error { return v.exportPayments("charges") }

func (v *visit) exportPayments(list string) error {
	f, fault := readFilterForm(v.query).filter()
	if fault != "" {
		v.problem = &notice{Key: fault}
		v.show("problem", http.StatusUnprocessableEntity, nil)
		return nil
	}
	filter := map[string]string{"status": string(f.Status), "packet_id": f.PacketID, "user_id": f.UserID, "order_no": f.OrderNo,
		"failure_code": f.FailureCode, "late": trueOrEmpty(f.Late)}
	if f.OlderThanSeconds != nil {
		filter["older_than_seconds"] = strconv.FormatInt(*f.OlderThanSeconds, 10)
	}
	for name, n := range map[string]*money.Fen{"amount_min": f.AmountMin, "amount_max": f.AmountMax} {
		if n != nil {
			filter[name] = strconv.FormatInt(int64(*n), 10)
		}
	}
	return v.export(list, filter)
}

// trueOrEmpty is the value of a filter that is either set or absent.
func trueOrEmpty(wanted bool) string {
	if wanted {
		return "true"
	}
	return ""
}

// queryOf returns a query of the filters that are not empty.
func queryOf(filters map[string]string) url.Values {
	q := url.Values{}
	for name, value := range filters {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// export returns the API's CSV of a list with its filters.
func (v *visit) export(list string, filters map[string]string) error {
	q := queryOf(filters)
	q.Set("bom", "true")
	return v.proxy(wire.PathExports + "/" + list + ".csv?" + q.Encode())
}

// maxProblem limits the problem body that is read, in bytes.
const maxProblem = 64 << 10

// problemOf decodes the problem in a response of the API.
func problemOf(res *http.Response) *client.Problem {
	p := new(client.Problem)
	if err := json.NewDecoder(io.LimitReader(res.Body, maxProblem)).Decode(p); err != nil {
		p = new(client.Problem) // partly decoded
	}
	p.Status = res.StatusCode
	return p
}

// proxy streams the API's response to a GET request.
func (v *visit) proxy(path string) error {
	req, err := http.NewRequestWithContext(v.r.Context(), http.MethodGet, insideURL+path, nil)
	if err != nil {
		return err
	}
	res, err := v.inside.Do(req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		return problemOf(res)
	}
	for _, name := range []string{"Content-Type", "Content-Disposition"} {
		v.w.Header().Set(name, res.Header.Get(name))
	}
	if s, ok := v.w.(interface{ StreamBody(body io.ReadCloser) }); ok {
		s.StreamBody(res.Body)
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(v.w, res.Body) // the client has disconnected
	return nil
}
