package worker_test

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

var (
	update   = flag.Bool("update", false, "rewrite generated documents")
	onlyRows = flag.String("rows", "", "play only the fault rows whose name matches this expression")
)

// rowWithin is what one wait of a row may take, on a busy machine too.
const rowWithin = 3 * time.Minute

// rowsAtOnce: rows wait more than they work.
var rowsAtOnce = min(32, 4*runtime.NumCPU())

// faultRow is one row of the table: a fault and its expected result.
type faultRow struct {
	what   string      // the fault, in words
	ops    []payout.Op // whose payments it befalls; each is played
	suffix string      // of the account
	rules  []rule      // of the row's provider; op "" is the payment's own
	limits payout.Limits
	slow   bool           // money is returned only after 25 s
	within int64          // seconds in which the sender has to pay in an app; 0: charged at once
	ready  func(s *scene) // before the remainder is recalled
	set    func(s *scene) // before anything is sent: what the network does
	then   func(s *scene) // once the payment is under way: what people and the provider do

	calls  string // that the provider saw, as callPattern reads them
	status payout.Status
	money  string        // that moved: as moneyOf says
	code   string        // of the failure
	breaks string        // kinds, sorted
	tries  int           // order numbers used; 0: one
	loose  bool          // calls overlap: the timeline need not have one line for each
	adrift bool          // the provider did what our books cannot show
	ends   packet.Status // of the packet; empty: it is closed, after everything in it is paid
}

var (
	charges   = []payout.Op{payout.OpCharge}
	transfers = []payout.Op{payout.OpTransfer}
	refunds   = []payout.Op{payout.OpRefund}
	everyOp   = []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund}
)

// faultTable is every section of the table, in the order of docs/faults.md.
var faultTable = []struct {
	title string
	about string
	rows  []faultRow
}{
	{"Answers to a send", "The provider's own faults (`PUT /_faults`), on the send.", sendRows},
	{"Answers to a query", "The answer to a send was lost, and the answer to the query about it is faulty too.", queryRows},
	{"Accounts", "The effect of an account's suffix: as recipient, as sender, and as sender who gets the remainder back.", accountRows},
	{"Payments in an app", "The sender has to press the button of the provider's page, or does not.", payerRows},
	{"Altered answers", "The network alters the answer; the provider itself works.",
		alteredRows},
	{"Late, lost and too late", "The network holds calls and delivers them later, or staff decide in between.", lateRows},
	{"Decisions", "Finance retries, cancels and marks as paid, two persons where it is needed, while the provider has its own view.",
		decisionRows},
	{"Notifications", "A notification moves nothing: it is stored once and causes a query.", noticeRows},
}

// TestFaultTable plays every row on the real parts: Redis, MariaDB, Temporal,
// the API, a worker, and a sandbox provider of its own for each row.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	r := newFaultRig(t, patiently)
	r.work(t, r.provider)
	only := must(regexp.Compile(*onlyRows))(t)
	type played struct {
		t     *rowT
		name  string
		row   faultRow
		op    payout.Op
		again func(t testing.TB)
	}
	var all []*played
	for _, section := range faultTable {
		for _, row := range section.rows {
			for _, op := range row.ops {
				name := section.title + "/" + row.what + ": " + string(op)
				if only.MatchString(name) {
					all = append(all, &played{name: name, row: row, op: op})
				}
			}
		}
	}
	// Long rows begin first, or the end would wait for them alone.
	slices.SortStableFunc(all, func(a, b *played) int { return cmp.Compare(b.row.takes(), a.row.takes()) })
	var wg sync.WaitGroup
	slots := make(chan struct{}, rowsAtOnce)
	for _, p := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p.t = &rowT{TB: t}
			var one sync.WaitGroup // play ends its goroutine when it fails
			one.Go(func() { p.again = r.play(p.t, p.row, p.op) })
			one.Wait()
		})
	}
	wg.Wait()
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			if p.again != nil && !p.t.Failed() {
				p.again(p.t)
			}
			for _, line := range p.t.lines {
				t.Error(line)
			}
		})
	}
}

// TestFaultDocument: docs/faults.md is the table.
func TestFaultDocument(t *testing.T) {
	compareDocument(t, filepath.Join("..", "docs", "faults.md"), faultDocument())
}

// takes orders rows by how long they take.
func (row faultRow) takes() int {
	switch {
	case row.slow, row.within > 0 && row.within < unhurriedPayer:
		return 2
	case row.limits.Remembers != 0:
		return 1
	}
	return 0
}

