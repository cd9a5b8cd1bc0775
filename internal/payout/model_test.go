package payout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sent is one send as it really was, independent of the machine's view.
type sent struct {
	no       int
	at       time.Time
	answered bool
	heard    int // answers about the number before this send
}

// finalAnswers are the answers after which a send cannot land any more (rule R4): the provider has
// the order, or documents that nothing is stored, or the request did not leave.
var finalAnswers = []ObservationKind{ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsReturned, ObsRetryAfter, ObsNotSent}

// liar drives a payment with arbitrary observations: lost, late, stale and contradictory ones,
// about any number, from any run. It keeps its own record of the answers and checks what the
// machine makes of them.
type adversary struct {
	*paymentStore
	sends   []sent
	heard   map[int][]Observation // by number, in the order settled
	settled []Observation
	given   map[int]consent          // numbers that two persons gave up past the provider's memory
	used    map[ObservationKind]bool // consents under which a new number was made
	reached map[Status]bool
	// notMoved and moved count what two persons stated.
	notMoved, moved int
}

// consent is what two persons were shown of a number that they gave up.
type consent struct {
	kind  ObservationKind
	heard int // answers about the number before
}

func newAdversary(kind Kind) *adversary {
	return &adversary{paymentStore: newPaymentStore(kind), heard: map[int][]Observation{}, given: map[int]consent{},
		used: map[ObservationKind]bool{}, reached: map[Status]bool{}}
}

// gaveUp reports whether two persons gave a number up, and the provider has not reported since that
// its money moves, in another way than they were shown.
func (l *adversary) gaveUp(no int) bool {
	c, given := l.given[no]
	for _, h := range slices.Backward(l.heard[no][min(c.heard, len(l.heard[no])):]) {
		if h.Source == SourceQuery && h.Kind.usable() {
			return given && (!h.Kind.mayMove() || h.Kind == c.kind)
		}
	}
	return given
}

// gives records what two persons have just been shown.
func (l *adversary) gives() {
	for _, a := range l.attempts {
		if !l.now.Before(a.QueryUntil) && a.Consented != "" {
			l.given[a.No] = consent{a.Consented, len(l.heard[a.No])}
		}
	}
}

func (l *adversary) observation(t *rapid.T, source Source, no int) Observation {
	// Answers that can end a payment are drawn more often.
	o := l.observed(t, source, no, append(slices.Clone(allKinds), ObsDeclined, ObsDeclined, ObsNeverReceived, ObsReturned)...)
	if rapid.Bool().Draw(t, "reference") {
		o.ProviderRef = "ref"
	}
	switch rapid.IntRange(0, 30).Draw(t, "wrong") {
	case 0:
		o.Amount = amount + 1
	case 1:
		o.Account = "other"
	case 2:
		o.OrderNo = "c0123456789abcdefghij000001"
	}
	if source == SourceQuery && rapid.IntRange(0, 3).Draw(t, "slow") == 0 {
		o.StartedAt = l.now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
	}
	return o
}

// observed draws an observation of one of the kinds, without other details.
func (l *adversary) observed(t *rapid.T, source Source, no int, kinds ...ObservationKind) Observation {
	o := said(source, l.attempt(no).OrderNo, rapid.SampledFrom(kinds).Draw(t, "kind"))
	l.seq++
	o.ID = fmt.Sprintf("run/%d", l.seq)
	return o
}

func (l *adversary) mismatch(o Observation, no int) bool {
	return o.OrderNo != l.attempt(no).OrderNo || o.Amount != 0 || o.Account != ""
}

func (l *adversary) hear(t *rapid.T, no int, o Observation) {
	before, posted, breaks := l.p, len(l.posted), len(l.breaks)
	if err := l.settle(no, o); err != nil {
		t.Fatalf("settle %+v: %v", o, err)
	}
	t.Logf("%s about number %d: %s; from %s to %s, %+v", o.Source, no, o.Kind, before.Status, l.p.Status, l.attempt(no))
	l.settled = append(l.settled, o)
	if l.mismatch(o, no) {
		if len(l.posted) != posted || len(l.breaks) == breaks || l.p.Status == StatusPaid && before.Status != StatusPaid {
			t.Fatalf("an answer about something else counted: %+v", l.last)
		}
	} else {
		l.heard[no] = append(l.heard[no], o)
	}
	if l.p.Status == StatusFailed && before.Status != StatusFailed {
		l.judgeFailure(t, no, o)
	}
	l.reached[l.p.Status] = true
	if before.Status == StatusUnknown && l.p.Status == StatusPaid && o.Kind != ObsSucceeded {
		t.Fatalf("paid by %+v", o)
	}
}

