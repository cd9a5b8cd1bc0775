package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/visible"
	"hongbao/wire"
)

func moneyOf(fen int64) money.Fen { return money.Fen(fen) }

func newTestServer(t *testing.T, h http.Handler) (address string) {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// TestPayouts lives failed payouts through as people of finance do, each command
// and each exit code, on the real API.
func TestPayouts(t *testing.T) {
	t.Parallel()
	d := newStaffStack(t)
	for name, test := range map[string]func(*staffStack, *testing.T){
		"List": (*staffStack).testList, "Mend": (*staffStack).testMend, "TwoPersons": (*staffStack).testTwoPersons,
		"Many":      (*staffStack).testMany,
		"BrokenOff": (*staffStack).testBrokenOff, "LostAnswer": (*staffStack).testLostAnswer, "Refunds": (*staffStack).testRefunds,
		"Charges":     (*staffStack).testCharges,
		"ManyRefunds": (*staffStack).testManyRefunds, "Roles": (*staffStack).testRoles, "Hostile": (*staffStack).testHostile,
		"Undecided": (*staffStack).testUndecided,
	} {
		t.Run(name, func(t *testing.T) {
			own := *d
			own.t, own.keysRig.t = t, t
			test(&own, t)
		})
	}
}

// ids reads a list of --json.
func (d *staffStack) ids(out string) (ids []string, next *string) {
	d.t.Helper()
	var page struct {
		Items      []struct{ ID string }
		NextCursor *string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(out), &page); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	for _, item := range page.Items {
		ids = append(ids, item.ID)
	}
	return ids, page.NextCursor
}

func (d *staffStack) testList(t *testing.T) {
	p, paid := d.grabbedPacket(100, "bob", "carol~frozen", "dave~declined", "eve")
	list := func(args ...string) []string {
		t.Helper()
		out, _ := d.sh(exitOK, append([]string{"payouts", "list", "--packet", p, "--json"}, args...)...)
		ids, _ := d.ids(out)
		return ids
	}
	for args, want := range map[string][]string{
		"--status failed": {paid["carol~frozen"], paid["dave~declined"]},
		"--status failed --failure-code payee_declined": {paid["dave~declined"]},
		"--user bob": {paid["bob"]},
		"--order-no " + payout.OrderNo(paid["eve"], 1): {paid["eve"]},
		"--older-than 1h":                              nil,
		"--older-than 0s --status paid":                {paid["bob"], paid["eve"]},
		"--amount-min 101":                             nil,
		"--amount-max 99":                              nil,
		"--amount-min 100 --amount-max 100 --user eve": {paid["eve"]},
	} {
		got := list(strings.Fields(args)...)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	out, notes := d.sh(exitOK, "payouts", "list", "--packet", p, "--limit", "3", "--json")
	first, next := d.ids(out)
	if len(first) != 3 || next == nil || notes != "" {
		t.Fatalf("%s%s", out, notes)
	}
	out, _ = d.sh(exitOK, "payouts", "list", "--packet", p, "--limit", "3", "--json", "--cursor", *next)
	if rest, end := d.ids(out); len(rest) != 1 || end != nil || slices.Contains(first, rest[0]) {
		t.Errorf("%s", out)
	}
	out, notes = d.sh(exitOK, "payouts", "list", "--packet", p, "--limit", "3")
	contains(t, out, "payout", "failure", "¥1.00")
	_, cursor, named := strings.Cut(strings.TrimSpace(notes), "There are more entries: add --all, or --cursor ")
	out, _ = d.sh(exitOK, "payouts", "list", "--packet", p, "--limit", "3", "--json", "--cursor", cursor)
	if rest, end := d.ids(out); !named || len(rest) != 1 || end != nil || slices.Contains(first, rest[0]) {
		t.Errorf("%s%s", notes, out)
	}
	if out, notes = d.sh(exitOK, "payouts", "list", "--packet", p, "--limit", "1", "--all"); notes != "" || strings.Count(out, "¥1.00") != 4 {
		t.Errorf("%s%s", out, notes)
	}
	for args, says := range map[string]string{
		"--status lost": "none of pending, sending", "--packet x": "not the id of a packet", "--packet=": "the value is empty", "--order-no " +
			paid["bob"]: "not an order number",
		"--older-than 1500ms": "whole seconds", "--amount-min -1": "below zero", "--amount-min 5 --amount-max 4": "matches nothing",
		"--amount-max 0": "matches nothing", "--limit 0": "write a number from 1 to 200", "--limit 201": "write a number from 1 to 200",
		"--failure-code 冻": "visible ASCII", "extra": "takes no arguments", "--packet x --status lost": "not the id",
	} {
		if _, errs := d.shAs(d.as("HONGBAO_STAFF_URL", "http://127.0.0.1:1"), exitUsage,
			append([]string{"payouts", "list"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
	if _, errs := d.sh(exitUsage, "payouts", "list", "--cursor", "bad"); !strings.Contains(errs, "invalid_request") ||
		!strings.Contains(errs, "(request req_") {
		t.Errorf("%s", errs)
	}
}

// testMend is the way from a failed payout to a paid one.
func (d *staffStack) testMend(t *testing.T) {
	_, paid := d.grabbedPacket(100, "mei~frozen")
	id := paid["mei~frozen"]
	out, _ := d.sh(exitOK, "payouts", "show", id)
	contains(t, out, id, "mei~frozen", "¥1.00 (100 fen)", "failed", "account_frozen", "Retry once the recipient", payout.OrderNo(id, 1),
		"then sends the new order number "+payout.OrderNo(id, 2)+": the last one failed for good",
		"declined", "claim booked", "http://127.0.0.1:18233/namespaces/hongbao/workflows/payout%2F")
	if strings.Contains(out, "second person") {
		t.Errorf("a small one needs nobody else:\n%s", out)
	}
	if out, _ = d.sh(exitOK, "payouts", "show", id, "--json"); !json.Valid([]byte(out)) || !strings.Contains(out, `"timeline"`) {
		t.Errorf("%s", out)
	}
	out, _ = d.sh(exitOK, "payouts", "retry", id, "--dry-run")
	contains(t, out, id, "would_retry", payout.OrderNo(id, 2)+" (new)", "the last one failed for good", "Nothing was decided")
	if d.status(id) != payout.StatusFailed {
		t.Fatal("a dry run has decided")
	}
	d.unfreeze("mei~frozen")
	out, _ = d.sh(exitOK, "payouts", "retry", id, "--reason", "unfrozen", "--idempotency-key", "mend-1")
	contains(t, out, "Paying again is decided", id, "is pending")
	same, _ := d.sh(exitOK, "payouts", "retry", id, "--reason", "unfrozen", "--idempotency-key", "mend-1")
	if same != out || d.auditCount(id) != 1 {
		t.Errorf("a repeat with the same key: %s", same)
	}
	_, errs := d.sh(exitRefused, "payouts", "retry", id, "--reason", "again")
	contains(t, errs, "not_retryable", "(request req_")
	raw, _ := d.sh(exitRefused, "payouts", "retry", id, "--reason", "again", "--json")
	contains(t, raw, `"code":"not_retryable"`)
	d.drive(id)
	out, _ = d.sh(exitOK, "payouts", "show", id)
	contains(t, out, "paid", payout.OrderNo(id, 2))
	if strings.Contains(out, "a retry") {
		t.Errorf("nothing to retry:\n%s", out)
	}
	out, _ = d.sh(exitOK, "payouts", "ask", id, "--reason", "to be sure", "--json")
	var asked wire.Decided
	if err := json.Unmarshal([]byte(out), &asked); err != nil || asked.Decision.Kind != "ask" || asked.Payout.ID != id {
		t.Errorf("%v: %s", err, out)
	}

	// What the provider never received is sent again under its number.
	other := strings.Replace(id, id[1:3], "00", 1)
	for args, says := range map[string]string{
		"show": "takes one argument", "show x": "not the id of a payout",
		"show " + payout.OrderNo(id, 1): "an order number and not the id of a payout: " +
			"write " + id,
		"show r" + id[1:]: "not the id of a payout", "cancel " + id: "--reason is required", "mark-paid " + id +
			" --reason r": "--evidence is required", "ask " + id: "--reason is required",
		"retry " + id: "--reason is required", "retry": "a filter that selects payouts",
		"retry --reason r --yes": "a filter that selects payouts", "retry " + id +
			" --status failed --reason r": "--status cannot be combined with an id",
		"retry --status failed --yes --dry-run": "contradict", "retry --status failed --yes": "--reason is required",
		"retry --status paid": "only failed, returned and unknown", "show " + id + " --timeout -1s": "write 0s or more", "show " + id +
			" --staff-url nowhere": "not an http or https URL",
	} {
		if _, errs := d.sh(exitUsage, append([]string{"payouts"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
	_, errs = d.sh(exitFailed, "payouts", "show", other)
	contains(t, errs, "payout_not_found", "(request req_")
	_, errs = d.shAs(d.as("HONGBAO_FINANCE_KEY", "hb_finance_nobody"), exitFailed, "payouts", "list")
	contains(t, errs, "unauthenticated")
	_, errs = d.shAs(d.as("HONGBAO_STAFF_URL", "http://127.0.0.1:1"), exitFailed, "payouts", "ask", id, "--reason", "r", "--timeout", "100ms")
	contains(t, errs, "http://127.0.0.1:1: POST /v1/staff/payouts/", "the outcome is unknown", "--idempotency-key ")
	w, broken := d.newFaultyProxy(func(int, *http.Request) (bool, int) { return false, http.StatusBadGateway })
	_, errs = d.shAs(d.as("HONGBAO_STAFF_URL", broken), exitFailed, "payouts", "ask", id, "--reason", "r")
	contains(t, errs, "(request req_spoilt)", "the outcome is unknown: run the command again with --idempotency-key "+w.keys[0])
	_, errs = d.shAs(d.as("HONGBAO_FINANCE_KEY", ""), exitUsage, "payouts", "list")
	contains(t, errs, "HONGBAO_FINANCE_KEY (--finance-key) is required")
}

// noApproval has the form of an approval's id.
const noApproval = "aKQ3X7M2P5R6T4V2W3Y7Z5B6CD"

// testTwoPersons: what needs a second person says so, and who may be that.
func (d *staffStack) testTwoPersons(t *testing.T) {
	second := d.as("HONGBAO_FINANCE_KEY", d.second)
	_, paid := d.grabbedPacket(approvalFrom, "rich~frozen", "gone~declined", "kept~declined")
	big, gone, kept := paid["rich~frozen"], paid["gone~declined"], paid["kept~declined"]
	out, _ := d.sh(exitOK, "payouts", "show", big)
	contains(t, out, "a second person has to approve first")
	out, _ = d.sh(exitWaiting, "payouts", "retry", big, "--reason", "unfrozen")
	contains(t, out, "no money has moved", big, "hongbao approvals approve "+d.waiting(big), "is failed")
	_, errs := d.sh(exitRefused, "payouts", "cancel", big, "--reason", "or rather not")
	contains(t, errs, "decision_pending")
	_, errs = d.sh(exitRefused, "approvals", "approve", d.waiting(big), "--reason", "my own")
	contains(t, errs, "forbidden", "another person")
	out, _ = d.sh(exitOK, "approvals", "list", "--status", "waiting")
	contains(t, out, big, "li-na", "unfrozen", "retry", "¥50.00")
	approval := d.waiting(big)
	out, _ = d.shAs(second, exitOK, "approvals", "approve", approval, "--reason", "seen")
	contains(t, out, "Paying again, requested by li-na", "payout "+big+" is pending")
	_, errs = d.shAs(second, exitRefused, "approvals", "approve", approval, "--reason", "again")
	contains(t, errs, "not_retryable")

	out, _ = d.sh(exitWaiting, "payouts", "cancel", gone, "--reason", "recipient is gone", "--json")
	var decided wire.Decided
	if err := json.Unmarshal([]byte(out), &decided); err != nil || decided.Approval == nil || decided.Decision.Status != "waiting" {
		t.Fatalf("%v: %s", err, out)
	}
	out, _ = d.shAs(second, exitOK, "approvals", "reject", decided.Approval.ID, "--reason", "found the user")
	contains(t, out, "Cancelling, requested by li-na, is rejected", "is failed")
	d.sh(exitWaiting, "payouts", "cancel", gone, "--reason", "mistyped")
	_, errs = d.shAs(second, exitRefused, "approvals", "withdraw", d.waiting(gone), "--reason", "not mine")
	contains(t, errs, "forbidden", "Only the person who decided")
	out, _ = d.sh(exitOK, "approvals", "withdraw", d.waiting(gone), "--reason", "meant another")
	contains(t, out, "Cancelling, requested by li-na, is withdrawn", "is failed")
	_, errs = d.sh(exitRefused, "payouts", "withdraw", gone, "--reason", "none is open")
	contains(t, errs, "not_retryable", "No cancel is open")
	d.sh(exitWaiting, "payouts", "cancel", gone, "--reason", "recipient is gone")
	d.shAs(second, exitOK, "approvals", "approve", d.waiting(gone), "--reason", "seen")
	out, _ = d.sh(exitOK, "payouts", "withdraw", gone, "--reason", "in progress for days")
	contains(t, out, "Cancelling is withdrawn; no money has moved", "is failed")
	out, _ = d.sh(exitOK, "payouts", "show", gone)
	contains(t, out, "a second person has to approve first")

	d.sh(exitWaiting, "payouts", "mark-paid", kept, "--reason", "account closed", "--evidence", "bank slip 4711")
	out, _ = d.sh(exitOK, "approvals", "list", "--status", "waiting")
	contains(t, out, "bank slip 4711", "mark_paid")
	out, _ = d.shAs(second, exitOK, "approvals", "approve", d.waiting(kept), "--reason", "slip seen", "--json")
	contains(t, out, `"status":"paid_outside"`)
	if d.status(kept) != payout.StatusPaidOutside || d.status(gone) != payout.StatusFailed {
		t.Errorf("%s, %s", d.status(kept), d.status(gone))
	}
	for args, says := range map[string]string{
		"list --status maybe": "none of waiting, open", "approve " + noApproval: "--reason is required", "approve": "takes one argument",
		"list --limit 999": "write a number from 1 to 200",
	} {
		if _, errs := d.sh(exitUsage, append([]string{"approvals"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
	d.sh(exitUsage, "approvals", "reject", " ", "--reason", "r")
	_, errs = d.sh(exitFailed, "approvals", "reject", noApproval, "--reason", "r")
	contains(t, errs, "not_found")
}

// many runs a retry of many with --json.
func (d *staffStack) many(want int, env []string, args ...string) (m retryReport, errs string) {
	d.t.Helper()
	return d.manyOf("payouts", want, env, args...)
}

func (d *staffStack) manyOf(group string, want int, env []string, args ...string) (m retryReport, errs string) {
	d.t.Helper()
	out, errs := d.shAs(env, want, append([]string{group, "retry", "--json"}, args...)...)
	first, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(first), &m); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	return m, errs
}

// testMany: more than one page, each decided about once; a dry run decides nothing.
func (d *staffStack) testMany(t *testing.T) {
	var users []string
	for i := range maxListPage + 5 {
		users = append(users, fmt.Sprintf("u%d~frozen", i))
	}
	p, paid := d.grabbedPacket(10, users...)
	_, rich := d.grabbedPacket(approvalFrom, "vip~frozen")
	dry, _ := d.many(exitOK, d.env(), "--packet", p)
	if !dry.DryRun || dry.Count != len(users) || dry.Amount != moneyOf(10*int64(len(users))) || dry.Results["would_retry"] != len(users) ||
		dry.Key != "" {
		t.Fatalf("%d, %v", dry.Count, dry.Results)
	}
	if item := dry.Items[0]; item.OrderNo == nil || *item.OrderNo != payout.OrderNo(item.PayoutID, 2) || item.SameOrderNo ||
		paid[item.UserID] != item.PayoutID || item.Failure != "account_frozen" || item.Why != "the last one failed for good" {
		t.Errorf("%+v", item)
	}
	for _, id := range paid {
		if d.status(id) != payout.StatusFailed {
			t.Fatalf("%s is %s after a dry run", id, d.status(id))
		}
	}
	out, _ := d.sh(exitOK, "payouts", "retry", "--packet", p, "--status", "failed", "--failure-code", "account_frozen", "--user", users[0])
	contains(t, out, "would_retry", "(new)", "the last one failed for good",
		"Selected: 1, ¥0.10 (10 fen). Nothing was decided; add --yes and "+
			"--reason to decide.")

	// One of them waits for a second person to cancel it.
	taken := paid[users[7]]
	d.sh(exitWaiting, "payouts", "cancel", taken, "--reason", "recipient is gone")
	done, notes := d.many(exitRefused, d.env(), "--packet", p, "--reason", "bank has unfrozen them", "--yes")
	if done.Count != len(users) || done.Results["retried"] != len(users)-1 || done.Results["skipped"] != 1 || done.Key == "" {
		t.Fatalf("%v", done.Results)
	}
	contains(t, notes, fmt.Sprintf("%d / %d", len(users), len(users)))
	for _, item := range done.Items {
		want, result := payout.StatusPending, "retried"
		if item.PayoutID == taken {
			want, result = payout.StatusFailed, "skipped"
		}
		if (item.OrderNo == nil) != (item.PayoutID == taken) || item.Result != result || d.status(item.PayoutID) != want || result == "skipped" &&
			optionalText(item.Code) != "decision_pending" {
			t.Errorf("%+v is %s", item, d.status(item.PayoutID))
		}
	}
	if n := d.auditCount(paid[users[0]]); n != 1 {
		t.Errorf("%d decisions", n)
	}
	out, _ = d.sh(exitWaiting, "payouts", "retry", "--user", "vip~frozen", "--reason", "r", "--yes")
	contains(t, out, "needs_approval: a", "0 retried, 1 wait for approval", "hongbao approvals list --status waiting")
	if d.status(rich["vip~frozen"]) != payout.StatusFailed {
		t.Error("moved before a second person agreed")
	}
	out, _ = d.sh(exitOK, "payouts", "retry", "--user", "nobody", "--reason", "r", "--yes")
	contains(t, out, "No payout matches.")
	out, _ = d.sh(exitRefused, "payouts", "retry", "--packet", p, "--user", users[7], "--reason", "r", "--yes")
	contains(t, out, "refused: decision_pending", "0 retried, 0 wait for approval, 1 refused, 0 not tried")
}

// testUndecided: a retry of many passes over a payout of a packet that a recovery of the books
// has left to people, and pays the others again.
func (d *staffStack) testUndecided(t *testing.T) {
	_, paid := d.grabbedPacket(10, "undecided~frozen")
	other := paid["undecided~frozen"]
	left, paid := d.grabbedPacket(10, "undecided~frozen") // listed first: it is newer
	bad := paid["undecided~frozen"]
	w := staff.Write{Owner: "op", Role: "operator", Reason: "r"}
	books, err := d.store.DeclareRestored(t.Context(), w, 0, time.Now())
	d.check(err)
	d.check(d.store.NoteUndecided(t.Context(), left, payout.OrderNo(bad, 2), "d"))
	_, err = d.store.EndRecovery(t.Context(), w, books, 0, []string{"sandbox"}, nil, nil)
	d.check(err)
	d.sh(exitOK, "providers", "release", "sandbox", "--reason", "checked")
	many := []string{"payouts", "retry", "--user", "undecided~frozen", "--reason", "r"}
	out, _ := d.sh(exitOK, many...)
	contains(t, out, "refused: held", "would_retry", "Selected: 2")
	out, _ = d.sh(exitRefused, append(many, "--yes")...)
	contains(t, out, "refused: held", "1 retried, 0 wait for approval, 1 refused, 0 not tried")
	if d.status(bad) != payout.StatusFailed || d.status(other) != payout.StatusPending {
		t.Errorf("left to people: %s, the other: %s", d.status(bad), d.status(other))
	}
	_, errs := d.sh(exitRefused, "payouts", "retry", bad, "--reason", "r")
	contains(t, errs, "held", "on the packet "+left)
	out, _ = d.sh(exitOK, "holds", "list", "--scope", "packet")
	id := regexp.MustCompile(`h\d+`).FindString(out)
	contains(t, out, left, "recovery")
	out, _ = d.sh(exitOK, "holds", "show", id)
	contains(t, out, "two persons of finance have to release it")
	out, _ = d.shAs(d.as("HONGBAO_OPS_KEY", d.finance), exitWaiting, "holds", "release", id, "--reason", "looked at")
	contains(t, out, "has asked to release it")
	_, errs = d.sh(exitUsage, "holds", "place", "packet", "x", "--reason", "r")
	contains(t, errs, "not the id of a packet")
	out, _ = d.sh(exitOK, "holds", "place", "payment", bad, "--reason", "r")
	contains(t, out, "active")
	d.testReleaseMany()
	d.testDecideConflicts()
}

// testReleaseMany: a dry run releases nothing; two persons release what lets money go.
func (d *staffStack) testReleaseMany() {
	t := d.t
	first, second := d.as("HONGBAO_OPS_KEY", d.finance), d.as("HONGBAO_OPS_KEY", d.second)
	many := []string{"holds", "release", "--scope", "payment", "--kind", "staff"}
	out, _ := d.shAs(first, exitOK, many...)
	contains(t, out, "waiting", "moves after a retry", "Selected: 1, ", "Nothing was released")
	many = append(many, "--reason", "looked at", "--yes")
	out, _ = d.shAs(first, exitWaiting, many...)
	contains(t, out, "li-na", "Of 1 holds, ", "0 released, 1 wait for a second person, 0 refused")
	out, _ = d.shAs(first, exitOK, many...)
	contains(t, out, "No hold matches")
	out, _ = d.shAs(second, exitOK, append(many, "--json")...)
	contains(t, out, `"result":"released"`, `"asked_by":"li-na"`)
	_, errs := d.shAs(first, exitUsage, "holds", "release", "--reason", "r")
	contains(t, errs, "give a hold id, or a filter")
	_, errs = d.shAs(first, exitUsage, "holds", "release", "h1", "--scope", "packet", "--reason", "r")
	contains(t, errs, "cannot be combined")
}

// testBrokenOff: a retry of many that breaks in the middle says what it did, and
// the same command with the key it prints does the rest, and nothing twice.
func (d *staffStack) testBrokenOff(t *testing.T) {
	p, paid := d.grabbedPacket(10, "a~frozen", "b~frozen", "c~frozen")
	_, address := d.newFaultyProxy(func(n int, r *http.Request) (bool, int) {
		if n == 3 && r.Method == http.MethodPost { // the first says what would happen
			return false, http.StatusInternalServerError
		}
		return false, 0
	})
	args := []string{"--packet", p, "--reason", "unfrozen", "--yes"}
	m, errs := d.many(exitFailed, d.as("HONGBAO_STAFF_URL", address), args...)
	if m.Results["retried"] != 1 || m.Results["not_tried"] != 2 {
		t.Fatalf("%v", m.Results)
	}
	contains(t, errs, "Interrupted. To continue, run the command again with --idempotency-key "+m.Key, "internal", "(request req_spoilt)")
	// The one that was decided about fails again before the command continues: that is
	// another failure, and another decision.
	first := m.Items[0].PayoutID
	if st := d.drive(first); st.Status != payout.StatusFailed {
		t.Fatal(st.Status)
	}
	again, _ := d.many(exitOK, d.env(), append(args, "--idempotency-key", m.Key)...)
	if again.Results["retried"] != 3 || again.Key != m.Key {
		t.Errorf("%v", again.Results)
	}
	for _, id := range paid {
		want := payout.StatusPending
		if id == first {
			want = payout.StatusFailed
		}
		if d.status(id) != want || d.auditCount(id) != 1 {
			t.Errorf("%s is %s with %d decisions", id, d.status(id), d.auditCount(id))
		}
	}
}

// testLostAnswer: the answer of a write is lost, the client asks again under the
// same key, and one decision is made.
func (d *staffStack) testLostAnswer(t *testing.T) {
	_, paid := d.grabbedPacket(100, "lost~frozen")
	id := paid["lost~frozen"]
	w, address := d.newFaultyProxy(func(n int, r *http.Request) (bool, int) { return n == 1 && r.Method == http.MethodPost, 0 })
	out, _ := d.shAs(d.as("HONGBAO_STAFF_URL", address), exitOK, "payouts", "retry", id, "--reason", "unfrozen")
	contains(t, out, "Paying again is decided")
	if len(w.keys) != 2 || w.keys[0] == "" || w.keys[0] != w.keys[1] || d.auditCount(id) != 1 {
		t.Errorf("keys %q, %d decisions", w.keys, d.auditCount(id))
	}
}

// refused is the refund of a packet that nobody has grabbed, declined by the provider.
func (d *staffStack) refused(key, sender string) (packetID, refund string) {
	d.t.Helper()
	ctx := d.t.Context()
	request := wire.CreatePacket{SenderID: sender, TotalAmount: 300, ShareCount: 3, Split: wire.SplitEqual}
	made, err := d.client.Create(ctx, request, client.Key(key))
	d.check(err)
	d.check(d.stack.Fund(ctx, made.ID))
	d.faults(`{"rules":[{"op":"refund","kind":"decline","rate":1}]}`)
	refund = d.closePacket(made.ID)
	d.faults(`{"rules":[]}`)
	return made.ID, refund
}

// testManyRefunds: refunds are retried by filters as payouts are; a dry run decides
// nothing, and what is decided is decided about each once.
func (d *staffStack) testManyRefunds(t *testing.T) {
	refunds := map[string]bool{}
	for i := range 3 {
		_, id := d.refused(fmt.Sprintf("many-refunds-%d", i), "generous")
		refunds[id] = true
	}
	_, other := d.refused("refund-of-another", "mean")
	dry, _ := d.manyOf("refunds", exitOK, d.env(), "--user", "generous")
	if !dry.DryRun || dry.Count != 3 || dry.Amount != moneyOf(900) || dry.Results[resultWould] != 3 || dry.Key != "" {
		t.Fatalf("%+v", dry)
	}
	for _, item := range dry.Items {
		if !refunds[item.RefundID] || item.PayoutID != "" || item.OrderNo == nil || *item.OrderNo != payout.OrderNo(item.RefundID, 2) ||
			item.SameOrderNo || d.status(item.RefundID) != payout.StatusFailed {
			t.Errorf("%+v is %s", item, d.status(item.RefundID))
		}
	}
	out, _ := d.sh(exitOK, "refunds", "retry", other, "--dry-run")
	contains(t, out, "refund", other, "would_retry", "the last one failed for good", "run it without --dry-run to decide")
	out, _ = d.sh(exitOK, "refunds", "retry", "--user", "nobody", "--yes", "--reason", "r")
	contains(t, out, "No refund matches.")
	auditor := d.as("HONGBAO_FINANCE_KEY", d.auditor)
	_, errs := d.shAs(auditor, exitRefused, "refunds", "retry", "--user", "generous", "--yes", "--reason", "r")
	contains(t, errs, "forbidden")

	done, _ := d.manyOf("refunds", exitOK, d.env(), "--user", "generous", "--reason", "account opened again", "--yes")
	if done.Results[resultRetried] != 3 || done.Key == "" {
		t.Fatalf("%v", done.Results)
	}
	again, _ := d.manyOf("refunds", exitOK, d.env(), "--user", "generous", "--reason", "account opened again", "--yes", "--idempotency-key",
		done.Key)
	if again.Count != 0 {
		t.Errorf("selected again: %+v", again)
	}
	for id := range refunds {
		if d.auditCount(id) != 1 || d.drive(id).Status != payout.StatusPaid {
			t.Errorf("%s is %s with %d decisions", id, d.status(id), d.auditCount(id))
		}
	}
	if d.status(other) != payout.StatusFailed || d.auditCount(other) != 0 {
		t.Errorf("the refund of another sender is %s", d.status(other))
	}
	for args, says := range map[string]string{
		"retry": "a filter that selects refunds", "retry p" + other[1:]: "not the id of a refund",
		"retry " + other + " --user u": "--user cannot be combined with an id",
		"retry --status paid":          "only failed, returned and unknown refunds", "retry --user u --yes --dry-run": "contradict",
	} {
		if _, errs := d.sh(exitUsage, append([]string{"refunds"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
}

func (d *staffStack) testCharges(t *testing.T) {
	packetID, _ := d.refused("charges", "payer")
	charge := payout.ID(payout.KindCharge, packetID, 0)
	out, _ := d.sh(exitOK, "charges", "list", "--status", "paid", "--packet", packetID)
	contains(t, out, charge, "payer", "¥3.00", "sandbox")
	out, _ = d.sh(exitOK, "charges", "show", charge)
	contains(t, out, charge, packetID, "paid", payout.OrderNo(charge, 1), "packet%2F")
	if out, _ = d.sh(exitOK, "charges", "show", charge, "--json"); !json.Valid([]byte(out)) {
		t.Errorf("%s", out)
	}
	out, _ = d.sh(exitOK, "charges", "ask", charge, "--reason", "the sender says nothing was taken")
	contains(t, out, "charge "+charge+" of ¥3.00 from payer is paid")
	_, errs := d.sh(exitFailed, "charges", "show", "c"+strings.Repeat("0", 24))
	contains(t, errs, "charge_not_found")
	if _, errs = d.sh(exitUsage, "charges", "show", "p"+charge[1:]); !strings.Contains(errs, "not the id of a charge") {
		t.Errorf("%s", errs)
	}
}

func (d *staffStack) testRefunds(t *testing.T) {
	packetID, refund := d.refused("refunds", "boss")
	out, _ := d.sh(exitOK, "refunds", "list", "--status", "failed", "--packet", packetID)
	contains(t, out, refund, "remainder", "boss", "¥3.00")
	out, _ = d.sh(exitOK, "refunds", "show", refund)
	contains(t, out, refund, "remainder", "failed", "declined", "refund%2F", "then sends the new order number "+payout.OrderNo(refund, 2)+
		": the last one failed for good")
	if out, _ = d.sh(exitOK, "refunds", "show", refund, "--json"); !json.Valid([]byte(out)) {
		t.Errorf("%s", out)
	}
	if out, _ = d.sh(exitOK, "refunds", "list", "--late", "--packet", packetID); strings.Contains(out, refund) {
		t.Errorf("late before it was due for five minutes:\n%s", out)
	}
	d.sh(exitWaiting, "refunds", "mark-paid", refund, "--reason", "cash", "--evidence", "receipt 1")
	_, errs := d.sh(exitRefused, "refunds", "retry", refund, "--reason", "again")
	contains(t, errs, "decision_pending")
	out, _ = d.sh(exitOK, "approvals", "list", "--status", "waiting", "--all", "--json")
	var page struct{ Items []wire.ApprovalItem }
	d.check(json.Unmarshal([]byte(out), &page))
	i := slices.IndexFunc(page.Items, func(a wire.ApprovalItem) bool { return a.Refund != nil })
	out, _ = d.shAs(d.as("HONGBAO_FINANCE_KEY", d.second), exitOK, "approvals", "reject", page.Items[i].ID, "--reason", "no cash")
	contains(t, out, "refund "+refund+" is failed")
	out, _ = d.sh(exitOK, "refunds", "retry", refund, "--reason", "provider was wrong")
	contains(t, out, "Paying again is decided", "refund "+refund+" of ¥3.00 to boss is pending")
	if st := d.drive(refund); st.Status != payout.StatusPaid {
		t.Errorf("%s", st.Status)
	}
	for args, says := range map[string]string{
		"show p" + refund[1:]: "not the id of a refund", "retry " + refund: "--reason is required", "mark-paid " + refund +
			" --reason r": "--evidence is required", "list --status x": "none of",
		"list --limit 0": "write a number from 1",
	} {
		if _, errs := d.sh(exitUsage, append([]string{"refunds"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
}

func (d *staffStack) faults(rules string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPut, d.provider+"/_faults", strings.NewReader(rules))
	d.check(err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	d.check(err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		d.t.Fatal(res.Status)
	}
}

// testRoles: a role that may only read is refused writes and can read.
func (d *staffStack) testRoles(t *testing.T) {
	_, paid := d.grabbedPacket(100, "seen~frozen")
	id := paid["seen~frozen"]
	auditor := d.as("HONGBAO_FINANCE_KEY", d.auditor)
	out, _ := d.shAs(auditor, exitOK, "payouts", "show", id)
	contains(t, out, id, "account_frozen", "a retry", "new order number "+payout.OrderNo(id, 2))
	out, _ = d.shAs(auditor, exitOK, "payouts", "retry", id, "--dry-run")
	contains(t, out, "would_retry", payout.OrderNo(id, 2)+" (new)")
	for _, args := range []string{"retry " + id + " --reason r", "cancel " + id + " --reason r", "ask " + id + " --reason r", "mark-paid " +
		id + " --reason r --evidence e",
		"retry --packet " + id[1:21] + " --reason r", "retry --packet " + id[1:21] + " --reason r --yes"} {
		if _, errs := d.shAs(auditor, exitRefused, append([]string{"payouts"}, strings.Fields(args)...)...); !strings.Contains(errs,
			"forbidden") {
			t.Errorf("%s: %s", args, errs)
		}
	}
	if d.status(id) != payout.StatusFailed || d.auditCount(id) != 0 {
		t.Error("an auditor has decided")
	}
}

// testHostile: what people call themselves and write does not reach a terminal.
func (d *staffStack) testHostile(t *testing.T) {
	user := "ev\u202eil\u200b~frozen"
	_, paid := d.grabbedPacket(100, user)
	id := paid[user]
	out, _ := d.sh(exitWaiting, "payouts", "cancel", id, "--reason", "two\nlines\u2028and \u2066more")
	out2, _ := d.sh(exitOK, "approvals", "list", "--status", "waiting", "--all")
	out3, _ := d.sh(exitOK, "payouts", "show", id)
	out4, _ := d.sh(exitOK, "payouts", "show", id, "--json")
	contains(t, out, `ev\u202eil\u200b~frozen`)
	contains(t, out2, `two\nlines\u2028and \u2066more`)
	contains(t, out3, `ev\u202eil\u200b~frozen`)
	for _, text := range []string{out, out2, out3, out4} {
		harmless(t, text)
	}
	var p wire.Payout
	if err := json.Unmarshal([]byte(out4), &p); err != nil || p.UserID != user {
		t.Errorf("%v: for programs it is as it was: %q", err, p.UserID)
	}
}

// harmless fails when a terminal would do anything but show the text.
func harmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if visible.Hidden(r) && r != '\n' {
			t.Errorf("U+%04X reaches the terminal:\n%q", r, text)
			return
		}
	}
}
