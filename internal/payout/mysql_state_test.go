package payout

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// TestR13_RestoreIsDetected: the known heartbeat decides, and the result stays.
func TestR13_RestoreIsDetected(t *testing.T) {
	now, then := time.Now(), time.Now().Add(-time.Hour)
	normal := MySQLState{Heartbeat: 5, State: MySQLNormal, HeartbeatAt: then}
	restored := MySQLState{Heartbeat: 5, State: MySQLRestored, HeartbeatAt: then, Known: 6, RestoredAt: now}
	for name, tc := range map[string]struct {
		before MySQLState
		known  int64
		rise   bool
		want   MySQLState
	}{
		"equal":                {normal, 5, false, normal},
		"equal, rises":         {normal, 5, true, MySQLState{Heartbeat: 6, State: MySQLNormal, HeartbeatAt: now}},
		"nothing known":        {normal, 0, true, MySQLState{Heartbeat: 6, State: MySQLNormal, HeartbeatAt: now}},
		"lower":                {normal, 6, false, restored},
		"lower, does not rise": {normal, 6, true, restored},
		"nothing ever beat":    {MySQLState{State: MySQLNormal}, 1, true, MySQLState{State: MySQLRestored, Known: 1, RestoredAt: now}},
		"stays restored":       {restored, 0, true, restored},
		"restored, more is known": {MySQLState{Heartbeat: 5, State: MySQLRestored, HeartbeatAt: then, Known: 6, RestoredAt: then}, 9, true,
			MySQLState{Heartbeat: 5, State: MySQLRestored, HeartbeatAt: then, Known: 9, RestoredAt: now}},
	} {
		if got := tc.before.CheckRestored(tc.known, tc.rise, now); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	for _, known := range []int64{0, 6, 70} {
		got := restored.Recovered(known, now)
		if got.State != MySQLNormal || got.Heartbeat <= max(known, 6) || got.CheckRestored(max(known, 6), false, now) != got {
			t.Errorf("recovered, %d is known: %+v", known, got)
		}
	}
}

// TestR13_AttemptsAreRestored: the statuses from which a payment may have got another number, and
// in which its money cannot have gone back to the sender.
func TestR13_AttemptsAreRestored(t *testing.T) {
	now := time.Now()
	limits := Limits{LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour}
	id := ID(KindPayout, "0123456789abcdefghij", 1)
	for _, status := range Statuses {
		p := Payment{ID: id, Kind: KindPayout, Status: status, Attempt: 1, OpenDecision: DecisionCancel, Failure: NewFailure("x", "y")}
		a := NewAttempt(p, 2, []byte("r"))
		err := RecordRecovered(&p, &a, limits, now.Add(-time.Hour), now)
		switch status {
		case StatusPending, StatusFailed, StatusReturned, StatusUnknown:
			if err != nil || p.Status != StatusUnknown || p.Attempt != 2 || p.OpenDecision != "" || p.Failure != nil || a.Sends != 1 ||
				a.Next != ActionQuery ||
				a.Booked || a.Statement != "" || !a.open(now) || !a.QueryUntil.Equal(now.Add(-time.Hour+29*24*time.Hour)) {
				t.Errorf("%s: %+v, %+v, %v", status, p, a, err)
			}
			if ChooseOrderNo(p, []Attempt{{No: 1}, a}, now) != NoOrderNo {
				t.Errorf("%s: a number that was put back may be sent", status)
			}
		case StatusPaid: // under number 1; money under number 2 was not owed
			if err != nil || p.Status != StatusPaid || p.Attempt != 1 || a.Sends != 1 || a.Next != ActionQuery ||
				ChooseOrderNo(p, []Attempt{{No: 1}, a}, now) != NoOrderNo {
				t.Errorf("%s: %+v, %+v, %v", status, p, a, err)
			}
			s, err := Settle(p, a, Observation{Source: SourceQuery, Kind: ObsSucceeded, OrderNo: a.OrderNo, StartedAt: now, EndedAt: now}, now)
			if err != nil || len(s.Breaks) != 1 || s.Breaks[0].Kind != BreakSecondSuccess || len(s.Transfers) != 1 ||
				s.Transfers[0].Kind != PostSecondSuccess {
				t.Errorf("%s twice: %+v, %v", status, s, err)
			}
		default:
			if !errors.Is(err, ErrUndecided) {
				t.Errorf("%s: %v", status, err)
			}
		}

		p = Payment{ID: id, Kind: KindPayout, Status: status}
		err = CancelRecovered(&p, now)
		switch status {
		case StatusPaid, StatusPaidOutside:
			if !errors.Is(err, ErrUndecided) || p.Status != status {
				t.Errorf("cancelled from %s: %v", status, err)
			}
		default:
			if err != nil || p.Status != StatusCancelled || p.OpenDecision != "" {
				t.Errorf("cancelled from %s: %+v, %v", status, p, err)
			}
		}
	}
	for _, status := range []Status{StatusPending, StatusSending, StatusUnknown, StatusPaid} {
		p := Payment{ID: ID(KindCharge, "0123456789abcdefghij", 0), Kind: KindCharge, Status: status}
		err := FailRecovered(&p, NewFailure("x", "y"), now)
		if paid := status == StatusPaid; paid != errors.Is(err, ErrUndecided) || !paid && (p.Status != StatusFailed || p.Failure == nil) {
			t.Errorf("refused from %s: %+v, %v", status, p, err)
		}
	}
	honoured := Payment{ID: ID(KindHonour, "0123456789abcdefghij", 1), Kind: KindHonour, Status: StatusFailed}
	a := NewAttempt(honoured, 1, nil)
	if err := RecordRecovered(&honoured, &a, limits, now, now); !errors.Is(err, ErrUndecided) {
		t.Errorf("a share conflict: %v", err)
	}
}

// TestR13_SentAgainSinceTheBackup: a number that the provider had never received by the time of the
// backup, and knows now, becomes unknown; any other stays unchanged.
func TestR13_SentAgainSinceTheBackup(t *testing.T) {
	now := time.Now()
	limits := Limits{LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour}
	id := ID(KindRefund, "0123456789abcdefghij", 1)
	for _, status := range Statuses {
		for name, tc := range map[string]struct {
			harm func(p *Payment, a *Attempt)
			put  bool
		}{
			"never received": {func(*Payment, *Attempt) {}, status == StatusPending || status == StatusFailed},
			"pending since":  {func(_ *Payment, a *Attempt) { a.Statement = ObsPending }, status == StatusPending || status == StatusFailed},
			"confirming since": {func(_ *Payment, a *Attempt) { a.Statement = ObsNeedsRecipient }, status == StatusPending ||
				status == StatusFailed},
			"declined":         {func(_ *Payment, a *Attempt) { a.Statement = ObsDeclined }, false},
			"booked":           {func(_ *Payment, a *Attempt) { a.Booked = true }, false},
			"no longer counts": {func(p *Payment, _ *Attempt) { p.Attempt = 2 }, false},
		} {
			p := Payment{ID: id, Kind: KindRefund, Status: status, Attempt: 1, OpenDecision: DecisionRetry,
				Failure: NewFailure("never_received", "")}
			a := NewAttempt(p, 1, []byte("r"))
			a.Sends, a.Statement, a.Refused, a.Forgotten = 2, ObsNeverReceived, true, true
			tc.harm(&p, &a)
			wasP, wasA := p, a
			put, err := RecordResent(&p, &a, limits, now)
			if put != tc.put || err != nil {
				t.Errorf("%s, %s: %v, %v", status, name, put, err)
			}
			if !put {
				if !reflect.DeepEqual([]any{p, a}, []any{wasP, wasA}) {
					t.Errorf("%s, %s: changed: %+v, %+v", status, name, p, a)
				}
				continue
			}
			if p.Status != StatusUnknown || p.Attempt != 1 || p.OpenDecision != "" || p.Failure != nil || a.Sends != 3 || a.Statement != "" ||
				a.Forgotten || !a.open(now) ||
				ChooseOrderNo(p, []Attempt{a}, now) != NoOrderNo {
				t.Errorf("%s: %+v, %+v", status, p, a)
			}
			s, err := Settle(p, a, Observation{Source: SourceQuery, Kind: ObsSucceeded, OrderNo: a.OrderNo, StartedAt: now, EndedAt: now}, now)
			if err != nil || s.Payment.Status != StatusPaid || len(s.Breaks) != 0 || len(s.Transfers) != 1 {
				t.Errorf("%s, paid: %+v, %v", status, s, err)
			}
		}
	}
}