// judgeFailure is rule R4: two refusals that agree, the second by a query, or never received after
// a documented refusal with no send open.
func (l *adversary) judgeFailure(t *rapid.T, no int, o Observation) {
	if o.Source != SourceQuery {
		t.Fatalf("failed by the answer to a send: %+v", o)
	}
	heard := l.heard[no]
	if o.Kind == ObsReturned && l.p.Kind != KindCharge { // which has no status for a return
		t.Fatalf("failed by %+v", o)
	}
	switch o.Kind {
	case ObsDeclined, ObsReturned:
		agree := 0
		for _, h := range slices.Backward(heard) {
			if h.Kind == o.Kind {
				agree++
			} else if h.Kind.Definite() {
				break
			}
		}
		if agree < 2 {
			t.Fatalf("failed by %d refusal: %+v", agree, heard)
		}
	case ObsNeverReceived:
		refused, last := false, 0
		for _, s := range l.sends {
			if s.no == no {
				last = s.heard
			}
		}
		for i, h := range heard {
			if h.ProviderRef != "" {
				t.Fatalf("never received, but it was known as %s: %+v", h.ProviderRef, heard)
			}
			if h.Source == SourceSend && h.Kind != ObsNoAnswer {
				refused = h.Kind == ObsDeclined && i >= last // answers before the last send do not count for it
			}
		}
		if !refused {
			t.Fatalf("never received, and the last answer to a send was no refusal: %+v", heard)
		}
		for _, s := range l.sends {
			if s.no == no && !s.answered && o.queriedAt(l.now).Before(s.at.Add(limits.LandingWindow)) {
				t.Fatalf("never received while the send of %v was open at %v", s.at, o.queriedAt(l.now))
			}
		}
	default:
		t.Fatalf("failed by %+v", o)
	}
}

func (l *adversary) Check(t *rapid.T) {
	refs := map[string]bool{}
	paid, returned, ended := 0, 0, 0
	for _, p := range l.posted {
		if refs[p.Reference()] {
			t.Fatalf("%s posted twice", p.Reference())
		}
		refs[p.Reference()] = true
		switch p.Kind {
		case PostPaid:
			paid++
		case PostReturned:
			returned++
		case PostCancel, PostPaidOutside:
			ended++
		case PostSecondSuccess, PostSecondReturned:
		default:
			t.Fatalf("posted %+v", p)
		}
		if paid-returned < 0 || paid-returned > 1 {
			t.Fatalf("paid %d, returned %d", paid, returned)
		}
	}
	if gone := l.p.Status == StatusCancelled || l.p.Status == StatusPaidOutside; gone != (ended == 1) || ended > 1 {
		t.Fatalf("%s with %d transfers to the sender or outside", l.p.Status, ended)
	}
	if owed := l.owed(); owed < 0 || owed > amount ||
		(owed == 0) != (l.p.Status == StatusPaid || l.p.Status == StatusCancelled || l.p.Status == StatusPaidOutside) {
		t.Fatalf("%s and %d fen owed", l.p.Status, owed)
	}
	if (l.p.Failure != nil) != (l.p.Status == StatusFailed || l.p.Status == StatusReturned) {
		t.Fatalf("%s with failure %+v", l.p.Status, l.p.Failure)
	}
	wanted := slices.ContainsFunc(l.attempts, func(a Attempt) bool { return a.wanted() })
	if l.p.OpenDecision != "" && !l.p.Decidable() && !(l.p.OpenDecision == DecisionNotMoved && l.p.inFlight()) {
		t.Fatalf("%s, deciding %s", l.p.Status, l.p.OpenDecision)
	}
	if step := l.step(); (l.p.Status.Open() || wanted || l.p.OpenDecision != "") == (step.Do == ActionEnd) {
		t.Fatalf("%s and next %+v", l.p.Status, step)
	} else if wanted && (step.Do == ActionCarryOut || step.Do == ActionSend && l.p.Status == StatusPending) {
		t.Fatalf("%s and next %+v, before a requested query", l.p.Status, step)
	}
	if l.p.Status == StatusCancelled && MayStillMove(l.attempts) && !wanted {
		t.Fatalf("the refund waits, and no query is requested: %+v", l.attempts)
	}
	for _, a := range l.attempts {
		if last := l.lastAsked(a.No); l.p.Status == StatusCancelled && (last == ObsPending || last == ObsNeedsRecipient) &&
			(!a.Booked || a.ReturnBooked) && !l.gaveUp(a.No) && !MayStillMove(l.attempts) {
			t.Fatalf("cancelled, and the refund does not wait for %s of %+v", last, a)
		}
		if a.Sends == 0 || len(a.ObservedIDs) > rememberBytes {
			t.Fatalf("attempt %+v", a)
		}
	}
}

