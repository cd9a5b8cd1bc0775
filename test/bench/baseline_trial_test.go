package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hongbao/internal/devstack/stacktest"
)

// violation is a broken guarantee towards users.
type violation string

const (
	lostShare  violation = "a share is lost: it is not claimed and cannot be claimed"
	unrecorded violation = "an acknowledged share is not booked for its user"
	twice      violation = "a share is booked for two users"
	refused    violation = "a user leaves with nothing although shares are left"
	waits      violation = "no grab succeeds while a process is dead or stopped"
	noAmount   violation = "a repeated grab does not return the share"
	sameAnswer violation = "a winner and a late user get the same answer"
	lockedOut  violation = "a user is locked out by grabs of empty packets"
	byHand     violation = "staff have to find out what happened"
)

// trial is a packet that is grabbed during a fault, and the violations that were found.
type trial struct {
	testing.TB
	design
	packet string
	shares int
	acks   map[string]int // acknowledged shares by user
	found  map[violation]bool
}

func newTrial(tb testing.TB, d design, shares int) *trial {
	tb.Helper()
	t := &trial{TB: tb, design: d, packet: newPacketID(tb), shares: shares, acks: map[string]int{}, found: map[violation]bool{}}
	d.load(tb, t.packet, shares)
	return t
}

func (t *trial) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grabAs makes a user grab, and records the answer.
func (t *trial) grabAs(user string) answer {
	t.Helper()
	a, err := t.grab(t.Context(), t.packet, user)
	t.must(err)
	t.recordAnswer(user, a)
	return a
}

// recordAnswer records the share of an answer. It fails when the user has got another share before.
func (t *trial) recordAnswer(user string, a answer) {
	t.Helper()
	if a.outcome != won && a.outcome != had || a.share < 0 {
		return
	}
	if before, ok := t.acks[user]; ok && before != a.share {
		t.Fatalf("%s got share %d and then share %d", user, before, a.share)
	}
	t.acks[user] = a.share
}

// grabAll makes each user grab and returns the refused ones.
func (t *trial) grabAll(users ...string) (refusedUsers []string) {
	t.Helper()
	for _, user := range users {
		if t.grabAs(user).outcome == busy {
			refusedUsers = append(refusedUsers, user)
		}
	}
	return refusedUsers
}

// judge compares the rows in MySQL with the answers, after at least as many users as shares have grabbed.
func (t *trial) judge() {
	t.Helper()
	booked := t.booked(t, t.packet)
	holders := map[int]string{}
	for user, seq := range booked {
		if _, ok := holders[seq]; ok {
			t.found[twice] = true
		}
		holders[seq] = user
	}
	for user, seq := range t.acks {
		if got, ok := booked[user]; !ok || got != seq {
			t.found[unrecorded] = true
			holders[seq] = user // it is booked, although wrongly
		}
	}
	if len(holders) < t.shares {
		t.found[lostShare] = true
	}
	if p, ok := t.design.(interface {
		manualRepairs(tb testing.TB, packet string) int
	}); ok && p.manualRepairs(t, t.packet) > 0 {
		t.found[byHand] = true
	}
}

// expect fails the test unless exactly these violations were found.
func (t *trial) expect(want []violation) {
	t.Helper()
	for o := range t.found {
		if !slices.Contains(want, o) {
			t.Errorf("%s", o)
		}
	}
	for _, o := range want {
		if !t.found[o] {
			t.Errorf("expected, and not found: %s", o)
		}
	}
}

// TestBaselines runs the same trials with all nine designs: each of the eight shows exactly its known violations; ours shows
// none.
func TestBaselines(t *testing.T) {
	server := stacktest.FreshRedis(t)
	p := newPlace(t, server.Addr)
	t.Run("killed", func(t *testing.T) { killedTrials(t, p) })
	t.Run("stalled", func(t *testing.T) { stalledTrials(t, p) })
	t.Run("repeated", func(t *testing.T) { repeatedGrabTrials(t, p) })
	t.Run("emptied", func(t *testing.T) { emptiedTrials(t, p) })
	t.Run("crowded", func(t *testing.T) { crowdedTrials(t, p) })
	t.Run("redis killed", func(t *testing.T) { redisKilledTrials(t, p, server) })
}

