package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"hongbao/api/rest"
	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// TestReconcileProvidersAudit: what operations and auditors do at their shells.
func TestReconcileProvidersAudit(t *testing.T) {
	t.Parallel()
	d := newStaffStack(t)
	for name, test := range map[string]func(*staffStack, *testing.T){"Reconcile": (*staffStack).testReconcile,
		"Providers": (*staffStack).testProviders,
		"Audit":     (*staffStack).testAudit, "Close": (*staffStack).testClose} {
		t.Run(name, func(t *testing.T) {
			own := *d
			own.t, own.keysRig.t = t, t
			test(&own, t)
		})
	}
}

// reconciled does what the worker does with a reconciliation: the statement says
// that money moved under n numbers nobody knows.
func (d *staffStack) reconciled(id string, n int) {
	d.t.Helper()
	ctx := d.t.Context()
	r, err := d.store.BeginReconciliation(ctx, id, time.Now().Add(time.Hour))
	d.check(err)
	var lines []payout.StatementLine
	for i := range n {
		lines = append(lines, payout.StatementLine{Ref: fmt.Sprint(id, i), Op: payout.OpTransfer, OrderNo: fmt.Sprint("Foreign", i), Account: "v",
			Amount: moneyOf(int64(i + 1)), At: time.Now().Add(-time.Hour)})
	}
	d.check(d.store.SaveStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, r.Day, lines))
	d.check(d.store.SealStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, r.Day, r.StartedAt))
	_, err = d.store.CompareLines(ctx, r, 0, false, 100)
	d.check(err)
	d.check(d.store.FinishReconciliation(ctx, r.ID, nil))
}

