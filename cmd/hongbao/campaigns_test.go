package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hongbao/internal/campaign"
	"hongbao/internal/devstack/stacktest"
	"hongbao/wire"
)

// shop is the shell of an app's developer.
func (d *staffStack) shop(want int, args ...string) (stdout, stderr string) {
	d.t.Helper()
	return d.shAs([]string{"HONGBAO_URL=" + d.public, "HONGBAO_APP_KEY=" + d.appKey}, want, append([]string{"campaigns"}, args...)...)
}

// rainID has the form of a campaign's id.
const rainID = "3q5k9v0c1m7e2u8h4r6t"

// rain is a command line that creates a campaign.
func rain(more ...string) []string {
	return append([]string{"create", "--name", "evening rain", "--opens-daily-at", "20:05", "--sender", "alice", "--total", "1000", "--shares",
		"4"}, more...)
}

// TestCampaigns is the life of a campaign at a shell, on the real API.
func TestCampaigns(t *testing.T) {
	d := newStaffStack(t)
	full := rain("--time-zone", "Asia/Tokyo", "--starts-on", "2999-01-01", "--ends-on", "2999-01-20", "--split", "even", "--min", "2", "--max",
		"500", "--greeting", "恭喜",
		"--expires-in", "1m", "--eligible", "bob,carol", "--group", "g", "--metadata", "a=b,c=d", "--one-win-per-user",
		"--idempotency-key", "k1", "--json")
	out, errs := d.shop(exitOK, full...)
	var c wire.Campaign
	d.check(json.Unmarshal([]byte(out), &c))
	p := c.Packet
	if errs != "" || c.Name != "evening rain" || c.TimeZone != "Asia/Tokyo" || c.OpensDailyAt != "20:05" || c.StartsOn != "2999-01-01" ||
		*c.EndsOn != "2999-01-20" ||
		p.SenderID != "alice" || p.TotalAmount != 1000 || p.ShareCount != 4 || p.Split != wire.SplitEven || p.MinShare != 2 ||
		*p.MaxShare != 500 || p.Greeting != "恭喜" ||
		p.ExpiresInSeconds != 60 || !c.OneWin || p.EligibleCount != 2 || *p.GroupID != "g" || len(p.Metadata) != 2 || p.Metadata["c"] != "d" {
		t.Fatalf("%s%s", out, errs)
	}
	if again, _ := d.shop(exitOK, full...); again != out {
		t.Errorf("asked for again under its key: %s, was %s", again, out)
	}
	out, _ = d.shop(exitOK, rain("--split", "equal", "--ends-on", "2998-12-31")...)
	contains(t, out, "evening rain", "active", "20:05 Asia/Shanghai", "2998-12-31", "¥10.00 (1000 fen)", "4, equal, ¥0.01 or more each",
		"24h0m0s after opening", "campaign/")
	out, _ = d.shop(exitOK, "show", c.ID)
	contains(t, out, c.ID, "alice", "2999-01-01", "2 users", "at most one per user, over all packets", "恭喜", "4, even, ¥0.02 to ¥5.00 each",
		"1m0s after opening", formatTime(*c.NextOpensAt))
	if strings.Contains(out, "decided") {
		t.Errorf("no day was decided yet:\n%s", out)
	}

	d.decideDays(c, 9)
	out, _ = d.shop(exitOK, "show", c.ID)
	contains(t, out, "2999-01-09", "packet00000000000009", "made", "The last 7 days. For more: hongbao campaigns days "+c.ID)
	out, errs = d.shop(exitOK, "days", c.ID, "--limit", "2")
	if strings.Contains(out, "2999-01-07") || !strings.Contains(errs, "There are more entries: add --all, or --cursor ") {
		t.Errorf("%s%s", out, errs)
	}
	out, errs = d.shop(exitOK, "days", c.ID, "--all")
	contains(t, out, "2999-01-09", "2999-01-01", "missed")
	if errs != "" || strings.Contains(out, "packet00000000000001") {
		t.Errorf("%s%s", out, errs)
	}

	d.campaignStatuses(c.ID)
	out, _ = d.shop(exitOK, "list", "--status", "active", "--json")
	if ids, _ := d.ids(out); len(ids) != 1 || ids[0] == c.ID {
		t.Errorf("active ones: %s", out)
	}
	out, errs = d.shop(exitOK, "list", "--limit", "1")
	contains(t, out+errs, "evening rain", "active", "alice", "¥10.00", "20:05 Asia/Shanghai",
		"There are more entries: add --all, or --cursor ")
	out, _ = d.shop(exitOK, "list", "--all")
	contains(t, out, c.ID, "ended")
	d.campaignRefusals(c.ID)
	d.staffCampaigns(c.ID)
}

