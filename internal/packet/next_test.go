package packet

import (
	"testing"
	"time"

	"hongbao/internal/money"
)

// TestNext: the next step from what is known. A fact that is not known ends nothing.
func TestNext(t *testing.T) {
	expires := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := Packet{ID: "0123456789abcdefghij", OpensAt: expires.Add(-time.Minute), ExpiresAt: expires}
	before, after := expires.Add(-time.Second), expires
	none, some := new(money.Fen), new(money.Fen(7))
	for _, tc := range []struct {
		name  string
		facts Facts
		now   time.Time
		want  Step
		wait  time.Duration
	}{
		{"nothing known", Facts{}, before, StepRecord, 0},
		{"nothing known, past expires_at", Facts{}, after, StepRecord, 0},
		{"every fact but the row known", Facts{Charge: ChargeTaken, Pool: PoolEnded, Late: true, Reason: CloseRecalled, Drained: true,
			Remainder: none, Finished: true}, after, StepRecord, 0},

		{"funding, charge unknown", Facts{Status: StatusFunding}, before, StepCharge, 0},
		{"funding, charge unknown, past expires_at", Facts{Status: StatusFunding, Late: true}, after, StepCharge, 0},
		{"funding, charge unknown, pool open", Facts{Status: StatusFunding, Pool: PoolUsed}, before, StepCharge, 0},
		{"funding, declined", Facts{Status: StatusFunding, Charge: ChargeDeclined}, before, StepReject, 0},
		{"funding, declined, past expires_at", Facts{Status: StatusFunding, Charge: ChargeDeclined}, after, StepReject, 0},
		{"funding, paid", Facts{Status: StatusFunding, Charge: ChargeTaken}, before, StepFund, 0},
		{"funding, paid, past expires_at", Facts{Status: StatusFunding, Charge: ChargeTaken}, after, StepBeginClosing, 0},
		{"funding, paid, shares not written in time", Facts{Status: StatusFunding, Charge: ChargeTaken, Late: true}, before, StepBeginClosing, 0},

		{"open, pool unknown", Facts{Status: StatusOpen}, before, StepOpenPool, 0},
		{"open, pool unknown, past expires_at", Facts{Status: StatusOpen}, after, StepBeginClosing, 0},
		{"open, pool not opened in time", Facts{Status: StatusOpen, Late: true}, before, StepBeginClosing, 0},
		{"open", Facts{Status: StatusOpen, Pool: PoolUsed}, before, StepBeginClosing, time.Second},
		{"open, past expires_at", Facts{Status: StatusOpen, Pool: PoolUsed}, after, StepBeginClosing, 0},
		{"open, a reason to close", Facts{Status: StatusOpen, Pool: PoolUsed, Reason: CloseSoldOut}, before, StepBeginClosing, 0},

		{"closing, pool unknown", Facts{Status: StatusClosing}, before, StepClosePool, 0},
		{"closing, pool unknown, drained before", Facts{Status: StatusClosing, Drained: true}, after, StepClosePool, 0},
		{"closing, pool open", Facts{Status: StatusClosing, Pool: PoolUsed}, after, StepClosePool, 0},
		{"closing, pool open by its clock", Facts{Status: StatusClosing, Pool: PoolUsed, NotYet: time.Second}, after, StepClosePool, time.Second},
		{"closing, pool open by its clock for a day", Facts{Status: StatusClosing, Pool: PoolUsed, NotYet: 24 * time.Hour}, after, StepClosePool,
			36 * time.Minute},
		{"closing, pool open by its clock for minutes", Facts{Status: StatusClosing, Pool: PoolUsed, NotYet: 2 * time.Minute}, after,
			StepClosePool, 15 * time.Second},
		{"closing, no more grabs", Facts{Status: StatusClosing, Pool: PoolEnded}, after, StepDrain, 0},
		{"closing, drained", Facts{Status: StatusClosing, Pool: PoolEnded, Drained: true}, after, StepCloseBooks, 0},
		{"closing, books closed, a remainder", Facts{Status: StatusClosing, Pool: PoolEnded, Remainder: some}, after, StepEnd, 0},
		{"closing, books closed, nothing remains", Facts{Status: StatusClosing, Pool: PoolEnded, Remainder: none}, after, StepFinish, 0},

		{"rejected", Facts{Status: StatusRejected}, before, StepReject, 0},
		{"rejected, in Redis too", Facts{Status: StatusRejected, Finished: true}, before, StepEnd, 0},
		{"closed", Facts{Status: StatusClosed}, after, StepFinish, 0},
		{"closed, in Redis too", Facts{Status: StatusClosed, Finished: true}, after, StepEnd, 0},
	} {
		if step, wait := Next(p, tc.facts, tc.now); step != tc.want || wait != tc.wait {
			t.Errorf("%s: %s in %v, want %s in %v", tc.name, step, wait, tc.want, tc.wait)
		}
	}
}

// TestCloseReason: unopened only where the pool cannot be open; the pool has the last word.
func TestCloseReason(t *testing.T) {
	for _, tc := range []struct {
		facts Facts
		want  CloseReason
	}{
		{Facts{Status: StatusFunding, Charge: ChargeTaken}, CloseUnopened},
		{Facts{Status: StatusOpen, Late: true}, CloseUnopened},
		{Facts{Status: StatusOpen}, CloseExpired},
		{Facts{Status: StatusClosing}, CloseExpired},
		{Facts{Status: StatusOpen, Reason: CloseRecalled}, CloseRecalled},
	} {
		if got := tc.facts.CloseReason(); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.facts, got, tc.want)
		}
	}
}

// TestExpiryJitter: packets of a day do not all close in the second of their expiry; short ones do.
func TestExpiryJitter(t *testing.T) {
	day, now := Packet{OpensAt: time.Unix(0, 0), ExpiresAt: time.Unix(86400, 0)}, time.Unix(86400, 0)
	waits := map[time.Duration]bool{}
	for i := range 20 {
		day.ID = NewID([]byte("salt"), string(rune('a'+i)))
		_, wait := Next(day, Facts{Status: StatusOpen, Pool: PoolUsed}, now)
		if wait < 0 || wait >= jitterMax {
			t.Errorf("waits %v", wait)
		}
		waits[wait] = true
	}
	if len(waits) < 10 {
		t.Errorf("20 packets wait for %d different times", len(waits))
	}
}
