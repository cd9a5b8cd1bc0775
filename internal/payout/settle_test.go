package payout

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the generated files of this package")

// pasts are the histories a payment can have. Each is made by the machine itself, not by hand.
var pasts = []struct {
	name string
	live func(s *script)
}{
	{"sent", func(s *script) { s.sends("") }},
	{"sent, no answer", func(s *script) { s.sends(ObsNoAnswer) }},
	{"sent again after a lost one", func(s *script) {
		s.sends(ObsNoAnswer).after(time.Second).queries(1, ObsNeverReceived).after(time.Second).sends("")
	}},
	{"accepted", func(s *script) { s.sends(ObsPending) }},
	{"refused", func(s *script) { s.sends(ObsDeclined) }},
	{"declined once, asked", func(s *script) { s.sends(ObsNoAnswer).queries(1, ObsDeclined) }},
	{"disputed", func(s *script) { s.sends(ObsDeclined).queries(1, ObsSucceeded) }},
	{"waits for the recipient", func(s *script) { s.sends(ObsNeedsRecipient) }},
	{"paid", func(s *script) { s.sends(ObsSucceeded) }},
	{"failed", func(s *script) { s.sends(ObsDeclined).queries(1, ObsDeclined) }},
	{"failed, never received", func(s *script) { s.sends(ObsDeclined).queries(1, ObsNeverReceived) }},
	{"returned", func(s *script) { s.sends(ObsSucceeded).queries(1, ObsReturned) }},
	{"decided, failed", func(s *script) { s.sends(ObsDeclined).queries(1, ObsDeclined).retries() }},
	{"decided, never received", func(s *script) { s.sends(ObsDeclined).queries(1, ObsNeverReceived).retries() }},
	{"decided, returned", func(s *script) { s.sends(ObsSucceeded).queries(1, ObsReturned).retries() }},
	{"cancelled", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined)
		s.p.Status, s.p.Failure = StatusCancelled, nil
	}},
	{"paid outside", func(s *script) { s.sends(ObsNoAnswer); s.p.Status = StatusPaidOutside }},
	{"superseded", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined).sends("")
	}},
	{"superseded, the later number is to be sent again", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined).sends(ObsRetryAfter)
	}},
	{"superseded, returned", func(s *script) {
		s.sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, ObsReturned).sends(ObsRetryAfter)
	}},
	{"returned, cancelled", func(s *script) { s.sends(ObsSucceeded).queries(1, ObsReturned).cancels(ObsReturned) }},
	{"cancelled, under way again", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).cancels(ObsDeclined).queries(1, ObsPending)
	}},
	{"in progress past memory, retried by two", func(s *script) { inProgress(s).decides(DecisionRetry, true) }},
	{"in progress past memory, a new number sent", func(s *script) {
		inProgress(s).decides(DecisionRetry, true).queries(1, ObsPending).sends(ObsRetryAfter)
	}},
	{"in progress past memory, marked paid", func(s *script) { inProgress(s).decides(DecisionMarkPaid, true) }},
	{"with the recipient past memory, retried by two", func(s *script) { withRecipient(s).decides(DecisionRetry, true) }},
	{"with the recipient past memory, a new number sent", func(s *script) {
		withRecipient(s).decides(DecisionRetry, true).queries(1, ObsNeedsRecipient).sends("")
	}},
	{"with the recipient past memory, marked paid", func(s *script) { withRecipient(s).decides(DecisionMarkPaid, true) }},
	{"unanswered past memory, retried by two", func(s *script) { unanswered(s).decides(DecisionRetry, true) }},
	{"unanswered past memory, a new number sent", func(s *script) {
		unanswered(s).decides(DecisionRetry, true).queries(1, ObsNoAnswer).sends(ObsPending)
	}},
	{"unanswered past memory, a new number paid", func(s *script) {
		unanswered(s).decides(DecisionRetry, true).queries(1, ObsNoAnswer).sends(ObsSucceeded)
	}},
	{"unanswered past memory, marked paid", func(s *script) { unanswered(s).decides(DecisionMarkPaid, true) }},
	{"in progress past memory, stated not to have moved", func(s *script) { inProgress(s).decides(DecisionNotMoved, true) }},
	{"unanswered, stated not to have moved", func(s *script) {
		s.sends(ObsNoAnswer).after(LeaveWithin+limits.LandingWindow).decides(DecisionNotMoved, true)
	}},
	{"in progress past memory, failed by two persons", func(s *script) {
		inProgress(s).decides(DecisionNotMoved, true).queries(1, ObsPending).carries(DecisionCarriedOut)
	}},
	{"in progress, stated to have moved", func(s *script) { s.sends(ObsPending).states(1, true) }},
	{"failed, being cancelled", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).decides(DecisionCancel, true)
	}},
	{"in progress again, being cancelled", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).decides(DecisionCancel, true).queries(1, ObsPending)
	}},
	{"in progress again past memory, being cancelled", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).decides(DecisionCancel, true).queries(1, ObsPending).after(limits.Remembers)
	}},
	{"in progress again past memory, cancelled by two", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).queries(1, ObsPending).after(limits.Remembers).decides(DecisionCancel, true)
	}},
	{"forgotten in progress, cancelled by two", func(s *script) {
		s.sends(ObsDeclined).queries(1, ObsDeclined).queries(1, ObsPending).after(limits.Remembers).queries(1, ObsNeverReceived)
		s.decides(DecisionCancel, true)
	}},
	{"refused once, unanswered past memory, retried by two", func(s *script) {
		s.sends(ObsDeclined).after(limits.Remembers).queries(1, ObsNoAnswer).decides(DecisionRetry, true)
	}},
}