func (l *adversary) send(t *rapid.T) {
	before := slices.Clone(l.attempts)
	decided := l.p.DecidedAt
	no, err := l.paymentStore.send()
	if err != nil {
		t.Fatal(err)
	}
	if no == "" {
		return
	}
	cur := l.attempts[len(l.attempts)-1]
	for _, a := range l.attempts[:len(l.attempts)-1] {
		if last := l.lastAsked(a.No); last.mayMove() && !a.Forgotten && !l.gaveUp(a.No) {
			t.Fatalf("number %d sent despite %s of %+v", cur.No, last, a)
		}
	}
	l.sends = append(l.sends, sent{no: cur.No, at: l.now, heard: len(l.heard[cur.No])})
	if len(l.attempts) == len(before) {
		if cur.Booked || !l.now.Before(cur.QueryUntil) {
			t.Fatalf("sent again: %+v", cur)
		}
		return
	}
	for _, a := range before {
		// An earlier number was refused before it was superseded. Forgotten since, it stays
		// refused, unless it was reported as in progress after that.
		lost := a.Forgotten && a.No < cur.No-1 && !slices.ContainsFunc(l.heard[a.No], func(o Observation) bool { return o.Kind.mayMove() })
		final := a.Statement == ObsDeclined || a.Statement == ObsReturned || lost
		if !final && l.gaveUp(a.No) {
			final, l.used[l.given[a.No].kind] = true, true
		}
		if !final || a.QueriedAt.Before(decided) {
			t.Fatalf("number %d made while %+v", cur.No, a)
		}
	}
}

// lastAsked is the provider's last usable answer to a query of a number; or a return, which a send reports.
func (l *adversary) lastAsked(no int) ObservationKind {
	for _, h := range slices.Backward(l.heard[no]) {
		if h.Source == SourceSend && h.Kind == ObsReturned {
			return h.Kind
		}
		if h.Source == SourceQuery && h.Kind.usable() {
			return h.Kind
		}
	}
	return ""
}

// carry carries out a cancel: not before every number was queried since the decision, and never
// when one of them is reported as paid.
func (l *adversary) carry(t *rapid.T) {
	decided, kind := l.p.DecidedAt, l.p.OpenDecision
	status, err := l.carryOut()
	if err != nil {
		t.Fatal(err)
	}
	l.reached[l.p.Status] = true
	if kind == DecisionNotMoved && status == DecisionCarriedOut {
		l.judgeNotMoved(t, decided)
	}
	if l.p.Status != StatusCancelled {
		return
	}
	for _, a := range l.attempts {
		if a.QueriedAt.Before(decided) || a.Statement == ObsSucceeded && !a.Forgotten || a.Booked && !a.ReturnBooked {
			t.Fatalf("cancelled despite %+v", a)
		}
		for _, h := range slices.Backward(l.heard[a.No]) { // its last answer to a query counts
			if h.Source == SourceSend && h.Kind == ObsReturned {
				break
			}
			if h.Source == SourceSend || !h.Kind.usable() {
				continue
			}
			if (h.Kind == ObsSucceeded || h.Kind.mayMove() && !l.gaveUp(a.No)) && !a.Forgotten {
				t.Fatalf("cancelled despite %+v, %+v", h, a)
			}
			break
		}
	}
}