// staffCampaigns finds and stops campaigns of every app.
func (d *staffStack) staffCampaigns(ended string) {
	d.t.Helper()
	out, _ := d.sh(exitOK, "campaigns", "staff", "list", "--status", "active", "--json")
	ids, _ := d.ids(out)
	if len(ids) != 1 {
		d.t.Fatalf("%s", out)
	}
	out, _ = d.sh(exitOK, "campaigns", "staff", "list")
	contains(d.t, out, ids[0], ended, "evening rain", "20:05 Asia/Shanghai")
	for _, step := range [][2]string{{"pause", "paused"}, {"end", "ended"}, {"end", "ended"}} {
		out, _ = d.sh(exitOK, "campaigns", "staff", step[0], ids[0], "--reason", "ticket 4711")
		contains(d.t, out, ids[0], step[1])
	}
	if n := d.auditCount("campaign/" + ids[0]); n != 3 {
		d.t.Errorf("%d entries", n)
	}
	_, errs := d.sh(exitUsage, "campaigns", "staff", "end", ended)
	contains(d.t, errs, "--reason")
	_, errs = d.sh(exitRefused, "campaigns", "staff", "pause", ended, "--reason", "r")
	contains(d.t, errs, "campaign_ended")
}

// decideDays decides the first n days of a campaign as its workflow would, the first one
// as missed.
func (d *staffStack) decideDays(c wire.Campaign, n int) {
	d.t.Helper()
	row, err := d.store.Campaign(d.t.Context(), c.ID)
	d.check(err)
	for i := range n {
		status := campaign.DayCreated
		if i == 0 {
			status = campaign.DayMissed
		}
		stacktest.CampaignDay(d.t, d.dsn.Reveal(), c.ID, string(row.NextDay.Add(i)), string(status), fmt.Sprintf("packet%014d", i+1),
			row.NextOpens.AddDate(0, 0, i))
	}
}

func (d *staffStack) campaignStatuses(id string) {
	d.t.Helper()
	for _, step := range [][2]string{{"pause", "paused"}, {"pause", "paused"}, {"resume", "active"}, {"end", "ended"}, {"end", "ended"}} {
		out, _ := d.shop(exitOK, step[0], id)
		contains(d.t, out, id, step[1])
		if strings.Contains(out, "none") != (step[1] != "active") {
			d.t.Errorf("%s: the next packet is wrong:\n%s", step[0], out)
		}
	}
	out, _ := d.shop(exitOK, "end", id, "--json")
	var c wire.Campaign
	d.check(json.Unmarshal([]byte(out), &c))
	if c.ID != id || c.Status != wire.CampaignEnded || c.EndedAt == nil {
		d.t.Errorf("%s", out)
	}
}

func (d *staffStack) campaignRefusals(ended string) {
	d.t.Helper()
	for _, verb := range []string{"pause", "resume"} {
		out, errs := d.shop(exitRefused, verb, ended)
		contains(d.t, errs, "campaign_ended: ", "(request ")
		if out != "" {
			d.t.Errorf("%s: %s", verb, out)
		}
	}
	for _, verb := range []string{"show", "days", "pause", "resume", "end"} {
		_, errs := d.shop(exitFailed, verb, "0123456789abcdefghij")
		contains(d.t, errs, "campaign_not_found: ")
	}
	for says, args := range map[string][]string{
		"opens_daily_at ": rain("--opens-daily-at", "24:00"), "time_zone ": rain("--time-zone", "Mars/Olympus"),
		"starts_on ": rain("--starts-on", "2027-02-30"), "ends_on ": rain("--ends-on", "2020-01-01"),
		"packet.share_count ": rain("--shares", "-1"), "idempotency_key_reused": rain("--idempotency-key", "k1"),
		"status ": {"list", "--status", "asleep"},
	} {
		_, errs := d.shop(exitUsage, args...)
		contains(d.t, errs, says)
	}
}