// newPlace creates a database with the tables of all designs.
func newPlace(tb testing.TB, redisAddr string) place {
	tb.Helper()
	p := place{redis: redisAddr, dsn: stacktest.MariaDB(tb), rows: true, process: "w1"}
	db, err := sql.Open("mysql", p.dsn)
	if err != nil {
		tb.Fatal(err)
	}
	stacktest.Migrate(tb, p.dsn)
	for _, table := range baselineSchema {
		if err == nil {
			_, err = db.ExecContext(tb.Context(), table)
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		tb.Fatal(err)
	}
	return p
}

// apart returns a place for a trial that shares no names with others.
func (p place) apart(tb testing.TB) place {
	tb.Helper()
	p.space = newPacketID(tb)
	return p
}

// opened opens a design that is closed at the end of the test.
func (p place) opened(tb testing.TB, k kind) design {
	tb.Helper()
	d, err := k.open(tb.Context(), p)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// victim is a process that grabs once, does the background work, and kills itself at a step of it.
type victim struct{ Design, Step, Redis, DSN, Space, Packet, User string }

// victimVar is the variable that makes the test binary a victim.
const victimVar = "HONGBAO_BENCH_VICTIM"

// TestVictim is not a test: it is the process that killedTrials kills.
func TestVictim(t *testing.T) {
	text := os.Getenv(victimVar)
	if text == "" {
		t.Skip("runs only as a process that TestBaselines starts")
	}
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	k, err := kindOf(v.Design)
	if err != nil {
		t.Fatal(err)
	}
	d, err := k.open(t.Context(), place{redis: v.Redis, dsn: v.DSN, space: v.Space, process: "w0", at: func(step string) {
		if step == v.Step {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.grab(t.Context(), v.Packet, v.User)
	t.Fatal("not killed", errors.Join(err, d.work(t.Context(), v.Packet)))
}

// killVictim runs a victim until it is killed.
func killVictim(tb testing.TB, v victim) {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), program, "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimVar+"="+string(text))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		tb.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		tb.Fatalf("the process was not killed: %v\n%s", err, out)
	}
}

// killedTrials kills the process that serves alice with SIGKILL at every step of a design. Alice
// repeats the grab; bob and carol grab the rest, dave is one too many. Then leases end and the
// background work is done.
func killedTrials(t *testing.T, p place) {
	for _, k := range kinds() {
		for _, c := range k.kills {
			t.Run(k.number+"/"+c.step, func(t *testing.T) {
				p := p.apart(t)
				if !k.released {
					p.tries = 3
				}
				tr := newTrial(t, p.opened(t, k), 3)
				killVictim(t, victim{k.number, c.step, p.redis, p.dsn, p.space, tr.packet, "alice"})
				again := tr.grabAs("alice")
				late := tr.grabAll("bob", "carol", "dave")
				switch again.outcome {
				case busy:
					late = append([]string{"alice"}, late...)
				case nothing:
					tr.found[noAmount] = true
				}
				tr.found[waits] = len(late) > 0
				tr.must(tr.lapse(t.Context(), tr.packet))
				tr.found[refused] = len(tr.grabAll(late...)) > 0
				tr.must(tr.work(t.Context(), tr.packet))
				tr.judge()
				tr.drop()
				tr.expect(c.want)
			})
		}
	}
}

// drop clears the violations that were expected and not found.
func (t *trial) drop() {
	for o, is := range t.found {
		if !is {
			delete(t.found, o)
		}
	}
}

// stalledTrials suspends the process that serves alice at every step, as a long pause or a network partition does: its
// connections stay open without traffic. Other users grab, leases end, others grab again. Then the process continues.
func stalledTrials(t *testing.T, p place) {
	for _, k := range kinds() {
		for _, c := range k.stalls {
			t.Run(k.number+"/"+c.step, func(t *testing.T) {
				p := p.apart(t)
				p.tries = 3
				tr := newTrial(t, p.opened(t, k), 3)
				s := suspendAt(t, p, k, c.step, tr.packet, "alice")
				late := tr.grabAll("bob", "carol", "dave")
				tr.found[waits] = len(late) > 0
				tr.must(tr.lapse(t.Context(), tr.packet))
				late = tr.grabAll(late...)
				tr.must(tr.work(t.Context(), tr.packet))
				tr.recordAnswer("alice", s.resume())
				tr.found[refused] = len(tr.grabAll(late...)) > 0
				tr.must(tr.work(t.Context(), tr.packet))
				tr.judge()
				tr.drop()
				tr.expect(c.want)
			})
		}
	}
}

// suspended is a process that is stopped at a step.
type suspended struct {
	testing.TB
	resumed chan struct{}
	ended   chan error
	answer  answer
}

// suspendAt grabs and does the background work in another process, up to the step.
func suspendAt(tb testing.TB, p place, k kind, step, packet, user string) *suspended {
	tb.Helper()
	s := &suspended{TB: tb, resumed: make(chan struct{}), ended: make(chan error, 1)}
	reached := make(chan struct{})
	stopped := false
	p.process = "w0"
	p.at = func(at string) {
		if at == step && !stopped { // only the first time
			stopped = true
			close(reached)
			<-s.resumed
		}
	}
	d := p.opened(tb, k)
	ctx := context.WithoutCancel(tb.Context())
	go func() {
		var err error
		s.answer, err = d.grab(ctx, packet, user)
		s.ended <- errors.Join(err, d.work(ctx, packet))
	}()
	select {
	case <-reached:
	case err := <-s.ended:
		tb.Fatalf("the process ended before step %q: %v", step, err)
	}
	return s
}

// resume continues the process to its end and returns the answer to its user.
func (s *suspended) resume() answer {
	s.Helper()
	close(s.resumed)
	if err := <-s.ended; err != nil {
		s.Fatal(err)
	}
	return s.answer
}

// repeatedGrabTrials checks that alice, whose answer was lost, gets the same answer to a repeated
// grab, and that carol, who is too late, gets another.
func repeatedGrabTrials(t *testing.T, p place) {
	for _, k := range kinds() {
		t.Run(k.number, func(t *testing.T) {
			tr := newTrial(t, p.apart(t).opened(t, k), 2)
			if a := tr.grabAs("alice"); a.outcome != won {
				t.Fatalf("alice: %v", a.outcome)
			}
			again := tr.grabAs("alice")
			tr.found[noAmount] = again.outcome != had || again.share != tr.acks["alice"]
			if a := tr.grabAs("bob"); a.outcome != won {
				t.Fatalf("bob: %v", a.outcome)
			}
			later := tr.grabAs("alice")
			tr.found[sameAnswer] = later.outcome == tr.grabAs("carol").outcome
			if later.outcome != again.outcome {
				t.Errorf("alice: %v, and after the last share %v", again.outcome, later.outcome)
			}
			tr.must(tr.work(t.Context(), tr.packet))
			tr.judge()
			tr.drop()
			tr.expect(k.repeated)
		})
	}
}

// emptiedTrials makes alice grab from an empty packet repeatedly, and then from a packet with a
// share.
func emptiedTrials(t *testing.T, p place) {
	for _, k := range kinds() {
		t.Run(k.number, func(t *testing.T) {
			d := p.apart(t).opened(t, k)
			empty := newTrial(t, d, 1)
			empty.grabAs("bob")
			for range s3Limit {
				if a := empty.grabAs("alice"); a.outcome != none && a.outcome != nothing {
					t.Fatalf("alice: %v", a.outcome)
				}
			}
			tr := newTrial(t, d, 1)
			a := tr.grabAs("alice")
			tr.found[lockedOut] = a.outcome == barred
			if a.outcome != barred && a.outcome != won {
				t.Fatalf("alice: %v", a.outcome)
			}
			tr.drop()
			tr.expect(k.emptied)
		})
	}
}

// redisKilledTrials kills Redis while a crowd grabs, and restarts it: all acknowledged shares are recorded. With appendfsync
// always that is so for all nine designs: only crashes of processes lose data.
func redisKilledTrials(t *testing.T, p place, server *stacktest.Server) {
	for _, k := range kinds() {
		t.Run(k.number, func(t *testing.T) {
			const users, before = 60, 20
			p := p.apart(t)
			tr := newTrial(t, p.opened(t, k), users)
			type reply struct {
				user string
				answer
				err error
			}
			answers := make(chan reply, users)
			for i := range users {
				user := fmt.Sprint("u", i)
				go func() {
					ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
					defer cancel()
					a, err := tr.grab(ctx, tr.packet, user)
					answers <- reply{user, a, err}
				}()
			}
			for n := range users {
				if a := <-answers; a.err == nil {
					tr.recordAnswer(a.user, a.answer)
				}
				if n == before {
					server.Kill()
					server.Restart(t)
				}
			}
			if len(tr.acks) == 0 {
				t.Fatal("nothing was acknowledged")
			}
			fresh := p.opened(t, k) // the old connections may be closed
			tr.must(fresh.lapse(t.Context(), tr.packet))
			tr.must(fresh.work(t.Context(), tr.packet))
			tr.judge()
			delete(tr.found, lostShare) // a user with an error may repeat the grab, which this trial does not
			tr.expect(nil)
		})
	}
}

// TestBaselineViolations checks that judge finds each violation in records that contain it.
func TestBaselineViolations(t *testing.T) {
	for _, c := range []struct {
		name         string
		acks, booked map[string]int
		repairs      int
		want         []violation
	}{
		{"fine", map[string]int{"a": 0}, map[string]int{"a": 0, "b": 1}, 0, nil},
		{"lost", map[string]int{"a": 0}, map[string]int{"a": 0}, 0, []violation{lostShare}},
		{"not booked", map[string]int{"a": 0, "b": 1}, map[string]int{"b": 1}, 0, []violation{unrecorded}},
		{"another", map[string]int{"a": 0}, map[string]int{"a": 1, "b": 0}, 0, []violation{unrecorded}},
		{"twice", map[string]int{"a": 0, "c": 0}, map[string]int{"a": 0, "b": 1, "c": 0}, 0, []violation{twice}},
		{"left to staff", nil, map[string]int{"a": 0, "b": 1}, 1, []violation{byHand}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := &trial{TB: t, design: fixedRecords{rows: c.booked, repairs: c.repairs}, shares: 2, acks: c.acks, found: map[violation]bool{}}
			tr.judge()
			tr.expect(c.want)
		})
	}
}

// fixedRecords is a design with fixed records.
type fixedRecords struct {
	design
	rows    map[string]int
	repairs int
}

func (w fixedRecords) booked(testing.TB, string) map[string]int { return w.rows }
func (w fixedRecords) manualRepairs(testing.TB, string) int     { return w.repairs }

// TestBaselineKinds checks that the table is complete, and that ours has no expected violation.
func TestBaselineKinds(t *testing.T) {
	var numbers []string
	for _, k := range kinds() {
		numbers = append(numbers, k.number)
		if k.name == "" || k.loses == "" || len(k.kills) == 0 || len(k.stalls) == 0 {
			t.Errorf("%s: %+v", k.number, k)
		}
	}
	if got := strings.Join(numbers, " "); got != "S0 S1.1 S1.2 S1.3 S1.4 S1.5 S1.6 S3 ours" {
		t.Error(got)
	}
	for _, c := range slices.Concat(oursKind.kills, oursKind.stalls) {
		if len(c.want) > 0 {
			t.Errorf("violations of ours are expected at %s: %q", c.step, c.want)
		}
	}
	if n := len(oursKind.repeated) + len(oursKind.crowded) + len(oursKind.emptied); n > 0 {
		t.Errorf("%d violations of ours are expected", n)
	}
}
