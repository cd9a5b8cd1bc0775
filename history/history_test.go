package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
)

func config(change ...func(*Config)) Config {
	c := Config{
		Payouts: 3000, Days: 10, Number: 5, Until: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), App: "app", Salt: []byte("salt"), Provider: "sandbox",
		Limits: payout.Limits{LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour},
		Encode: func(in payout.Instruction) ([]byte, error) { return json.Marshal(in) }, Staff: []string{"li-na", "wang-wei"}, ApproveFrom: 100_000,
	}
	for _, one := range change {
		one(&c)
	}
	return c
}

func all(t *testing.T, c Config) (packets []*Packet) {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := h.Next()
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return packets
		}
		packets = append(packets, p)
	}
}

// digest is a history as one value; sealed seeds have a random part.
func digest(t *testing.T, packets []*Packet) [32]byte {
	t.Helper()
	sum := sha256.New()
	for _, p := range packets {
		plain := *p
		plain.SealedSeed = nil
		raw, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(raw)
	}
	return [32]byte(sum.Sum(nil))
}

// TestRepeats: the same number makes the same history, another one another.
func TestRepeats(t *testing.T) {
	first := digest(t, all(t, config()))
	if digest(t, all(t, config())) != first {
		t.Error("the same history came out differently")
	}
	if digest(t, all(t, config(func(c *Config) { c.Number = 6 }))) == first {
		t.Error("another number made the same history")
	}
}

// TestWithinItsTime: packets come in the order of their creation, over all the
// days and not beyond, and nothing of them happens after the end.
func TestWithinItsTime(t *testing.T) {
	c := config(func(c *Config) { c.Payouts = 30_000 }) // some failures of the last hours
	packets := all(t, c)
	begin, last := c.Until.AddDate(0, 0, -c.Days), time.Time{}
	days := map[string]int{}
	var claims int
	for _, p := range packets {
		if p.CreatedAt.Before(last) || p.CreatedAt.Before(begin) {
			t.Errorf("packet %s was made at %v, the one before at %v", p.ID, p.CreatedAt, last)
		}
		last = p.CreatedAt
		days[p.CreatedAt.Format(time.DateOnly)]++
		claims += len(p.Claims)
		for what, at := range map[string]time.Time{"closed": p.ClosedAt, "moved last": p.LastMoveAt} {
			if at.After(c.Until) {
				t.Errorf("packet %s %s at %v", p.ID, what, at)
			}
		}
		for _, one := range p.Payments {
			if one.UpdatedAt.After(c.Until) || one.CreatedAt.After(one.UpdatedAt) {
				t.Errorf("payment %s: %v to %v", one.ID, one.CreatedAt, one.UpdatedAt)
			}
			if one.Status.Open() {
				t.Errorf("payment %s is %s", one.ID, one.Status)
			}
			for _, a := range one.Audit {
				if a.At.After(c.Until) {
					t.Errorf("audit of %s at %v", a.Subject, a.At)
				}
			}
		}
		if p.Status == packet.StatusClosed && p.ExpiresAt.Before(p.BooksClosedAt.Add(-time.Minute)) {
			t.Errorf("packet %s expired at %v and was closed at %v", p.ID, p.ExpiresAt, p.BooksClosedAt)
		}
	}
	if claims < c.Payouts || claims > c.Payouts+500 {
		t.Errorf("%d payouts, want %d", claims, c.Payouts)
	}
	if len(days) < c.Days || len(days) > c.Days+1 {
		t.Errorf("packets on %d days of %d", len(days), c.Days)
	}
}

// TestWhatThereIs: a history holds everything that a desk has to do with.
func TestWhatThereIs(t *testing.T) {
	seen := map[string]int{}
	for _, p := range all(t, config(func(c *Config) { c.Payouts = 30_000 })) {
		seen["packet "+string(p.Status)+" "+string(p.Reason)]++
		for _, one := range p.Payments {
			seen[string(one.Kind)+" "+string(one.Status)]++
			if one.Failure != nil {
				seen["code "+one.Failure.Code]++
			}
			if len(one.Attempts) > 1 && one.Status == payout.StatusPaid {
				seen["mended"]++
			}
			for _, d := range one.Decisions {
				seen["decision "+string(d.Kind)+" "+string(d.Status)]++
			}
		}
	}
	for _, what := range []string{
		"packet closed sold_out", "packet closed expired", "packet closed recalled", "packet rejected ", "c paid", "c failed",
		"p paid", "p failed", "p returned", "p cancelled", "p paid_outside", "r paid", "mended",
		"code payee_declined", "code account_frozen", "code declined_by_rule", "code returned", "code insufficient_sender_balance",
		"decision retry carried_out", "decision cancel carried_out", "decision cancel rejected", "decision mark_paid carried_out",
	} {
		if seen[what] == 0 {
			t.Errorf("no %s in %v", what, seen)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no payouts":   func(c *Config) { c.Payouts = 0 },
		"too many":     func(c *Config) { c.Payouts = MaxPayouts + 1 },
		"no days":      func(c *Config) { c.Days = 0 },
		"one person":   func(c *Config) { c.Staff = c.Staff[:1] },
		"no end":       func(c *Config) { c.Until = time.Time{} },
		"no provider":  func(c *Config) { c.Provider = "" },
		"no encoder":   func(c *Config) { c.Encode = nil },
		"no threshold": func(c *Config) { c.ApproveFrom = 0 },
	} {
		if _, err := New(config(change)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIDsAreTheApps: the id of a packet derives from the app's salt (rule R1).
func TestIDsAreTheApps(t *testing.T) {
	one, other := all(t, config(func(c *Config) { c.Payouts = 1 })), all(t, config(func(c *Config) { c.Payouts, c.Salt = 1, []byte("other") }))
	if one[0].ID == other[0].ID || !packet.ValidID(one[0].ID) {
		t.Errorf("%s and %s", one[0].ID, other[0].ID)
	}
	if _, err := packet.OpenSeed([32]byte{}, one[0].ID, one[0].SealedSeed); err != nil || bytes.Equal(one[0].SealedSeed, other[0].SealedSeed) {
		t.Errorf("sealed seed: %v", err)
	}
}
