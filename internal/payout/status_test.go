package payout

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// documented is the list of rule R4, with the documented additions.
var documented = map[Status][]Status{
	StatusPending: {StatusSending},
	StatusSending: {StatusPaid, StatusFailed, StatusUnknown, StatusAwaitingRecipient, StatusAwaitingPayer, StatusReturned},
	StatusUnknown: {StatusPaid, StatusFailed, StatusAwaitingRecipient, StatusAwaitingPayer, StatusReturned,
		StatusSending, StatusPaidOutside},
	StatusAwaitingRecipient: {StatusPaid, StatusFailed, StatusReturned},
	StatusAwaitingPayer:     {StatusPaid, StatusFailed, StatusUnknown},
	StatusPaid:              {StatusReturned},
	StatusFailed:            {StatusPending, StatusPaid, StatusCancelled, StatusPaidOutside},
	StatusReturned:          {StatusPending, StatusCancelled, StatusPaidOutside},
}

// added: rule R5 queries every earlier number before a new one. One that succeeded settles the
// payment, one that is not final makes it unknown again. An order that waits for its recipient is
// also queried when the provider knows less of it than before.
var added = map[Status][]Status{
	// Failed: an unsent charge whose packet has expired, or an unsent refund beyond the provider's limits.
	// Cancelled: a refund that its sender must not get. Pending and paid_outside from an open status: by two
	// persons, after the provider's memory.
	StatusPending:           {StatusUnknown, StatusPaid, StatusFailed, StatusCancelled},
	StatusSending:           {StatusPending, StatusPaidOutside, StatusCancelled},
	StatusAwaitingRecipient: {StatusUnknown, StatusPending, StatusPaidOutside, StatusCancelled},
	StatusUnknown:           {StatusPending, StatusCancelled},
}

func TestR4_TransitionsAsDesigned(t *testing.T) {
	for _, from := range Statuses {
		want := slices.Sorted(slices.Values(append(slices.Clone(documented[from]), added[from]...)))
		got := slices.Sorted(slices.Values(Transitions[from]))
		if !slices.Equal(got, want) {
			t.Errorf("from %s: %v, designed %v", from, got, want)
		}
	}
	for from := range Transitions {
		if !from.Valid() {
			t.Errorf("%q is not a status", from)
		}
	}
}

func TestR4_CanMoveAgreesWithTheTable(t *testing.T) {
	for _, from := range Statuses {
		for _, to := range Statuses {
			want := slices.Contains(Transitions[from], to)
			if CanMove(from, to) != want {
				t.Errorf("CanMove(%s, %s) = %t", from, to, !want)
			}
			p := Payment{ID: "p", Kind: KindCharge, Status: from}
			if from.Open() && to == StatusCancelled { // of refunds alone
				if err := p.Move(to); !errors.Is(err, ErrTransition) {
					t.Errorf("a charge: %s to %s: %v", from, to, err)
				}
				p.Kind = KindRefund
			}
			err := p.Move(to)
			switch {
			case from == to || want:
				if err != nil || p.Status != to {
					t.Errorf("%s to %s: now %s, %v", from, to, p.Status, err)
				}
			case !errors.Is(err, ErrTransition) || p.Status != from:
				t.Errorf("%s to %s: now %s, %v", from, to, p.Status, err)
			}
		}
	}
	if CanMove("", StatusPaid) || CanMove(StatusPending, "") || Status("").Valid() || Status("Paid").Valid() {
		t.Error("a word that is no status moves")
	}
}