// play runs one row and returns what is checked again at the end: final states must not change.
func (r *faultRig) play(t testing.TB, row faultRow, op payout.Op) (again func(testing.TB)) {
	s := r.newScene(t, row, op)
	if row.set != nil {
		row.set(s)
	}
	r.begin(s, row)
	if row.then != nil {
		row.then(s)
	}
	want := callPattern(row.calls)
	settled := func() bool {
		return s.payment().Status == row.status && want.MatchString(s.line.seen(s.id)) && s.quiet() &&
			moneyOf(s.line.moved(s, s.packet.ID, s.id)) == row.money
	}
	wait.Within(t, rowWithin, func() string {
		p := s.payment()
		return fmt.Sprintf("the row is settled:\n  calls  %q\n  want   %q\n  status %s %+v, want %s\n  money  %s, want %s\n  breaks %s",
			s.line.seen(s.id), row.calls,
			p.Status, p.Failure, row.status, moneyOf(s.line.moved(s, s.packet.ID, s.id)), row.money, s.breaks())
	}, settled)
	s.checkFinance(row)
	s.checkMoney(row.mostMoved())
	s.checkRun(row)
	if row.ends == packet.StatusRejected && row.status == payout.StatusFailed {
		s.awaitPacket(row.ends)
	} else if !row.status.Open() && (op == payout.OpTransfer || row.status == payout.StatusPaid || row.status == payout.StatusPaidOutside) {
		s.checkClosed(row)
	}
	moves := s.line.moved(s, s.packet.ID, s.id)
	sent := s.line.sends(s.id)
	return func(t testing.TB) {
		s.TB = t
		if p := s.payment(); p.Status != row.status {
			t.Errorf("was %s, is %s now", row.status, p.Status)
		}
		if now := s.line.moved(t, s.packet.ID, s.id); !slices.Equal(now, moves) {
			t.Errorf("moved %v, later %v", moves, now)
		}
		if now := s.line.sends(s.id); now != sent {
			t.Errorf("%d sends, later %d", sent, now)
		}
		if got := s.breaks(); got != row.breaks {
			t.Errorf("breaks %q later, want %q", got, row.breaks)
		}
	}
}

func (r *faultRig) newScene(t testing.TB, row faultRow, op payout.Op) *scene {
	t.Helper()
	s := &scene{TB: t, r: r, op: op, held: make(chan *exchange, 16), notices: make(chan notice, 16), released: make(chan struct{})}
	t.Cleanup(s.release)
	s.packet.ID = packet.NewID([]byte("salt"), rand.Text())
	s.account = "recipient" + row.suffix
	rules := slices.Clone(row.rules)
	for i := range rules {
		rules[i].Op = cmp.Or(rules[i].Op, string(op))
		if rules[i].Op == "query" {
			rules[i].AccountPrefix = s.account
		}
	}
	if op == payout.OpRefund { // a charge that took long on a busy machine is asked about, under the same account
		s.later = slices.Clone(rules)
		rules = slices.DeleteFunc(rules, func(r rule) bool { return r.Op == "query" })
	}
	s.line = r.front.plug(t, s.packet.ID, r.public+"/v1/provider-notifications/sandbox", rules)
	if row.limits.Remembers != 0 {
		r.limits.Store(s.packet.ID, row.limits)
	}
	kind := map[payout.Op]payout.Kind{payout.OpCharge: payout.KindCharge, payout.OpTransfer: payout.KindPayout,
		payout.OpRefund: payout.KindRefund}[op]
	s.id = payout.ID(kind, s.packet.ID, 0)
	return s
}

// rowAmount is below the amount from which a second person has to agree.
const rowAmount = 100

// movementsAt are all movements of the scene's packet.
func (r *faultRig) movementsAt(s *scene) []movement {
	return (&rig{url: s.line.sandbox}).movements(s, s.packet.ID)
}

