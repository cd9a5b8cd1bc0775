package browser

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// becomes inspects pages after decisions, refusals, lost answers and outages.
func (s *site) becomes() {
	s.t.Helper()
	id := s.open(map[string]any{"sender_id": "s", "total_amount": 800, "share_count": 8, "split": "equal"})
	var failed []string
	for i := range 7 {
		failed = append(failed, s.grab(id, fmt.Sprintf("u%d~frozen", i), ""))
	}
	b, ops := s.newTab("en"), s.newTab("en")
	b.signIn(s.finance)
	ops.signIn(s.ops)
	for name, path := range map[string]string{"packet-ops": "/packets/" + id, "campaign-ops": "/campaigns/" + s.daily} {
		ops.open(path)
		ops.inspect(name, "en")
	}
	s.refuses(b, failed[0], failed[1])
	s.moves(failed[2])
	s.loses(b, failed[3:6])
	s.retriesRefunds(b)
	s.resumes(b, failed[6])
	s.showsRuns(b, failed[0])
	s.showsMany(b)
	s.closesToday(b)
	s.losesParts(b, id)
}

// refuses has every kind of form refused.
func (s *site) refuses(b *tab, failed, waiting string) {
	s.t.Helper()
	refused := func(b *tab, form, button string) {
		s.t.Helper()
		b.fill(form+" textarea[name=reason]", odd)
		b.follow(form + " " + button)
		b.inspect("refused-"+strings.Trim(form, "#. "), "en")
	}
	b.open("/payouts/" + failed)
	b.fill("#mark-paid textarea[name=evidence]", "slip 1\nslip 2")
	refused(b, "#mark-paid", "button")
	b.open("/payouts/" + failed)
	refused(b, "#retry", "button")
	s.decide(s.finance, waiting, "cancel", "left the company")
	second := s.newTab("en")
	second.signIn(s.second)
	second.open("/approvals?status=waiting")
	refused(second, ".waits", "button.danger")
	second.open("/payouts/" + waiting)
	refused(second, ".waits", "button.primary")
	b.open("/reconciliations/" + s.run)
	b.do(click("main details:last-of-type summary"))
	refused(b, "main details", "button")
	b.open("/")
	b.do(click("#hold-sandbox summary"))
	refused(b, "#hold-sandbox", "button")
	b.open("/payouts/" + failed)
	b.do(click("#hold-this summary"))
	refused(b, "#hold-this", "button")
	b.open("/holds/" + s.hold)
	refused(b, "#release", "button")
	b.open("/holds/" + s.hold)
	b.fill("#release textarea", "the account is in order")
	b.follow("#release form button")
	b.inspect("hold-asked", "en")
	b.open("/holds")
	b.inspect("holds-asked", "en")
}

// moves decides about payments that another person has already decided.
func (s *site) moves(failed string) {
	s.t.Helper()
	b := s.newTab("zh-CN")
	b.signIn(s.finance)
	b.open("/payouts/" + failed)
	b.fill("#retry textarea", "已解冻\n工单 4711")
	s.decide(s.second, failed, "retry", "unfrozen")
	b.follow("#retry button")
	b.inspect("moved", "zh-CN")
}

// loses answers to decisions: the form is kept, gone, or about many.
func (s *site) loses(b *tab, failed []string) {
	s.t.Helper()
	lost := func(name, button string) {
		s.t.Helper()
		s.losing.lose.Store(true)
		b.follow(button)
		s.losing.lose.Store(false)
		b.inspect("lost-"+name, "en")
	}
	b.open("/payouts/" + failed[0])
	b.fill("#ask textarea", "what do they say")
	lost("ask", "#ask button")
	b.open("/payouts/" + failed[0])
	b.fill("#retry textarea", "unfrozen\nticket 4711")
	lost("retry", "#retry button")
	b.open("/payouts?status=failed")
	b.do(click(`input[value="`+failed[1]+`"]`), click(`input[value="`+failed[2]+`"]`))
	b.fill("#bulk textarea", "incident 17 is over")
	lost("bulk", "#retry-many")
}

// retriesRefunds shows a dry run, its result, and late refunds.
func (s *site) retriesRefunds(b *tab) {
	s.t.Helper()
	s.spoil(`{"op":"refund","kind":"decline","rate":1}`)
	s.remainder("a", 200)
	s.remainder("c", 200_000)
	s.spoil("")
	b.open("/refunds?status=failed")
	b.do(click("[data-all]"))
	b.follow("#dry-run")
	b.inspect("refunds-dry", "en")
	b.fill("#bulk textarea", "incident 17 is over")
	b.follow("#retry-many")
	b.inspect("refunds-done", "en")
	id := s.open(map[string]any{"sender_id": "lin mei", "total_amount": 888, "share_count": 3})
	_, err := s.Store.BeginClosing(s.t.Context(), id, packet.CloseRecalled)
	s.must(err)
	_, err = s.Store.CloseBooks(s.t.Context(), id, "")
	s.must(err)
	s.exec("UPDATE payments SET created_at = created_at - INTERVAL 6 MINUTE WHERE id = '" + payout.ID(payout.KindRefund, id, 0) + "'")
	b.open("/refunds?late=true")
	b.has("tbody", "lin mei")
	b.inspect("refunds-late", "en")
}