// TestCampaignsUsage: what is wrong on its face is not sent.
func TestCampaignsUsage(t *testing.T) {
	for args, says := range map[string]string{
		"create --opens-daily-at=20:00 --sender=a --total=1 --shares=1":                              "--name is required",
		"create --name=n --sender=a --total=1 --shares=1":                                            "--opens-daily-at is required",
		"create --name=n --opens-daily-at=20:00 --total=1 --shares=1":                                "--sender is required",
		"create --name=n --opens-daily-at=20:00":                                                     "--total is required",
		"create --name=n --opens-daily-at=20:00 --sender=a --total=1 --shares=1 --min=0":             "--min 0",
		"create --name=n --opens-daily-at=20:00 --sender=a --total=1 --shares=1 --expires-in=1500ms": "--expires-in",
		"create --name=\xd5\xc5 --opens-daily-at=20:00 --sender=a --total=1 --shares=1":              "UTF-8",
		"create --opens-at=2027-01-01T00:00:00Z":                                                     "unknown flag",
		"list --limit=0":                                                                             "--limit 0",
		"days " + rainID + " --limit=0":                                                              "--limit 0",
		"list x":                                                                                     "takes no arguments",
		"show":                                                                                       "takes one argument",
		"days":                                                                                       "takes one argument",
		"pause a b":                                                                                  "takes one argument",
		"end --timeout=-1s " + rainID:                                                                "--timeout",
	} {
		code, stdout, stderr, c := asApp(t, nil, append([]string{"campaigns"}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || len(c.asked) != 0 || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d, asked %q\n%s%s", args, code, c.asked, stdout, stderr)
		}
	}
}

// TestCampaignsNotKnown: it may have been made, and under another key there would be a second one.
func TestCampaignsNotKnown(t *testing.T) {
	for answer, unknown := range map[string]bool{`500 {"code":"internal","detail":"d"}`: true, `502 <html>`: true, `201 <html>`: true,
		`403 {"code":"forbidden","detail":"d"}`: false} {
		code, stdout, stderr, c := asApp(t, map[string][]string{"POST /v1/campaigns": {answer}}, append([]string{"campaigns"}, rain()...)...)
		if got := strings.Contains(stderr, "run the command again with --idempotency-key "+c.keys[0]+"\n"); got != unknown || code == exitOK ||
			stdout != "" || c.keys[0] == "" {
			t.Errorf("%s: exit code %d, the key is reported: %v\n%s%s", answer, code, got, stdout, stderr)
		}
	}
}

// TestCampaignsHostile: a name that does harm in a terminal is not handed to it.
func TestCampaignsHostile(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		address := newTestServer(t, hostileAPI{refuse})
		for _, line := range []string{"list", "show " + rainID, "days " + rainID, "pause " + rainID, "resume " + rainID, "end " + rainID,
			"create --name=n --opens-daily-at=20:00 --sender=a --total=1 --shares=1", "list --json", "show " + rainID + " --json"} {
			var out bytes.Buffer
			code := execute(t.Context(), strings.Fields("campaigns "+line), []string{"HONGBAO_URL=" + address, "HONGBAO_APP_KEY=k"}, &out, &out)
			if refuse == (code == exitOK) || !strings.Contains(out.String(), "forged") {
				t.Errorf("%s: exit code %d\n%s", line, code, &out)
			}
			for text := range strings.Lines(out.String()) {
				if strings.HasPrefix(text, "forged") {
					t.Errorf("%s: a line is forged: %q", line, text)
				}
			}
			harmless(t, out.String())
		}
	}
}

func TestCampaignsHelp(t *testing.T) {
	for _, name := range []string{"list", "show", "days", "create", "pause", "resume", "end"} {
		code, stdout, _, _ := asApp(t, nil, "campaigns", name, "--help")
		if code != exitOK {
			t.Errorf("%s: exit code %d", name, code)
		}
		contains(t, stdout, "--json", "--timeout", "--url", "env HONGBAO_URL", "--app-key", "env HONGBAO_APP_KEY", "hongbao campaigns "+name)
	}
	_, stdout, _, _ := asApp(t,
		map[string][]string{"GET /v1/campaigns?limit=20": {
			`200 {"items":[{"id":"c1","name":"ra\u001bin","status":"paused","time_zone":"UTC","opens_daily_at":"20:00"}],"next_cursor":null}`}},
		"__complete", "campaigns", "resume", "")
	contains(t, stdout, "c1\tra\\x1bin, paused at 20:00 UTC\n")
	_, stdout, _, _ = asApp(t, nil, "__complete", "campaigns", "list", "--status", "")
	contains(t, stdout, "active\npaused\nended\n")
}