// judgeNotMoved: two persons state that no money has moved. Every number was queried since, none is
// reported as paid, and no send may land.
func (l *adversary) judgeNotMoved(t *rapid.T, decided time.Time) {
	l.notMoved++
	for _, a := range l.attempts {
		last := ObsNoAnswer
		for _, h := range l.heard[a.No] {
			if h.Kind.usable() {
				last = h.Kind
			}
		}
		if a.QueriedAt.Before(decided) || a.Booked && !a.ReturnBooked || !a.Booked && last == ObsSucceeded {
			t.Fatalf("stated not to have moved despite %+v", a)
		}
	}
	for _, s := range l.sends {
		if !s.answered && l.now.Before(s.at.Add(limits.LandingWindow)) && l.attempt(s.no).Statement == "" {
			t.Fatalf("stated not to have moved while the send of %v was open at %v", s.at, l.now)
		}
	}
}

// answer settles the answer to one send.
func (l *adversary) answer(t *rapid.T, send int, o Observation) {
	s := &l.sends[send]
	s.answered = slices.Contains(finalAnswers, o.Kind) && !l.mismatch(o, s.no)
	l.hear(t, s.no, o)
}

func (l *adversary) actions() map[string]func(*rapid.T) {
	pick := func(t *rapid.T) int {
		if len(l.attempts) == 0 {
			t.Skip("nothing sent yet")
		}
		return rapid.IntRange(1, len(l.attempts)).Draw(t, "number")
	}
	return map[string]func(*rapid.T){
		"": l.Check,
		"step": func(t *rapid.T) {
			switch step := l.step(); step.Do {
			case ActionSend:
				l.send(t)
			case ActionQuery:
				parts, _ := Parse(step.OrderNo)
				l.hear(t, parts.Attempt, l.observation(t, SourceQuery, parts.Attempt))
			case ActionClose:
				l.recordClose(rapid.Bool().Draw(t, "answered"))
			case ActionCarryOut:
				l.carry(t)
			default:
				t.Skip("ended")
			}
		},
		"another run sends": l.send,
		"another run asks":  func(t *rapid.T) { no := pick(t); l.hear(t, no, l.observation(t, SourceQuery, no)) },
		"a send is answered": func(t *rapid.T) {
			var open []int
			for i, s := range l.sends {
				if !s.answered && l.now.Before(s.at.Add(limits.LandingWindow)) {
					open = append(open, i)
				}
			}
			if len(open) == 0 {
				t.Skip("no send waits for its answer")
			}
			i := rapid.SampledFrom(open).Draw(t, "send")
			l.answer(t, i, l.observation(t, SourceSend, l.sends[i].no))
		},
		"a step that leaves no order": func(t *rapid.T) {
			switch step, sent := l.step(), len(l.sends); step.Do {
			case ActionSend:
				if l.send(t); len(l.sends) > sent {
					l.answer(t, sent, l.observed(t, SourceSend, l.sends[sent].no, ObsDeclined, ObsNoAnswer))
				}
			case ActionQuery:
				parts, _ := Parse(step.OrderNo)
				l.hear(t, parts.Attempt, l.observed(t, SourceQuery, parts.Attempt, ObsNeverReceived))
			default:
				t.Skip("nothing to send or to ask")
			}
		},
		"a run repeats": func(t *rapid.T) {
			if len(l.settled) == 0 {
				t.Skip("nothing settled yet")
			}
			o := l.settled[len(l.settled)-1]
			parts, _ := Parse(o.OrderNo)
			if parts.Kind != KindPayout {
				t.Skip("about another order")
			}
			if l.last.Attempt.No != parts.Attempt {
				t.Skip("settled about another number")
			}
			if err := l.settle(parts.Attempt, o); err != nil || l.last.Changed {
				t.Fatalf("the repeat changed something: %+v, %v", l.last, err)
			}
		},
		"a notification": func(t *rapid.T) { a := l.attempt(pick(t)); a.QueryWantedAt, a.NextAt = l.now, l.now },
		"a decision": func(t *rapid.T) {
			kind := rapid.SampledFrom([]DecisionKind{DecisionRetry, DecisionRetry, DecisionRetry, DecisionRetry, DecisionCancel, DecisionMarkPaid,
				DecisionQuery}).Draw(t, "kind")
			two := rapid.Bool().Draw(t, "two") || NeedsApproval(l.p, l.attempts, DecisionRequest{Kind: kind, ApproveFrom: amount + 1}, l.now)
			if l.decide(kind, two) != nil {
				t.Skip("the state does not permit it")
			}
			if two && (kind == DecisionRetry || kind == DecisionCancel) {
				l.gives()
			}
		},
		"the provider says the same past its memory": func(t *rapid.T) {
			l.now = maxTime(l.now, l.attempt(pick(t)).QueryUntil).Add(time.Minute)
			kind := rapid.SampledFrom([]ObservationKind{ObsPending, ObsNeedsRecipient, ObsNeverReceived, ObsNoAnswer}).Draw(t, "kind")
			queries := func() {
				l.now = l.now.Add(time.Second)
				for _, a := range l.attempts {
					if a.fate() != FateEnded {
						l.hear(t, a.No, l.observed(t, SourceQuery, a.No, kind))
					} else {
						l.hear(t, a.No, l.observed(t, SourceQuery, a.No, a.Statement))
					}
				}
			}
			queries()
			if l.decide(DecisionRetry, true) != nil {
				t.Skip("the state does not permit it")
			}
			l.gives()
			queries()
			l.send(t)
		},
		"two persons state that it has moved": func(t *rapid.T) {
			no, onStatement := pick(t), rapid.IntRange(0, 3).Draw(t, "statement") == 0
			if CheckMoved(l.p, l.attempts, l.attempt(no).OrderNo, onStatement) != nil {
				t.Skip("nothing shows it")
			}
			if err := l.settle(no, OperatorObservation(l.attempt(no).OrderNo, ObsSucceeded, l.now)); err != nil || !l.attempt(no).Booked {
				t.Fatalf("%+v, %v", l.attempt(no), err)
			}
			l.moved++
		},
		"two persons state that it has not moved": func(t *rapid.T) {
			if l.decide(DecisionNotMoved, true) != nil {
				t.Skip("the state does not permit it")
			}
			for n := 0; l.p.OpenDecision == DecisionNotMoved && n < 4; n++ {
				l.now = l.now.Add(time.Second)
				if step := l.step(); step.Do == ActionCarryOut {
					l.carry(t)
				} else if parts, err := Parse(step.OrderNo); err == nil {
					l.hear(t, parts.Attempt, l.observed(t, SourceQuery, parts.Attempt, ObsNoAnswer, l.attempt(parts.Attempt).LastAnswer(), ObsPending))
				}
			}
		},
		"the cancel is withdrawn": func(t *rapid.T) {
			if WithdrawCancel(&l.p, l.now) != nil {
				t.Skip("no cancel is open")
			}
		},
		"time passes": func(t *rapid.T) {
			l.now = l.now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 4 * time.Second, 11 * time.Second, time.Hour,
				10 * 24 * time.Hour}).Draw(t, "d"))
		},
	}
}