// resumes signs in again with a saved form.
func (s *site) resumes(b *tab, failed string) {
	s.t.Helper()
	b.open("/payouts/" + failed)
	b.fill("#ask textarea", "what <do> they say\n& why")
	b.leave()
	b.follow("#ask button")
	b.inspect("signed-out", "en")
	b.follow("form[action='/language'] button")
	b.inspect("signed-out", "zh-CN")
	b.follow("form[action='/language'] button")
	b.fill("#key", s.finance.Token)
	b.follow(".login button")
	b.inspect("resumed", "en")
}

// showsRuns shows pending activities, and an outage of Temporal.
func (s *site) showsRuns(b *tab, failed string) {
	s.t.Helper()
	at := time.Now().Add(-time.Minute)
	known := staff.WorkflowRuns{Known: true, Runs: []staff.WorkflowRun{
		{ID: "run-1", Status: "failed", StartedAt: at, ClosedAt: at.Add(time.Second)},
		{ID: "run-2", Status: "running", StartedAt: at.Add(2 * time.Second)},
	}, Pending: []staff.PendingActivity{
		{Name: "Settle", State: "scheduled", Attempt: 7, LastFailure: "mysql is <i>away</i>", NextAt: time.Now().Add(time.Minute)},
	}}
	s.runs = func(context.Context, string) (staff.WorkflowRuns, error) { return known, nil }
	b.open("/payouts/" + failed)
	b.has("#temporal", "mysql is <i>away</i>")
	b.inspect("runs", "en")
	s.runs = func(ctx context.Context, _ string) (staff.WorkflowRuns, error) {
		<-ctx.Done()
		return staff.WorkflowRuns{}, ctx.Err()
	}
	b.open("/payouts/" + failed)
	b.has("#temporal", "Temporal is not responding")
	b.inspect("runs-away", "en")
	s.runs = s.likelyRuns
}

// showsMany shows a failing provider, and a reconciliation with many breaks.
func (s *site) showsMany(b *tab) {
	s.t.Helper()
	low := s.open(map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"})
	s.win(low, "bob", "")
	s.spoil(`{"op":"transfer","kind":"low_balance","rate":1}`)
	s.sendOnce(low)
	s.spoil("")
	wait.Until(s.t, "the refusal is displayed",
		func() bool { b.open("/"); return strings.Contains(b.text("#part-provider"), "1, oldest") })
	b.inspect("trouble", "en")
	s.fillRun(s.run)
	b.open("/reconciliations/" + s.run)
	b.has("#total", "205 in total")
	b.follow("#all")
	b.has("#total", "205 in total")
	b.fits()
	for _, fault := range append(b.faults(), eval[[]string](b, contrast)...) {
		s.t.Errorf("many breaks: %s", fault)
	}
}

// closesToday shows a day that differs from the statement, and a final one.
func (s *site) closesToday(b *tab) {
	s.t.Helper()
	day := payout.DayOf(time.Now(), time.UTC)
	if _, end := day.Span(time.UTC); time.Until(end) < 5*time.Minute {
		return // too close to midnight; TestDayClose is skipped as well
	}
	later, off := s.tieToday(day, `<img src=x onerror=alert(1)>`)
	b.open("/closes/" + string(day))
	b.inspect("close-differs", "en")
	s.exec("UPDATE breaks SET resolved_at = last_seen, resolved_by = 'op', reason = 'looked at'")
	off.Add(int64(time.Hour))
	s.closeDays(later)
	zh := s.newTab("zh-CN")
	zh.signIn(s.ops)
	for _, path := range []string{"/closes", "/closes/" + string(day)} {
		zh.open(path)
		zh.inspect("close-final", "zh-CN")
	}
}

// losesParts stops the parts behind the console one by one.
func (s *site) losesParts(b *tab, packetID string) {
	s.t.Helper()
	s.must(s.StopProvider())
	b.open("/packets/" + packetID)
	b.has("main", "Comparison unavailable")
	b.inspect("packet-without-provider", "en")
	s.server.Pause(s.t)
	defer s.server.Resume(s.t)
	b.open("/packets/" + packetID)
	b.has("main", "Claims are unavailable")
	b.inspect("packet-without-redis", "en")
	s.must(s.Store.Close())
	b.open("/")
	b.has("#part-mysql", "no response")
	b.inspect("overview-without-mysql", "en")
}