// TestStatusTableIsConnected follows every path from pending: every status is reachable, only final
// statuses are dead ends, and every open status can still end.
func TestStatusTableIsConnected(t *testing.T) {
	reach := map[Status]map[Status]bool{}
	for _, from := range Statuses {
		seen := map[Status]bool{}
		for queue := []Status{from}; len(queue) > 0; queue = queue[1:] {
			for _, to := range Transitions[queue[0]] {
				if !to.Valid() {
					t.Fatalf("%s leads to %q, which is no status", queue[0], to)
				}
				if !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
		reach[from] = seen
	}
	for _, s := range Statuses {
		if s != StatusPending && !reach[StatusPending][s] {
			t.Errorf("no path from pending to %s", s)
		}
		final := s == StatusCancelled || s == StatusPaidOutside
		if dead := len(Transitions[s]) == 0; dead != final {
			t.Errorf("%s: dead end %t, want %t", s, dead, final)
		}
		if s.Open() && (!reach[s][StatusPaid] || !reach[s][StatusFailed]) {
			t.Errorf("%s is open and cannot end paid or failed", s)
		}
		if s.Open() && final {
			t.Errorf("%s is both open and final", s)
		}
	}
	for _, final := range []Status{StatusPaid, StatusCancelled, StatusPaidOutside} {
		for to := range reach[final] {
			if final == StatusPaid && (to == StatusReturned || reach[StatusReturned][to]) {
				continue // only by a return
			}
			t.Errorf("%s leads to %s", final, to)
		}
	}
	// Money leaves the table's paid only by a return.
	if !slices.Equal(Transitions[StatusPaid], []Status{StatusReturned}) {
		t.Errorf("from paid: %v", Transitions[StatusPaid])
	}
}

func TestFailureCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range FailureCodes {
		if seen[c.Code] {
			t.Errorf("%s is listed twice", c.Code)
		}
		seen[c.Code] = true
		if c.Code == "" || len(c.Code) > 64 || c.Message == "" || c.NextAction == "" || len(c.Message) > 255 {
			t.Errorf("%+v: code, message and next action have to be there and fit their columns", c)
		}
		f := NewFailure(c.Code, "")
		if *f != (Failure{c.Code, c.Message, c.Retryable, c.NextAction}) {
			t.Errorf("%s: %+v", c.Code, f)
		}
		// A refund goes to the sender, and cannot be cancelled (see CheckDecision).
		if f := FailureOf(KindRefund, c.Code, ""); c.Code != FailureShareConflict &&
			(strings.Contains(f.NextAction, "cancel") || strings.Contains(f.NextAction, "recipient")) {
			t.Errorf("a refund: %+v", f)
		}
		if f := NewFailure(c.Code, "theirs"); f.Message != "theirs" || f.NextAction != c.NextAction {
			t.Errorf("%s: the provider's message is not shown: %+v", c.Code, f)
		}
	}
	// A sender who got the charge returned must not be paid again.
	for _, code := range []string{"never_received", "declined", "brand_new"} {
		if f := FailureOf(KindRefund, code, ""); !strings.Contains(f.NextAction, "charge was returned") ||
			strings.Contains(FailureOf(KindPayout, code, "").NextAction, "charge") {
			t.Errorf("a refund: %+v", f)
		}
	}
	// A charge is not retried.
	for _, code := range []string{"declined", "declined_by_rule", "never_received", "returned", FailureNotMoved, FailureFundingExpired, "brand_new"} {
		do := strings.ToLower(FailureOf(KindCharge, code, "").NextAction)
		if strings.Contains(do, "retry") || strings.Contains(do, "cancel") {
			t.Errorf("a charge, %s: %s", code, do)
		}
	}
	for code := range ChargeNextActions {
		if !seen[code] {
			t.Errorf("no failure has the code %s", code)
		}
	}
	if FailureCodes[0].Code != "declined" {
		t.Error("the first entry is what unknown codes are advised like")
	}
	for _, machine := range []string{"declined", "never_received", "returned"} {
		if !seen[machine] {
			t.Errorf("%s is set by the machine and not listed", machine)
		}
	}
	if f := NewFailure("", ""); f.Code != "declined" || f.Message == "" {
		t.Errorf("no code: %+v", f)
	}
	if f := NewFailure("brand_new", ""); f.Code != "brand_new" || f.Retryable || f.NextAction != FailureCodes[0].NextAction {
		t.Errorf("unlisted code: %+v", f)
	}
}

func TestR12_PostingsAsDesigned(t *testing.T) {
	want := map[TransferKind][2]Account{
		"charge": {"provider", "holding"}, "claim": {"holding", "owed"}, "paid": {"owed", "provider"}, "close": {"holding", "refunding"},
		"refunded": {"refunding", "provider"}, "cancel": {"owed", "refunding"}, "returned": {"provider", "owed"},
		"refund_returned": {"provider", "refunding"}, "paid_outside": {"owed", "outside"}, "honoured": {"house", "owed"},
		"second_success":  {"suspense", "provider"},
		"refund_outside":  {"refunding", "outside"}, // added: POST /refunds/{id}/mark-paid
		"second_returned": {"provider", "suspense"}, // added: a second success that was returned
		"voided":          {"owed", "house"},        // added: an honoured share conflict that was not paid and is given up
		"charge_returned": {"house", "provider"},
		"refund_dropped":  {"refunding", "suspense"},
		"credit":          {"bank", "prefunded"}, "debit": {"prefunded", "bank"},
		"reserve": {"prefunded", "holding"}, "release": {"refunding", "prefunded"},
		"fee": {"fees", "provider"}, "fee_returned": {"provider", "fees"}, // from a statement, as the next two
		"top_up": {"provider", "bank"}, "withdrawal": {"bank", "provider"},
		"written_off": {"house", "suspense"}, "recovered": {"suspense", "house"}, // of a second success
		"refund_kept": {"refunding", "house"}, // added: of a packet whose charge was returned
	}
	if len(transferAccounts) != len(want) {
		t.Errorf("%d kinds of postings, designed %d", len(transferAccounts), len(want))
	}
	for kind, accounts := range want {
		p := NewTransfer(kind, "order", 7)
		if p.Debit != accounts[0] || p.Credit != accounts[1] || p.Amount != 7 || p.Kind != kind || p.OrderNo != "order" {
			t.Errorf("%s: %+v", kind, p)
		}
		if p.Reference() != "order:"+string(kind) {
			t.Errorf("reference %q", p.Reference())
		}
		if !slices.Contains(Accounts, p.Debit) || !slices.Contains(Accounts, p.Credit) || p.Debit == p.Credit {
			t.Errorf("%s: accounts %s and %s", kind, p.Debit, p.Credit)
		}
		if len(OrderNo(ID(KindPayout, packetID, 0), 1))+1+len(kind) > 64 {
			t.Errorf("%s: reference does not fit its column", kind)
		}
	}
}