func (d *staffStack) testReconcile(t *testing.T) {
	out, _ := d.sh(exitOK, "reconcile", "start", "--reason", "they announced corrections", "--json")
	var asked wire.Reconciliation
	if err := json.Unmarshal([]byte(out), &asked); err != nil || asked.Status != "requested" || asked.RequestedBy != "li-na" {
		t.Fatalf("%v: %s", err, out)
	}
	_, errs := d.sh(exitFailed, "reconcile", "start", "--reason", "r", "--wait", "--timeout", "4s")
	contains(t, errs, "reconciliation "+asked.ID+" is still requested", "hongbao reconcile show "+asked.ID)
	// It ends once a client waits for it: a start after its end would be another one.
	var waits sync.Once
	waited, ended := make(chan struct{}), make(chan struct{})
	_, address := d.newFaultyProxy(func(_ int, r *http.Request) (bool, int) {
		if r.Method == http.MethodGet {
			waits.Do(func() { close(waited) })
		}
		return false, 0
	})
	go func() {
		defer close(ended)
		<-waited
		d.reconciled(asked.ID, 2)
	}()
	out, _ = d.shAs(d.as("HONGBAO_STAFF_URL", address), exitFailed, "reconcile", "start", "--reason", "r", "--wait", "--timeout", "5m")
	<-ended
	contains(t, out, asked.ID, "done", "foreign_order", "Foreign0", "Foreign1", "they announced corrections", "http://127.0.0.1:18233/")
	out, _ = d.sh(exitOK, "reconcile", "show", asked.ID)
	contains(t, out, "foreign_order", "transfer")
	out, _ = d.sh(exitOK, "reconcile", "list", "--status", "done", "--provider", "sandbox", "--date", string(asked.Date))
	contains(t, out, asked.ID, "li-na")
	out, _ = d.sh(exitOK, "reconcile", "breaks", "--reconciliation", asked.ID, "--open", "--kind", "foreign_order", "--json")
	ids, _ := d.ids(out)
	if len(ids) != 2 {
		t.Fatalf("%s", out)
	}
	out, _ = d.sh(exitOK, "reconcile", "resolve", ids[0], "--reason", "test order of theirs")
	contains(t, out, "Break "+ids[0]+" (foreign_order) is resolved", "li-na: test order of theirs")
	out, _ = d.sh(exitOK, "reconcile", "breaks", "--open", "--reconciliation", asked.ID, "--json")
	if left, _ := d.ids(out); len(left) != 1 || left[0] != ids[1] {
		t.Errorf("%s", out)
	}
	out, _ = d.sh(exitOK, "reconcile", "breaks")
	contains(t, out, "test order of theirs")
	d.testUnread(string(asked.Date))
	for args, says := range map[string]string{
		"start --date 2026-02-30 --reason r": "write YYYY-MM-DD", "start --date 2099-01-01 --reason r": "invalid_request",
		"start": "--reason is required", "list --date x": "write YYYY-MM-DD", "list --status x": "none of requested",
		"breaks --packet x": "not the id of a packet", "breaks --older-than 1ms": "whole seconds", "show": "takes one argument",
		"resolve b1": "--reason is required", "resolve b1 --outcome moved --reason r": "evidence", "resolve b1 --outcome x --reason r": "outcome",
		"list --limit 0": "write a number from 1 to 200",
	} {
		if _, errs := d.sh(exitUsage, append([]string{"reconcile"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
	_, errs = d.sh(exitFailed, "reconcile", "show", "s"+noApproval[1:])
	contains(t, errs, "not_found")
	_, errs = d.sh(exitFailed, "reconcile", "resolve", "b999999", "--reason", "r")
	contains(t, errs, "not_found")
	_, errs = d.sh(exitRefused, "reconcile", "resolve", ids[1], "--outcome", "moved", "--evidence", "letter", "--reason", "r")
	contains(t, errs, "not_retryable", "not about an order number of a payment")
}

// testUnread: the list says why a statement could not be read, and the view all of it.
func (d *staffStack) testUnread(date string) {
	out, _ := d.sh(exitOK, "reconcile", "start", "--reason", "once more", "--date", date, "--json")
	var asked wire.Reconciliation
	d.check(json.Unmarshal([]byte(out), &asked))
	_, err := d.store.BeginReconciliation(d.t.Context(), asked.ID, time.Now().Add(time.Hour))
	d.check(err)
	const why = "The statement could not be read: line 4711 has 5 columns"
	d.check(d.store.FailReconciliation(d.t.Context(), asked.ID, why+strings.Repeat(" and more", 18)+" and the last of it"))
	out, _ = d.sh(exitOK, "reconcile", "list", "--status", "failed")
	contains(d.t, out, asked.ID, why, "…")
	out, _ = d.sh(exitOK, "reconcile", "show", asked.ID)
	contains(d.t, out, why, "and the last of it")
	out, _ = d.sh(exitOK, "reconcile", "start", "--help")
	contains(d.t, out, "give up after this duration, without --wait after 1m; 0 = never (default 2h0m0s)")
}

func (d *staffStack) testProviders(t *testing.T) {
	out, _ := d.sh(exitOK, "providers", "list")
	contains(t, out, "sandbox", "no limit")
	out, _ = d.sh(exitOK, "providers", "hold", "sandbox", "--reason", "statement does not tie")
	contains(t, out, "sandbox is on hold since", "statement does not tie (op)")
	out, _ = d.sh(exitOK, "providers", "list", "--json")
	contains(t, out, `"held":true`)
	out, _ = d.sh(exitOK, "providers", "list")
	contains(t, out, "HELD", "op", "statement does not tie")
	out, _ = d.sh(exitOK, "providers", "release", "sandbox", "--reason", "solved", "--json")
	contains(t, out, `"held":false`)
	out, _ = d.shAs(d.as("HONGBAO_OPS_KEY", d.finance), exitOK, "providers", "release", "sandbox", "--reason", "finance may, too")
	contains(t, out, "sandbox is not on hold.")
	_, errs := d.shAs(d.as("HONGBAO_OPS_KEY", d.auditor), exitRefused, "providers", "hold", "sandbox", "--reason", "r")
	contains(t, errs, "forbidden")
	_, errs = d.sh(exitFailed, "providers", "hold", "bank", "--reason", "r")
	contains(t, errs, "not_found")
	_, errs = d.sh(exitUsage, "providers", "hold", "sandbox")
	contains(t, errs, "--reason is required")
}

func (d *staffStack) testAudit(t *testing.T) {
	before := d.auditCount("provider/sandbox")
	d.sh(exitOK, "providers", "hold", "sandbox", "--reason", "for the audit")
	d.sh(exitOK, "providers", "release", "sandbox", "--reason", "for the audit")
	if n := d.auditCount("provider/sandbox"); n != before+2 {
		t.Errorf("%d entries after %d", n, before)
	}
	out, _ := d.sh(exitOK, "audit", "list", "--actor", "op", "--action", "release", "--from", "2026-01-01T00:00:00Z", "--limit", "1")
	contains(t, out, "op", "ops", "sandbox")
	out, _ = d.sh(exitOK, "audit", "list", "--to", "2026-01-01T00:00:00Z", "--json")
	if ids, _ := d.ids(out); len(ids) != 0 {
		t.Errorf("%s", out)
	}
	out, _ = d.sh(exitOK, "audit", "verify", "--api")
	contains(t, out, "The audit is intact.")
	direct, _ := d.sh(exitOK, "audit", "verify", "--json")
	over, _ := d.sh(exitOK, "audit", "verify", "--api", "--json")
	if direct != over {
		t.Errorf("%s is not %s", over, direct)
	}
	_, errs := d.shAs(d.as("HONGBAO_AUDITOR_KEY", d.finance), exitRefused, "audit", "list")
	contains(t, errs, "forbidden")
	for args, says := range map[string]string{"list --from noon": "RFC 3339", "list --to noon": "RFC 3339",
		"list --limit 0": "write a number from 1"} {
		if _, errs := d.sh(exitUsage, append([]string{"audit"}, strings.Fields(args)...)...); !strings.Contains(errs, says) {
			t.Errorf("%s: %s", args, errs)
		}
	}
}

// TestExitCodes: every answer the API may give has the exit code of its sort, and
// every exit code is documented.
func TestExitCodes(t *testing.T) {
	refused := "funding_declined forbidden not_eligible not_open_yet sold_out expired not_retryable recipient_fixed decision_pending " +
		"decision_changed held recovery_required own_key " +
		"last_admin_key key_ended campaign_ended too_many_campaigns too_many_unpaid insufficient_balance reference_used"
	usage := "invalid_request malformed_json malformed_request idempotency_key_required idempotency_key_reused body_too_large " +
		"headers_too_large recipient_incomplete"
	document := rest.ErrorDocument()
	known := regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(document, -1)
	if len(known) < 25 {
		t.Fatalf("%d codes", len(known))
	}
	for _, m := range known {
		want := exitFailed
		switch {
		case strings.Contains(" "+refused+" ", " "+m[1]+" "):
			want = exitRefused
		case strings.Contains(" "+usage+" ", " "+m[1]+" "):
			want = exitUsage
		}
		if got := exitOf(fmt.Errorf("x: %w", &client.Problem{Problem: wire.Problem{Code: wire.Code(m[1])}})); got != want {
			t.Errorf("%s: exit code %d, want %d", m[1], got, want)
		}
	}
	for err, want := range map[error]int{
		nil: exitOK, io.EOF: exitFailed, &usageError{io.EOF}: exitUsage, errSharesLeft: exitLeft, errNeedsApproval: exitWaiting,
		errSomeRefused: exitRefused, errReported: exitFailed, context.DeadlineExceeded: exitFailed,
	} {
		if got := exitOf(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
	var out bytes.Buffer
	if code := execute(t.Context(), []string{"help", "exit-codes"}, nil, &out, io.Discard); code != exitOK {
		t.Fatal(code)
	}
	for i, e := range exitCodes {
		if e.code != i {
			t.Errorf("%d stands at %d", e.code, i)
		}
		contains(t, out.String(), fmt.Sprintf("\n  %d  ", e.code))
	}
	for word := range strings.FieldsSeq(refused + " " + usage) {
		contains(t, out.String(), word)
	}
}

// evil is text that does harm in a terminal, in every text of every answer.
const hostileText = "x\x1b[2J\x1b]0;t\a\u009b31m\u202e\r\nforged"

// hostileAPI answers everything with texts that do harm.
type hostileAPI struct{ refuse bool }

func (e hostileAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	when := "2026-02-17T20:00:00.000Z"
	money := map[string]any{"id": hostileText, "packet_id": hostileText, "user_id": hostileText, "amount": 1, "status": "failed",
		"order_no": hostileText,
		"provider": hostileText, "provider_ref": hostileText,
		"failure": map[string]any{"code": hostileText, "message": hostileText, "next_action": hostileText}, "created_at": when,
		"updated_at": when,
		"workflow":   map[string]any{"id": hostileText, "url": "http://" + hostileText},
		"attempts":   []any{map[string]any{"no": 1, "order_no": hostileText, "outcome": hostileText, "code": hostileText}},
		"timeline":   []any{map[string]any{"at": when, "source": hostileText, "what": hostileText}}, "kind": hostileText,
		"payout_id": hostileText}
	decision := map[string]any{"id": hostileText, "kind": hostileText, "reason": hostileText, "by": hostileText, "status": hostileText}
	one := map[string]any{"decision": decision, "payout": money, "refund": nil, "approval": map[string]any{"id": hostileText,
		"expires_at": when},
		"evidence": hostileText, "answered_by": hostileText, "answer_reason": hostileText, "expires_at": when,
		"name": hostileText, "held": true, "hold": map[string]any{"by": hostileText, "role": hostileText, "reason": hostileText, "since": when},
		"date": hostileText, "requested_by": hostileText, "reason": hostileText, "error": hostileText, "ended_at": when,
		"amounts": []any{map[string]any{"op": hostileText}},
		"detail":  hostileText, "resolved": map[string]any{"at": when, "by": hostileText, "reason": hostileText}, "actor": hostileText,
		"role": hostileText, "action": hostileText,
		"subject": hostileText, "owner": hostileText, "replaced_by": hostileText, "valid": true, "head": hostileText}
	for name, value := range money {
		one[name] = value
	}
	one["items"], one["next_cursor"] = []any{clone(one)}, nil
	if strings.Contains(r.URL.Path, "/providers") || strings.Contains(r.URL.Path, "reconcil") {
		one["status"] = "done"
	}
	if strings.HasSuffix(r.URL.Path, "payouts/retry") {
		one["items"] = []any{map[string]any{"payout_id": hostileText, "result": hostileText, "code": hostileText, "order_no": hostileText}}
	}
	if r.Header.Get("X-Limit") == "" && r.URL.Query().Get("limit") == "50" {
		one["next_cursor"] = hostileText
	}
	if e.refuse {
		w.WriteHeader(http.StatusConflict)
		one = map[string]any{"code": "not_retryable" + hostileText, "detail": hostileText, "request_id": hostileText,
			"errors": []any{map[string]any{"field": hostileText, "message": hostileText}}}
	}
	_ = json.NewEncoder(w).Encode(one)
}

func clone(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// TestStaffHostile: whatever stands in an answer, and whatever a refusal says, no
// command of the staff hands it to the terminal.
func TestStaffHostile(t *testing.T) {
	t.Parallel()
	const id = "p3q5k9v0c1m7e2u8h4r6t0003"
	lines := []string{"payouts list", "payouts show " + id, "payouts retry " + id + " --reason r", "payouts retry " + id + " --dry-run",
		"payouts retry --user u", "payouts retry --user u --reason r --yes",
		"payouts cancel " + id + " --reason r", "payouts ask " + id + " --reason r", "payouts mark-paid " + id + " --reason r --evidence e",
		"refunds list", "refunds show r" + id[1:], "refunds retry r" + id[1:] + " --reason r", "refunds retry r" + id[1:] + " --dry-run",
		"refunds retry --user u --reason r --yes", "refunds mark-paid r" + id[1:] + " --reason r --evidence e", "approvals list",
		"approvals approve " + noApproval + " --reason r", "approvals reject " + noApproval + " --reason r", "reconcile list",
		"reconcile start --reason r",
		"reconcile start --reason r --wait", "reconcile show s" + noApproval[1:], "reconcile breaks", "reconcile resolve b1 --reason r",
		"providers list",
		"providers hold sandbox --reason r", "providers release sandbox --reason r", "holds list", "holds show h1", "holds place all --reason r",
		"holds release h1 --reason r", "audit list", "audit verify --api", "keys list"}
	for _, refuse := range []bool{false, true} {
		address := newTestServer(t, hostileAPI{refuse})
		env := []string{"HONGBAO_STAFF_URL=" + address, "HONGBAO_FINANCE_KEY=k", "HONGBAO_OPS_KEY=k", "HONGBAO_AUDITOR_KEY=k",
			"HONGBAO_ADMIN_KEY=k"}
		for _, line := range lines {
			for _, more := range []string{"", " --json"} {
				var out, errs bytes.Buffer
				code := execute(t.Context(), strings.Fields(line+more), env, &out, &errs)
				if code == exitUsage || refuse && code == exitOK && line != "payouts retry --user u" {
					t.Errorf("%s: exit code %d: %s", line, code, &errs)
				}
				if out.Len()+errs.Len() == 0 || !strings.Contains(out.String()+errs.String(), "forged") {
					t.Errorf("%s%s says nothing of it: %q %q", line, more, &out, &errs)
				}
				for text := range strings.Lines(out.String() + errs.String()) {
					if strings.HasPrefix(text, "forged") {
						t.Errorf("%s%s: a line is forged: %q", line, more, text)
					}
				}
				harmless(t, out.String()+errs.String())
			}
		}
	}
}

// TestStaffCompletion: ids, statuses and reasons are offered.
func TestStaffCompletion(t *testing.T) {
	const id = "p3q5k9v0c1m7e2u8h4r6t0003"
	payouts := `200 {"items":[{"id":"` + id + `","amount":250,"user_id":"b\u001bob","failure":{"code":"account_frozen"}}],"next_cursor":null}`
	answers := map[string][]string{
		"GET /v1/staff/payouts?limit=20&status=failed": {payouts},
		"GET /v1/staff/refunds?limit=20&status=failed": {payouts},
		"GET /v1/staff/approvals?by_others=true&limit=20&status=waiting": {
			`200 {"items":[{"id":"a1","decision":{"kind":"cancel","by":"li-na","reason":"gone"}}],"next_cursor":null}`},
		"GET /v1/staff/providers": {`200 {"items":[{"name":"sandbox"}],"next_cursor":null}`},
		"GET /v1/staff/packets?limit=20": {
			`200 {"items":[{"id":"97h0uojo11oljc4bchnk","status":"open","sender_id":"alice","total_amount":1000,"share_count":4,"claimed_count":1}],"next_cursor":null}`},
	}
	for args, want := range map[string]string{
		"payouts list --status ":        "pending\nsending\n",
		"payouts list --failure-code ":  "declined\tThe provider refused the order.\n",
		"payouts list --user ":          ":36\n",
		"payouts retry --failure-code ": "declined\t",
		"payouts show ":                 id + "\t¥2.50 to b\\x1bob, account_frozen\n",
		"payouts cancel ":               id + "\t",
		"payouts retry ":                id + "\t",
		"payouts show " + id + " ":      ":4\n",
		"payouts ":                      "ask\t",
		"refunds retry ":                id + "\t",
		"approvals approve ":            "a1\tcancel, requested by li-na: gone\n",
		"approvals list --status ":      "waiting\nopen\n",
		"reconcile breaks --kind ":      "mismatch\ncontradiction\n",
		"reconcile list --status ":      "requested\nrunning\n",
		"providers hold ":               "sandbox\n",
		"packets recall ":               "97h0uojo11oljc4bchnk\topen, ¥10.00 of alice, 1 of 4 claimed\n",
	} {
		address := newTestServer(t, &counter{answers: answers})
		var out bytes.Buffer
		env := []string{"HONGBAO_STAFF_URL=" + address, "HONGBAO_FINANCE_KEY=s3cret", "HONGBAO_OPS_KEY=s3cret"}
		if code := execute(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...), env, &out, io.Discard); code != exitOK ||
			!strings.HasPrefix(out.String(), want) {
			t.Errorf("%q: exit code %d, %q", args, code, &out)
		}
	}
}

// commandLines finds the commands in documents: lines of their blocks
// and code in their text that begin with hongbao, continued lines joined.
func commandLines(text string) (lines []string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, line := range regexp.MustCompile("(?m)(?:^[ \t]*|`|bin/)hongbao ([^`\n]+)").FindAllStringSubmatch(text, -1) {
		lines = append(lines, line[1])
	}
	return lines
}

// lint says what is wrong with a command line: a command that is not there, a flag
// it does not have.
func lint(root *cobra.Command, line string) string {
	line, _, _ = strings.Cut(line, "#")
	line, _, _ = strings.Cut(line, " | ")
	words := strings.Fields(regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(line, "x"))
	if len(words) == 0 {
		return ""
	}
	cmd := root
	for i, word := range words {
		if strings.HasPrefix(word, "--") {
			name, _, _ := strings.Cut(strings.Trim(word[2:], ",.;:)"), "=")
			if cmd.Flags().Lookup(name) == nil && name != "help" {
				return cmd.CommandPath() + " has no flag --" + name
			}
			continue
		}
		if i > 0 && !cmd.HasSubCommands() {
			continue
		}
		for verb := range strings.SplitSeq(strings.Trim(word, ",.;:)"), "|") { // a|b stands for both
			next, _, err := cmd.Find([]string{verb})
			if err != nil || next == cmd {
				return "there is no command " + cmd.CommandPath() + " " + verb
			}
			if !strings.Contains(word, "|") {
				cmd = next
			}
		}
		if strings.Contains(word, "|") {
			return ""
		}
	}
	return ""
}

// TestDocumentsCommands: commands and flags that README, docs and the help itself
// show are there.
func TestDocumentsCommands(t *testing.T) {
	root := newRoot(nil)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "../../README.md", "../../README.zh-CN.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		_, long, _ := strings.Cut(cmd.Long, "hongbao is ")
		texts["help of "+cmd.CommandPath()] = cmp.Or(long, cmd.Long) + "\n" + cmd.Example + "\n"
		for _, sub := range cmd.Commands() {
			if sub.Name() == "completion" {
				continue // not our text
			}
			walk(sub)
		}
	}
	walk(root)
	found := 0
	for name, text := range texts {
		for _, line := range commandLines(text) {
			found++
			if fault := lint(root, line); fault != "" {
				t.Errorf("%s: hongbao %s: %s", name, line, fault)
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d command lines found", found)
	}
	for line, want := range map[string]string{
		"payouts list --status failed": "", "payouts lst": "no command", "payouts list --reasn x": "no flag",
		"keys create|list|nothing": "no command", "nonsense": "no command", "payouts retry x --reason '--no flag'": "", "payouts|refunds": "",
	} {
		if got := lint(root, line); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestReadmeNamesCommands: both READMEs name every command that is for people.
func TestReadmeNamesCommands(t *testing.T) {
	for _, name := range []string{"../../README.md", "../../README.zh-CN.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(text, []byte("`hongbao api|"))
		if at < 0 {
			t.Fatalf("%s names no commands", name)
		}
		paragraph, _, _ := strings.Cut(string(text[at:]), "\n\n")
		for _, cmd := range newRoot(nil).Commands() {
			if own := []string{"healthcheck", "version", "help", "exit-codes"}; slices.Contains(own, cmd.Name()) {
				continue // of images and scripts
			}
			if !regexp.MustCompile("[`|]"+cmd.Name()+"[`|]").MatchString(paragraph) && !strings.Contains(paragraph, "hongbao "+cmd.Name()+"|") {
				t.Errorf("%s does not name %s", name, cmd.Name())
			}
		}
	}
}

// TestStaffFlags: every command of the staff has the same flags, and those that
// change something need a reason and can be repeated.
func TestStaffFlags(t *testing.T) {
	reading := []string{"list", "show", "breaks", "verify"}
	seen := 0
	for _, name := range []string{"payouts", "refunds", "approvals", "reconcile", "providers", "audit"} {
		group, _, err := newRoot(nil).Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		for _, cmd := range group.Commands() {
			seen++
			flags := []string{"json", "timeout", "staff-url"}
			if !slices.Contains(reading, cmd.Name()) {
				flags = append(flags, "reason", "idempotency-key")
			}
			if cmd.Name() == "list" && name != "providers" || cmd.Name() == "breaks" {
				flags = append(flags, "limit", "cursor", "all")
			}
			for _, flag := range flags {
				if cmd.Flags().Lookup(flag) == nil {
					t.Errorf("%s has no --%s", cmd.CommandPath(), flag)
				}
			}
			if slices.Contains(reading, cmd.Name()) && cmd.Flags().Lookup("reason") != nil {
				t.Errorf("%s reads and wants a reason", cmd.CommandPath())
			}
			if cmd.Short == "" {
				t.Errorf("%s does not say what it does", cmd.CommandPath())
			}
		}
	}
	if seen != 27 {
		t.Errorf("%d commands", seen)
	}
}

// TestWouldText: what a retry would do, and the reason of its order number, for each case.
func TestWouldText(t *testing.T) {
	first, second, code := "h3q5k9v0c1m7e2u8h4r6t000301", "p3q5k9v0c1m7e2u8h4r6t000302", "decision_pending"
	for _, tc := range []struct {
		status wire.PayoutStatus
		would  wire.RetryPreview
		want   string
	}{
		{wire.PayoutPaid, wire.RetryPreview{Code: &code}, ""},
		{wire.PayoutFailed, wire.RetryPreview{Code: &code}, "is refused: decision_pending"},
		{wire.PayoutFailed, wire.RetryPreview{Possible: true, OrderNo: &second, SameOrderNo: true},
			"sends the same order number " + second + " again: the provider never received it"},
		{wire.PayoutFailed, wire.RetryPreview{Possible: true, OrderNo: &second, SecondPerson: true},
			"queries every earlier order number, then sends the new order number " + second + ": the last one failed for good; a second person " +
				"has " +
				"to approve first"},
		{wire.PayoutReturned, wire.RetryPreview{Possible: true, OrderNo: &second},
			"queries every earlier order number, then sends the new order number " + second + ": the last one was returned"},
		{wire.PayoutUnknown, wire.RetryPreview{Possible: true, OrderNo: &second, SecondPerson: true},
			"queries every earlier order number, then sends the new order number " + second + ": the provider's memory of the last one has ended; " +
				"a second person has to approve first"},
		{wire.PayoutFailed, wire.RetryPreview{Possible: true, OrderNo: &first, SecondPerson: true},
			"queries every earlier order number, then sends the new order number " + first + ": nothing was sent before; a second person has to " +
				"approve first"},
	} {
		if got := retryText(tc.status, tc.would); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