// TestSettleTable settles every kind of observation, of both sources, after every history of a
// payment, and compares status, next step, transfers and breaks with testdata/settle.txt. -update
// rewrites it.
func TestSettleTable(t *testing.T) {
	var out bytes.Buffer
	reached := map[Status]bool{}
	for _, past := range pasts {
		s := story(t, KindPayout)
		past.live(s)
		reached[s.p.Status] = true
		fmt.Fprintf(&out, "%s: %s, next %s\n", past.name, s.p.Status, showStep(s.paymentStore))
		for _, source := range []Source{SourceSend, SourceQuery} {
			for _, kind := range allKinds {
				fmt.Fprintf(&out, "  %-4s %-15s %s\n", source, kind, settled(t, past.live, said(source, "", kind)))
			}
		}
	}
	for _, status := range Statuses {
		if !reached[status] && status != StatusAwaitingPayer { // of charges (charge_close_test.go)
			t.Errorf("no past leads to %s", status)
		}
	}
	compareFile(t, filepath.Join("testdata", "settle.txt"), out.Bytes())
}

// settled describes the effect of one observation about the first number.
func settled(t *testing.T, live func(*script), o Observation) string {
	s := story(t, KindPayout)
	live(s)
	s.after(time.Second)
	breaks, posted := len(s.breaks), len(s.posted)
	o.OrderNo = s.attempt(1).OrderNo
	s.must(s.settle(1, o))
	text := fmt.Sprintf("%-18s %-22s", s.p.Status, showStep(s.paymentStore))
	if f := s.p.Failure; f != nil {
		text += " " + f.Code
	}
	for _, p := range s.posted[posted:] {
		text += fmt.Sprintf(" | %s %s->%s", p.Kind, p.Debit, p.Credit)
	}
	for _, b := range s.breaks[breaks:] {
		text += " | break " + string(b.Kind)
	}
	if d := s.last.OvertakenDecision; d != "" {
		text += " | overtaken " + string(d)
	}
	if decision := s.p.OpenDecision; s.step().Do == ActionCarryOut {
		status, err := s.carryOut()
		s.must(err)
		text += fmt.Sprintf(" | %s %s", decision, status)
	}
	return strings.TrimRight(text, " ")
}

func showStep(b *paymentStore) string {
	step := b.step()
	text := string(step.Do)
	if step.OrderNo != "" {
		text += " " + step.OrderNo[IDLen:]
	}
	if wait := step.At.Sub(b.now); !step.At.IsZero() && wait > 0 {
		text += fmt.Sprintf(" in %v", wait)
	}
	return text
}

func compareFile(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Fatalf("%s line %d:\n is   %s\n want %s\nIf that is meant: go test ./payout -update", path, i+1, g, w)
		}
	}
}

// TestR4_SuccessAfterAContradiction: after a refusal and "in progress" a success counts when it is
// repeated.
func TestR4_SuccessAfterAContradiction(t *testing.T) {
	b := newPaymentStore(KindPayout)
	no, err := b.send()
	if err != nil {
		t.Fatal(err)
	}
	want := []Status{StatusUnknown, StatusUnknown, StatusUnknown, StatusUnknown, StatusPaid}
	for i, o := range []Observation{said(SourceSend, no, ObsNoAnswer), said(SourceQuery, no, ObsDeclined), said(SourceQuery, no, ObsPending),
		said(SourceQuery, no, ObsSucceeded), said(SourceQuery, no, ObsSucceeded)} {
		b.now = b.now.Add(time.Second)
		if err := b.settle(1, o); err != nil {
			t.Fatal(err)
		}
		if b.p.Status != want[i] {
			t.Errorf("after %s %d: %s, want %s", o.Kind, i, b.p.Status, want[i])
		}
	}
}
