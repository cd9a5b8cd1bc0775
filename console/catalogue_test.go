package console

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"hongbao/internal/access"
	"hongbao/internal/campaign"
	"hongbao/internal/health"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

var (
	saidByTemplate = regexp.MustCompile(`\bt "([a-z_.]+\.[a-z_]+)"`)
	saidByPart     = regexp.MustCompile(`printf "([a-z_]+)\.%s"`)
	saidAsWord     = regexp.MustCompile(`\bword "([a-z_]+)"`)
	saidByCode     = regexp.MustCompile(`"((?:after|age|fault|problem|login|filter|event|nav|health|chart|verdict|hold)\.[a-z_]+)"`)
	verbs          = regexp.MustCompile(`%[a-z]`)
)

// open lists the keys with a prefix whose suffix is an API value.
func open(word string) (keys []string) {
	add := func(values ...string) {
		for _, v := range values {
			keys = append(keys, word+"."+v)
		}
	}
	switch word {
	case "status":
		for _, s := range payout.Statuses {
			add(string(s))
		}
	case "packet":
		for _, s := range packet.Statuses {
			add(string(s))
		}
	case "campaign_is":
		for _, s := range campaign.Statuses {
			add(string(s))
		}
	case "balance_about":
		add("credit", "debit")
	case "campaign_do", "campaign_about":
		add("pause", "end")
	case "day":
		add(string(campaign.DayCreating), string(campaign.DayCreated), string(campaign.DayMissed))
	case "split":
		for _, s := range packet.SplitModes {
			add(string(s))
		}
	case "role":
		for _, r := range access.Roles {
			if r.Staff() {
				add(string(r))
			}
		}
		add(written(`Role: "([a-z]+)"`, "../internal/store/decision.go", "../internal/recovery/recovery.go")...) // only in the audit log
	case "failure", "advice":
		for _, f := range payout.FailureCodes {
			add(f.Code)
		}
	case "advice_refund":
		for _, f := range payout.FailureCodes {
			if f.RefundNextAction != "" {
				add(f.Code)
			}
		}
	case "advice_charge":
		add(slices.Collect(maps.Keys(payout.ChargeNextActions))...)
	case "nav":
		add("payouts", "refunds", "charges")
	case "col", "payment":
		add("payout", "refund", "charge")
	case "retry_number":
		add("same", "first", "failed", "returned", "forgotten")
	case "retry_not":
		add("asked", "held")
	case "outcome":
		for _, k := range []payout.ObservationKind{payout.ObsSucceeded, payout.ObsPending, payout.ObsNeedsRecipient, payout.ObsDeclined,
			payout.ObsReturned,
			payout.ObsRetryAfter, payout.ObsNeverReceived, payout.ObsNoAnswer, payout.ObsNotSent} {
			add(string(k))
		}
	case "approval":
		for _, s := range decisionStatuses[:len(decisionStatuses)-1] {
			add(s)
		}
	case "decision":
		add(string(payout.DecisionRetry), string(payout.DecisionCancel), string(payout.DecisionMarkPaid), string(payout.DecisionQuery),
			string(payout.DecisionMoved), string(payout.DecisionNotMoved), string(payout.DecisionWrittenOff), string(payout.DecisionCredit),
			string(payout.DecisionDebit))
	case "stated":
		add(append(outcomes, "written_off")...)
	case "open_title", "open_about", "open_withdraw":
		add(string(payout.DecisionCancel), string(payout.DecisionNotMoved))
	case "refund":
		add(string(wire.RefundRemainder), string(wire.RefundCancel))
	case "close":
		add(string(packet.CloseExpired), string(packet.CloseRecalled), string(packet.CloseSoldOut), string(packet.CloseUnopened))
	case "close_status":
		add("open", "provisional", "final")
	case "pending":
		for _, p := range staff.CloseBlockers {
			add(string(p))
		}
	case "account":
		for _, a := range payout.Accounts {
			add(string(a))
		}
	case "posting":
		for _, k := range payout.TransferKinds {
			add(string(k))
		}
	case "difference":
		for _, k := range staff.DifferenceKinds {
			add(string(k))
		}
	case "action":
		add(auditActions...)
	case "break_kind", "break_about", "break_do":
		for _, k := range slices.Concat(payout.MachineBreaks, payout.StatementBreaks) {
			add(string(k))
		}
	case "hold_scope":
		add(holdScopes...)
	case "proof_source":
		add(strings.Split(written(`json:"source" enum:"([a-z_,]+)"`, "../wire/proof.go")[0], ",")...)
	case "release_is":
		add(strings.Split(written(`json:"result" enum:"([a-z_,]+)"`, "../wire/hold.go")[0], ",")...)
	case "conflict_is":
		add(strings.Split(written(`json:"result" enum:"([a-z_,]+)"`, "../wire/share_conflict.go")[0], ",")...)
	case "conflict_do":
		add(conflictsPage{}.Decisions()...)
	case "hold_kind":
		add(strings.Split(written(`json:"kind" enum:"([a-z_,]+)"`, "../wire/hold.go")[0], ",")...)
	case "held":
		add("packet", "payment", "charge")
	case "hold_this", "hold_about", "hold_due":
		add("packet", "payment")
	case "releases":
		for _, code := range staff.ReleaseCodes {
			add(string(code))
		}
	case "differs":
		add(written(`(?:differ\(|\t\{)"((?:ledger|packet|share_count)[^"]*[a-z])"`, "../api/proof.go")...)
		for _, a := range []payout.Account{payout.AccountHolding, payout.AccountOwed, payout.AccountRefunding} {
			add("ledger: " + string(a) + " is below zero")
		}
	case "fault":
		add(written(`Fault[A-Z][a-z]+ += "([a-z_]+)"`, "../api/rest/decode.go")...)
	case "field":
		add("query", "reason", "evidence", "outcome", "date", "filter", "payout_ids", "status", "user_id", "sender_id", "packet_id", "order_no",
			"failure_code",
			"amount_min", "amount_max",
			"older_than_seconds", "cursor", "kind", "actor", "action", "subject", "scope", "name")
	case "kind":
		add("charge", "payout", "refund", "honour")
	case "op":
		for _, op := range payout.StatementOps {
			add(string(op))
		}
	case "bulk":
		add("would_retry", "retried", "needs_approval", "skipped")
	case "fair":
		add("open", "fair", "unfair", "large", "unread")
	case "reconcile":
		add("requested", "running", "done", "failed")
	case "source":
		add("ledger", "workflow", "provider", "finance", staff.ByReconciliation, "redis", "temporal", "notification", "outbox", "operator")
	case "waits":
		for _, s := range payout.Statuses {
			if s.Open() {
				add(string(s))
			}
		}
	case "step":
		add("scheduled", "started", "cancel_requested")
	case "run":
		add("running", "completed", "failed", "canceled", "terminated", "continued_as_new", "timed_out")
	case "outbox":
		add("begin", "ask", "decide", "finish")
	case "problem":
		add("not_retryable", "decision_pending")
	case "done":
		add("hold", "hold_packet", "hold_payment", "release", "release_hold", "release_waiting", "approve", "reject", "withdraw", "resolve",
			"reconcile", "recall", "campaign_pause", "campaign_end", "credit_waiting", "debit_waiting")
		for kind, statuses := range firstStatuses {
			for _, status := range statuses {
				add(string(kind) + "_" + string(status))
			}
		}
	case "verdict":
		add("ok", "unknown", "warning", "wrong")
	case "part":
		add("decisions", "redis", "mysql", "temporal", "workers", "provider", "reconciliation", "audit")
	case "due":
		for _, r := range staff.DecisionReasons {
			add(string(r))
		}
	case "check":
		add(healthChecks...)
	case "event":
		for _, code := range payout.EventCodes {
			add(string(code))
		}
	}
	return keys
}