// begin brings the packet so far that the payment of the row is made.
func (r *faultRig) begin(s *scene, row faultRow) {
	s.Helper()
	sender, count := "sender", 1
	if s.op != payout.OpTransfer {
		sender = s.account
	}
	how := spec{id: s.packet.ID, sender: sender, total: rowAmount, count: count, within: row.within}
	if row.within > 0 {
		how.method = "sandbox_app"
	}
	s.packet = r.create(s, how)
	if s.op == payout.OpCharge {
		return
	}
	if s.op == payout.OpRefund && strings.HasSuffix(sender, "~confirm") {
		charge := payout.OrderNo(payout.ID(payout.KindCharge, s.packet.ID, 0), 1)
		wait.Until(s, "the charge waits for the sender", func() bool {
			p, err := r.store.PaymentRow(s.Context(), charge[:payout.IDLen])
			return err == nil && p.Status == payout.StatusAwaitingRecipient
		})
		s.line.control(s, http.MethodPost, "/_confirm/"+charge, nil)
	}
	r.awaitPool(s)
	if len(s.later) > 0 {
		s.line.setRules(s, s.later)
	}
	if row.ready != nil {
		row.ready(s)
	}
	if s.op == payout.OpTransfer {
		r.grab(s, s.packet.ID, s.account)
	} else {
		r.recall(s, s.packet.ID)
	}
	wait.Until(s, "the payment is made", func() bool { return s.payment().ID != "" })
}

func (r *faultRig) awaitPool(s *scene) {
	s.Helper()
	charge := payout.ID(payout.KindCharge, s.packet.ID, 0)
	wait.Within(s, rowWithin, func() string {
		p, err := r.store.PaymentRow(s.Context(), charge)
		return fmt.Sprintf("pool open; the charge is %s (%v) after calls %q", p.Status, err, s.line.seen(charge))
	}, func() bool {
		v, err := r.pool.View(s.Context(), s.packet.ID)
		return err == nil && v.State == packet.PoolOpen
	})
}

// moneyOf returns how much moved: never, once, twice, and how often it was returned.
func moneyOf(moves []movement) string {
	out, back := 0, 0
	for _, m := range moves {
		if m.Op == "return" {
			back++
		} else {
			out++
		}
	}
	s := fmt.Sprintf("%d times", out)
	if out < 3 {
		s = []string{"never", "once", "twice"}[out]
	}
	if back > 0 {
		s += ", returned"
	}
	return s
}

// mostMoved is how often the provider may move the money of one order number.
func (row faultRow) mostMoved() int {
	if row.money == "twice" {
		return 2
	}
	return 1
}

// checkMoney: at most so many movements an order number, whatever was done to the calls.
func (s *scene) checkMoney(most int) {
	s.Helper()
	moved := map[string]int{}
	for _, m := range s.line.moved(s, s.packet.ID, s.id) {
		if moved[m.Op+m.OrderNo]++; moved[m.Op+m.OrderNo] > most {
			s.Errorf("%s of %s happened more than %d times", m.Op, m.OrderNo, most)
		}
		if m.Amount != rowAmount || m.Account != s.account {
			s.Errorf("moved %+v, want %d fen of %s", m, rowAmount, s.account)
		}
	}
}

// checkFinance: what staff see of the payment, in MySQL and over HTTP.
func (s *scene) checkFinance(row faultRow) {
	s.Helper()
	d, err := s.r.reports().Payment(s.Context(), s.id)
	if err != nil {
		s.Fatal(err)
	}
	code := ""
	if d.Failure != nil {
		code = d.Failure.Code
		if d.Failure.Message == "" || d.Failure.NextAction == "" {
			s.Errorf("failure without a message or an advice: %+v", d.Failure)
		}
	}
	if code != row.code {
		s.Errorf("failure code %q, want %q", code, row.code)
	}
	if got := s.breaks(); got != row.breaks {
		s.Errorf("breaks %q, want %q", got, row.breaks)
	}
	if n := len(d.Attempts); n != max(row.tries, 1) {
		s.Errorf("%d order numbers used, want %d", n, max(row.tries, 1))
	}
	timeline, unanswered := map[string]int{}, 0
	for _, e := range d.Events {
		timeline[e.Op]++
		if e.Op == "send" && e.Outcome == string(payout.ObsNoAnswer) { // on a busy machine its time may be over before it has left
			unanswered++
		}
	}
	calls := "; " + s.line.seen(s.id)
	if sent, asked := strings.Count(calls, "send "), strings.Count(calls, "ask "); !row.loose &&
		(timeline["send"] < sent || timeline["send"]-unanswered > sent || timeline["ask"] > asked) {
		s.Errorf("the timeline has %d sends and %d queries, the provider saw %d and %d", timeline["send"], timeline["ask"], sent, asked)
	}
	if s.op == payout.OpTransfer {
		s.checkStaffAPI(d)
	}
}

