package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// testClose: balances and closes at the shell; a day that is not final is exit code 1.
func (d *staffStack) testClose(t *testing.T) {
	d.grabbedPacket(100, "ann", "ben~frozen") // whose payout fails
	day := string(payout.DayOf(time.Now(), time.UTC))
	out, _ := d.sh(exitFailed, "close", "show", day)
	contains(t, out, day, "open", "waits for", "provider", "-¥", "holding", "charge", "claim", "payouts in flight at the end")
	out, _ = d.sh(exitFailed, "close", "show", day, "--json")
	var c wire.Close
	if err := json.Unmarshal([]byte(out), &c); err != nil || string(c.Date) != day || c.Status != "open" ||
		len(c.Accounts) != len(payout.Accounts) ||
		c.Owed.Count < 1 {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = d.sh(exitOK, "close", "list")
	contains(t, out, day, "open", "funded")
	out, _ = d.sh(exitOK, "close", "balances", "--at", "2026-01-01T00:00:00Z", "--json")
	var b wire.Balances
	if err := json.Unmarshal([]byte(out), &b); err != nil || b.Entries != 0 || !b.Sound || !b.Settled {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = d.sh(exitOK, "close", "balances")
	contains(t, out, "provider", "owed", "all", "app")
	out, _ = d.sh(exitOK, "close", "export", day)
	if !strings.HasPrefix(out, "date,status,section,") || !strings.Contains(out, "\r\n"+day+",open,closing,,owed,") {
		t.Errorf("%s", out)
	}
	d.sh(exitUsage, "close", "show", "17.2.2026")
	d.sh(exitUsage, "close", "show")
	d.sh(exitUsage, "close", "balances", "--at", "noon")
	_, errs := d.sh(exitFailed, "close", "show", "2001-01-01")
	contains(t, errs, "not_found")
}