// written returns the matches of a pattern in source files. Every file must have one.
func written(pattern string, files ...string) (found []string) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(all) == 0 {
			panic(file + " has nothing like " + pattern)
		}
		for _, m := range all {
			if !slices.Contains(found, m[1]) {
				found = append(found, m[1])
			}
		}
	}
	return found
}

// TestEveryAuditAction: every action written to the audit log is suggested as a filter and so has
// a label.
func TestEveryAuditAction(t *testing.T) {
	want := written(`tx\.audit\(w, "([a-z_]+)"`, "../internal/store/break.go", "../internal/store/key.go", "../internal/store/recover.go",
		"../internal/store/reconciliation.go", "../internal/store/recall.go", "../internal/store/ticket.go",
		"../internal/store/recipient.go")
	want = append(want, written(`action(?: :?=|, refused :=| := before,) "([a-z]+)"`, "../internal/store/hold.go")...)
	want = append(want, written(`"([a-z]+_campaign)"`, "../internal/store/campaign.go")...)
	want = append(want, "hold", "release", "ask_release", "withdraw_open_cancel", "cancel_carried_out", "cancel_overtaken",
		"withdraw_open_not_moved", "not_moved_carried_out", "not_moved_overtaken", string(payout.DecisionQuery))
	for _, kind := range []payout.DecisionKind{payout.DecisionRetry, payout.DecisionCancel, payout.DecisionMarkPaid, payout.DecisionMoved,
		payout.DecisionNotMoved, payout.DecisionWrittenOff, payout.DecisionCredit, payout.DecisionDebit} {
		want = append(want, string(kind), "approve_"+string(kind), "reject_"+string(kind), "withdraw_"+string(kind))
	}
	for _, action := range want {
		if !slices.Contains(auditActions, action) {
			t.Errorf("%q is written to the audit log and missing in auditActions", action)
		}
	}
	for _, action := range auditActions {
		if !slices.Contains(want, action) {
			t.Errorf("%q is never written to the audit log", action)
		}
	}
	others, err := filepath.Glob("../internal/store/*.go")
	if err != nil || len(others) == 0 {
		t.Fatal(others, err)
	}
	for _, path := range others {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`tx\.audit\(w, "([a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(want, m[1]) {
				t.Errorf("%s writes %q to the audit log, and it has no label", path, m[1])
			}
		}
	}
}

// TestWords: an API value without a label is shown unchanged.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		l                 language
		kind, value, want string
	}{{english, "role", "system", "system"}, {chinese, "role", "operator", "操作员（命令行）"}, {chinese, "role", "butler", "butler"},
		{english, "break_kind", "<b>", "<b>"}} {
		if got := word(c.l, c.kind, c.value); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.value, got, c.want)
		}
	}
	f := wire.FieldError{Field: "filter.payout_ids[3]", Code: "wrong_length", Message: "must have 1 to 500 characters"}
	if got := faultText(chinese, f); got != "所选付款长度不符（原文：must have 1 to 500 characters）" {
		t.Errorf("%q", got)
	}
	if got := faultText(english, wire.FieldError{Field: "x", Code: "y", Message: "z"}); got != "x y (z)" {
		t.Errorf("%q", got)
	}
}

// healthChecks are the names of the checks of the API's health: those that ask a part, and the list.
var healthChecks = func() []string {
	out := []string{"answers", "polling", "chain"}
	for _, c := range health.Checks() {
		out = append(out, c.Name)
	}
	return out
}()

// ownWords are checks without a "good." message.
var ownWords = []string{"answers", "polling", "last_run", "chain"}

// firstStatuses are the possible statuses of a decision right after it was made, or withdrawn.
var firstStatuses = map[payout.DecisionKind][]payout.DecisionStatus{
	payout.DecisionRetry:      {payout.DecisionCarriedOut, payout.DecisionWaiting, payout.DecisionOpen},
	payout.DecisionCancel:     {payout.DecisionWaiting, payout.DecisionWithdrawn},
	payout.DecisionMarkPaid:   {payout.DecisionWaiting},
	payout.DecisionMoved:      {payout.DecisionWaiting},
	payout.DecisionNotMoved:   {payout.DecisionWaiting, payout.DecisionWithdrawn},
	payout.DecisionWrittenOff: {payout.DecisionWaiting},
	payout.DecisionQuery:      {payout.DecisionCarriedOut, payout.DecisionOpen},
}

// TestCatalogue: every message used exists in both languages with the same arguments, and every
// message is used.
func TestCatalogue(t *testing.T) {
	used := map[string]bool{}
	use := func(keys ...string) {
		for _, key := range keys {
			used[key] = true
			if _, ok := catalogue[key]; !ok {
				t.Errorf("%q is used, but is not in the catalogue", key)
			}
		}
	}
	templates, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil || len(templates) < 10 {
		t.Fatal(templates, err)
	}
	for _, name := range templates {
		text, err := templateFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range saidByTemplate.FindAllStringSubmatch(string(text), -1) {
			use(m[1])
		}
		for _, m := range regexp.MustCompile(`"(nav\.[a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
			use(m[1])
		}
		for _, m := range slices.Concat(saidByPart.FindAllStringSubmatch(string(text), -1), saidAsWord.FindAllStringSubmatch(string(text), -1)) {
			keys := open(m[1])
			if len(keys) == 0 {
				t.Errorf("%s uses %s.…, which open does not list", name, m[1])
			}
			use(keys...)
		}
	}
	for _, word := range []string{"done", "event", "decision", "status", "packet", "campaign_is", "day", "outcome", "run", "outbox", "part",
		"check", "fault", "field", "releases"} {
		use(open(word)...)
	}
	for _, check := range healthChecks {
		if use("do." + check); !slices.Contains(ownWords, check) {
			use("good." + check)
		}
	}
	use("poor.durable", "poor.books", "chart.grabs", "chart.paid")
	sources, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		if name := file.Name(); strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "messages") && !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range saidByCode.FindAllStringSubmatch(string(text), -1) {
				use(m[1])
			}
		}
	}
	for _, older := range ages {
		use("filter.older_" + older)
	}
	for _, code := range []wire.Code{wire.CodeForbidden, wire.CodeNotFound, wire.CodePacketNotFound, wire.CodeNotOpenYet,
		wire.CodePayoutNotFound, wire.CodeRefundNotFound,
		wire.CodeInvalidRequest, codeQuery, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeDecisionChanged, wire.CodeHeld,
		wire.CodeRecoveryRequired, wire.CodeInsufficientBalance, wire.CodeReferenceUsed,
		codeReleaseChanged,
		wire.CodeCampaignNotFound, wire.CodeCampaignEnded,
		wire.CodeKeyReused, wire.CodeRequestInProgress, wire.CodeUnavailable, wire.CodeInternal} {
		use("problem." + string(code))
	}
	for key, m := range catalogue {
		if !used[key] {
			t.Errorf("%q is never used", key)
		}
		if strings.TrimSpace(m.en) == "" || strings.TrimSpace(m.zh) == "" {
			t.Errorf("%q is missing in one language", key)
		}
		if strings.ContainsFunc(m.en, isHan) {
			t.Errorf("%q is not English: %s", key, m.en)
		}
		if !strings.ContainsFunc(m.zh, isHan) && key != "event.decision" {
			t.Errorf("%q is not Chinese: %s", key, m.zh)
		}
		if en, zh := verbs.FindAllString(m.en, -1), verbs.FindAllString(m.zh, -1); !slices.Equal(en, zh) {
			t.Errorf("%q has arguments %q in English and %q in Chinese", key, en, zh)
		}
	}
}