// staffPayout is a payout as the staff API shows it.
type staffPayout struct {
	ID       string
	Status   string
	OrderNo  string `json:"order_no"`
	Failure  *payout.Failure
	Count    int `json:"attempt_count"`
	Workflow struct {
		ID string
	}
	Attempts []struct{ Outcome, Code *string }
	Timeline []struct{ What string }
}

func (s *scene) checkStaffAPI(d staff.PaymentDetail) {
	s.Helper()
	var shown staffPayout
	if got := s.r.http(s, http.MethodGet, s.r.staff+"/v1/staff/payouts/"+s.id, s.r.keys[0], nil, &shown); got != http.StatusOK {
		s.Fatalf("staff API answered %d", got)
	}
	var list struct{ Items []staffPayout }
	url := fmt.Sprintf("%s/v1/staff/payouts?packet_id=%s&status=%s", s.r.staff, s.packet.ID, d.Status)
	if s.r.http(s, http.MethodGet, url, s.r.keys[0], nil, &list) != http.StatusOK || len(list.Items) != 1 {
		s.Fatalf("listed %d times under its status %s", len(list.Items), d.Status)
	}
	for _, p := range []staffPayout{shown, list.Items[0]} {
		if p.ID != s.id || p.Status != string(d.Status) || p.OrderNo != d.OrderNo || p.Count != len(d.Attempts) || p.Workflow.ID != s.workflow() {
			s.Errorf("shown as %+v, is %+v", p, d.PaymentRow)
		}
		if (p.Failure == nil) != (d.Failure == nil) || p.Failure != nil && *p.Failure != *d.Failure {
			s.Errorf("failure shown as %+v, is %+v", p.Failure, d.Failure)
		}
	}
	if len(shown.Attempts) != len(d.Attempts) || len(shown.Timeline) < len(d.Events) {
		s.Errorf("%d attempts and %d lines shown of %d and %d", len(shown.Attempts), len(shown.Timeline), len(d.Attempts), len(d.Events))
	}
}

// checkRun: what operators see in the Temporal UI.
func (s *scene) checkRun(row faultRow) {
	s.Helper()
	if s.op == payout.OpCharge {
		return
	}
	want := "Running"
	switch {
	case row.status == payout.StatusFailed || row.status == payout.StatusReturned:
		want = "Failed"
	case !row.status.Open():
		want = "Completed" // the run that brought it there, or asked last
	}
	wait.Until(s, "run is "+want, func() bool { return s.r.runs(s, s.workflow()) == want })
}

// checkClosed: the packet ends, and ledger and provider agree.
func (s *scene) checkClosed(row faultRow) {
	s.Helper()
	if s.op == payout.OpCharge && row.ends == "" {
		s.r.awaitPool(s)
		s.r.grab(s, s.packet.ID, "another")
	}
	s.awaitPacket(cmp.Or(row.ends, packet.StatusClosed))
	if s.op == payout.OpCharge && row.ends == "" {
		wait.Until(s, "the winner is paid", func() bool {
			p, err := s.r.store.PaymentRow(s.Context(), payout.ID(payout.KindPayout, s.packet.ID, 0))
			return err == nil && p.Status == payout.StatusPaid
		})
	}
	if s.op == payout.OpCharge && row.ends != "" && row.status == payout.StatusPaid { // it was never open
		s.awaitRefund()
	}
	if !row.adrift {
		s.tied()
	}
}

func (s *scene) awaitPacket(status packet.Status) {
	s.Helper()
	wait.Until(s, "packet is "+string(status), func() bool {
		rec, err := s.r.store.Packet(s.Context(), s.packet.ID)
		return err == nil && rec.Stored == status
	})
}

// awaitRefund waits until the sender has the remainder, or the whole amount of a packet that was never open.
func (s *scene) awaitRefund() {
	s.Helper()
	wait.Until(s, "the remainder is refunded", func() bool {
		p, err := s.r.store.PaymentRow(s.Context(), payout.ID(payout.KindRefund, s.packet.ID, 0))
		return err == nil && p.Status == payout.StatusPaid
	})
}