// TestR4_FailedMeansConfirmed: whatever providers answer and networks lose, in any order, no
// sequence ends failed without the confirmation of rule R4, nothing is booked twice, owed is never
// negative, and a new number is only made when every earlier one is final.
func TestR4_FailedMeansConfirmed(t *testing.T) {
	reached, used := map[Status]int{}, map[ObservationKind]int{}
	notMoved, moved := 0, 0
	for range 60 { // random answers seldom agree for long enough to cancel
		rapid.Check(t, func(t *rapid.T) {
			l := newAdversary(KindPayout)
			t.Repeat(l.actions())
			notMoved, moved = notMoved+l.notMoved, moved+l.moved
			for s := range l.reached {
				reached[s]++
			}
			for kind := range l.used {
				used[kind]++
			}
		})
	}
	for _, s := range Statuses {
		if reached[s] == 0 && s != StatusPending && s != StatusAwaitingPayer {
			t.Errorf("no run was ever %s: the model tests too little (%v)", s, reached)
		}
	}
	for _, kind := range []ObservationKind{ObsPending, ObsNeedsRecipient, ObsNeverReceived, ObsNoAnswer} {
		if used[kind] == 0 {
			t.Errorf("no number was made by consent after %s: the model tests too little (%v)", kind, used)
		}
	}
	if used[ObsSucceeded] > 0 {
		t.Errorf("a number was made by consent after a success: %v", used)
	}
	if notMoved == 0 || moved == 0 {
		t.Errorf("two persons stated %d times that money has moved, %d times that it has not: the model tests too little", moved, notMoved)
	}
	t.Log(reached, used, notMoved, moved)
}