// TestCatalogueFiles: each file has its keys once and in order, one a line, so that changes are easy to review.
func TestCatalogueFiles(t *testing.T) {
	for _, name := range []string{"catalogue/en.json", "catalogue/zh.json"} {
		raw, err := catalogueFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var sorted bytes.Buffer
		out := json.NewEncoder(&sorted)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		if err := out.Encode(texts(name)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(raw, sorted.Bytes()) {
			t.Errorf("%s is not as a sorted JSON object is written, or has a key twice", name)
		}
	}
}

// TestBreakKinds: every kind of break is suggested in the filter of the list of breaks.
func TestBreakKinds(t *testing.T) {
	var want []string
	for _, kind := range slices.Concat(payout.MachineBreaks, payout.StatementBreaks) {
		want = append(want, string(kind))
	}
	if slices.Sort(want); !slices.Equal(breakKinds, want) {
		t.Errorf("%q, want %q", breakKinds, want)
	}
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

func TestPreferredLanguage(t *testing.T) {
	for accept, want := range map[string]language{
		"": english, "zh,en": chinese, "en,zh": english, "fr": english, "zh": chinese, "zh-CN,zh;q=0.9,en;q=0.8": chinese,
		"en-US,en;q=0.9,zh;q=0.8": english, "fr, zh-TW;q=0.5, en;q=0.4": chinese, "en;q=0.1, zh;q=0.7": chinese, "zh;q=0, en;q=0.1": english,
		"zh;q=x": chinese, "ZH": chinese, ";;,,": english,
	} {
		if got := preferred(accept); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}