// tied: the ledger sums to the packet's total, no account is overdrawn, and it has the provider's
// movements.
func (s *scene) tied() {
	s.Helper()
	b, err := s.r.store.Balances(s.Context(), s.packet.ID)
	if err != nil {
		s.Fatal(err)
	}
	var totals payout.ProviderTotals
	wait.Until(s, "the provider lists its sums", func() bool {
		totals, err = s.r.provider.Totals(s.Context(), s.packet.ID)
		return err == nil
	})
	k, a := b.ByKind, b.ByAccount
	in := a[payout.AccountHolding] + a[payout.AccountOwed] + a[payout.AccountRefunding] + a[payout.AccountOutside]
	out := k[payout.PostPaid] - k[payout.PostReturned] + k[payout.PostRefunded] - k[payout.PostRefundReturned]
	if in+out != s.packet.TotalAmount || k[payout.PostCharge] != s.packet.TotalAmount {
		s.Errorf("the ledger sums to %d, the total is %d: %v", in+out, s.packet.TotalAmount, b)
	}
	if a[payout.AccountHolding] < 0 || a[payout.AccountOwed] < 0 || a[payout.AccountRefunding] < 0 ||
		a[payout.AccountSuspense] != -k[payout.PostSecondSuccess] {
		s.Errorf("an account is overdrawn: %v", b)
	}
	want := payout.ProviderTotals{Charged: k[payout.PostCharge], Transferred: k[payout.PostPaid], Returned: k[payout.PostReturned] +
		k[payout.PostRefundReturned],
		Refunded: k[payout.PostRefunded]}
	if s.op == payout.OpRefund {
		want.Refunded += k[payout.PostSecondSuccess]
	} else {
		want.Transferred += k[payout.PostSecondSuccess]
	}
	if totals != want {
		s.Errorf("the provider moved %+v, the ledger says %+v", totals, want)
	}
}

// faultDocument renders docs/faults.md.
func faultDocument() []byte {
	var b bytes.Buffer
	b.WriteString(`# Faults of a payment provider

<!-- Made from the table of worker/faults_test.go by "go test ./worker -run TestFaultDocument -update". Do not edit. -->

Every row runs on the real parts, by ` + "`go test ./worker -run TestFaultTable`" + `: a packet whose
charge, payout (transfer) or refund meets the fault. **Calls** are what the provider saw, in order: a
send, a query (ask), the close of a charge or the cancel of a transfer, and its answer; + is once or more
often, * any number of times, ... any calls, #2 is the second order number. Repeated sends of a number are
the same byte for byte. **Money** is what moved under the
payment's numbers. **Finance sees** is what the list of payments and the list of breaks show.
`)
	for _, section := range faultTable {
		renderRows(&b, section.title, section.about, section.rows)
	}
	var rows []faultRow
	for _, section := range []struct {
		ops  []payout.Op
		rows []wechatRow
	}{{charges, wechatChargeRows}, {transfers, wechatRows}, {refunds, wechatRefundRows}} {
		for _, row := range section.rows {
			row.ops = section.ops
			rows = append(rows, row.faultRow)
		}
	}
	renderRows(&b, "WeChat Pay", "Charges, payouts and refunds through WeChat Pay, where they differ: the calls have its states and codes. "+
		"By `go test ./worker -run TestWechat`, with its simulator.", rows)
	return b.Bytes()
}

// renderRows renders a section of docs/faults.md.
func renderRows(b *bytes.Buffer, title, about string, rows []faultRow) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| fault | of | calls | status | money | finance sees |\n|---|---|---|---|---|---|\n", title, about)
	for _, row := range rows {
		var ops []string
		for _, op := range row.ops {
			ops = append(ops, string(op))
		}
		fmt.Fprintf(b, "| %s | %s | `%s` | `%s` | %s | %s |\n", row.what, strings.Join(ops, ", "), row.calls, row.status, row.money, row.sees())
	}
}

// sees says what finance sees beside the status.
func (row faultRow) sees() string {
	var parts []string
	if row.code != "" {
		kind := payout.KindPayout
		if slices.Equal(row.ops, refunds) {
			kind = payout.KindRefund
		}
		f := payout.FailureOf(kind, row.code, "")
		parts = append(parts, fmt.Sprintf("`%s`: %s", f.Code, strings.TrimSuffix(f.NextAction, ".")))
	}
	if row.tries > 1 {
		parts = append(parts, fmt.Sprintf("%d order numbers", row.tries))
	}
	if row.breaks != "" {
		parts = append(parts, "break: "+row.breaks)
	}
	if row.adrift && row.breaks == "" {
		parts = append(parts, "nothing, until the day's statement is reconciled")
	}
	return cmp.Or(strings.Join(parts, "; "), map[bool]string{true: "an open payment, by age", false: "nothing to do"}[row.status.Open()])
}

func compareDocument(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the table says; run with -update (%v)", path, err)
	}
}
