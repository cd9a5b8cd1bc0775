package bench

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
)

// subject returns the design as a subject: every caller's users grab a share each. A refused user
// repeats the grab at once until it succeeds.
func (k kind) subject(p place) subject {
	return subject{k.number, func(tb testing.TB, callers int, length time.Duration) attempt {
		p := p.apart(tb)
		p.conns = callers
		d, err := k.open(tb.Context(), p)
		if err != nil {
			tb.Fatal(err)
		}
		id := newPacketID(tb)
		d.load(tb, id, sharesAt(k.rate, length, callers, 1))
		receipts := make([][]receipt, callers)
		a := attempt{finish: func(tb testing.TB, done int) {
			answered := collectClaims(1, receipts)
			answered.total(tb, done)
			answered.agree(tb, 0, d.acknowledged(tb, id))
			if err := d.close(); err != nil {
				tb.Error(err)
			}
		}}
		for i := range callers {
			users, ctx := newUser(i), tb.Context()
			a.callers = append(a.callers, func() error {
				name := users.next()
				for {
					got, err := d.grab(ctx, id, name)
					switch {
					case err != nil:
						return fmt.Errorf("%s: %w", name, err)
					case got.outcome == won:
						receipts[i] = append(receipts[i], receipt{0, name, got.share})
						return nil
					case got.outcome == none, got.outcome == nothing:
						return errSoldOut
					case got.outcome != busy:
						return fmt.Errorf("%s: %v", name, got.outcome)
					}
				}
			})
		}
		return a
	}}
}

// round is a crowd of as many users as shares, all grabbing once at the same moment, and some users
// after them.
type round struct {
	Users   int     `json:"users"`
	Refused int     `json:"refused"`      // users without a share while shares were left
	Answer  float64 `json:"statements"`   // of the database per claimed share, before the answers
	After   float64 `json:"after_answer"` // per share, by the background work until the claim is recorded
	Late    float64 `json:"late"`         // per user after the last share
}

// crowd counts the cost of one round, and checks that every acknowledged share is in MySQL in the
// end.
func (k kind) crowd(tb testing.TB, p place, count *statementCounter, users int) round {
	tb.Helper()
	p = p.apart(tb)
	p.conns = 128
	d := p.opened(tb, k)
	id := newPacketID(tb)
	d.load(tb, id, users)
	answers, errs := make([]answer, users), make([]error, users)
	before := count.statements(tb)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = d.grab(tb.Context(), id, "c"+strconv.Itoa(i))
		})
	}
	close(start)
	wg.Wait()
	answered := count.statements(tb)
	wins := map[string]int{}
	for i, a := range answers {
		if errs[i] != nil {
			tb.Fatal(errs[i])
		}
		if a.outcome == won {
			wins["c"+strconv.Itoa(i)] = a.share
		}
	}
	worked := count.statements(tb)
	if err := d.work(tb.Context(), id); err != nil {
		tb.Fatal(err)
	}
	done := count.statements(tb)
	if err := sameClaims(wins, d.booked(tb, id)); err != nil {
		tb.Fatalf("%s: %v", k.number, err)
	}
	r := round{Users: users, Refused: users - len(wins), Answer: float64(answered-before) / float64(len(wins)),
		After: float64(done-worked) / float64(len(wins))}
	r.Late = k.late(tb, d, id, count, users)
	return r
}

// late makes users grab after the last share is claimed.
func (k kind) late(tb testing.TB, d design, id string, count *statementCounter, users int) float64 {
	tb.Helper()
	// Finish the work of the crowd first.
	for i := 0; ; i++ {
		a, err := d.grab(tb.Context(), id, "rest"+strconv.Itoa(i))
		if err != nil {
			tb.Fatal(err)
		}
		if a.outcome == none || a.outcome == nothing {
			break
		}
	}
	before := count.statements(tb)
	for i := range users {
		if a, err := d.grab(tb.Context(), id, "l"+strconv.Itoa(i)); err != nil || a.outcome == won {
			tb.Fatal(a.outcome, err)
		}
	}
	return float64(count.statements(tb)-before) / float64(users)
}

// statementCounter reads the number of executed statements from the database.
type statementCounter struct {
	db  *sql.DB
	own int // statements of the counter itself
}

// statements returns the number of statements of all clients since the start of the server, without those of the counter.
// Executing a statement counts, preparing it does not.
func (c *statementCounter) statements(tb testing.TB) int {
	tb.Helper()
	var name string
	var n int
	if err := c.db.QueryRowContext(tb.Context(), "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		tb.Fatal(err)
	}
	c.own++
	return n - c.own
}

// baselineRun is one design in the report.
type baselineRun struct {
	kind
	round round
	runs  [][]sample // by number of callers
}

// baselineNumbers is one design and one number of callers as a line of JSON.
type baselineNumbers struct {
	Design    string  `json:"design"`
	Callers   int     `json:"callers"`
	PerSecond rate    `json:"per_second"`
	P50Millis rate    `json:"p50_ms"`
	P99Millis rate    `json:"p99_ms"`
	Ratio     float64 `json:"ours_is"` // so many times it
	Loses     string  `json:"kill_loses"`
	Crowd     round   `json:"crowd"`
}

// measureBaselines compares ours with the eight published designs.
func measureBaselines(t *testing.T, p plan, say func(string, ...any)) []result {
	callers, users, rounds, length := []int{4}, 40, 1, min(p.length, 50*time.Millisecond)
	if p.full {
		callers, users, rounds, length = []int{20, 128}, 1_000, p.rounds, p.length
	}
	server := stacktest.FreshRedis(t, noRewrite...)
	at := newPlace(t, server.Addr)
	db, err := sql.Open("mysql", at.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	count := &statementCounter{db: db}

	all := make([]*baselineRun, len(kinds()))
	for i, k := range kinds() {
		all[i] = &baselineRun{kind: k, round: k.crowd(t, at, count, users), runs: make([][]sample, len(callers))}
		say("a crowd of %d for %d shares: %s", users, users, k.number)
	}
	at.rows = false
	for i, n := range callers {
		for r := range rounds {
			for _, b := range all { // alternating, so that other load affects all alike
				b.runs[i] = append(b.runs[i], run(t, b.subject(at), n, length))
			}
			say("%d callers, round %d of %d", n, r+1, rounds)
		}
	}
	return []result{baselineResult(all, callers, users, rounds, length)}
}

// label names a design in the plot, with its 99th percentiles.
func (b *baselineRun) label(callers []int) string {
	tails := make([]string, len(callers))
	for i, n := range callers {
		tails[i] = fmt.Sprintf("%s ms at %d", figure(spread(b.runs[i], p99).Median), n)
	}
	return b.number + " " + b.name + "; p99 " + strings.Join(tails, ", ")
}

// baselineResult makes the table and the plot.
func baselineResult(all []*baselineRun, callers []int, users, rounds int, length time.Duration) result {
	out := result{
		title:   "ours beside eight published designs",
		columns: []string{"design"},
		plot:    &plot{title: "Grabs a second, and p99 by number of callers", unit: "grabs/s", log: true},
		notes: []string{
			"All on the same Redis with appendfsync always and the same MariaDB, which may write its log once a second: that favours the five " +
				"(S1.1 to S1.5) that wait for it.",
			"Each caller grabs for one new user after another. A refused user (S1.2, S1.4) repeats the grab at once; the time of the " +
				"grab ends with the share.",
			fmt.Sprintf("Refused: of %d users who grab once, at the same moment, from a packet of %d shares, those without a share.", users, users),
			"Statements: those of the database for each claimed share of that round, before the answer and then by the background " +
				"work, and for each user after the last share.",
			"S0, S1.6, S3 and ours record in MySQL after the answer, and none of that work runs while grabs are measured. Ours " +
				"records in a workflow; its statements are those of store.RecordClaim, which writes claim, payment and ledger in one " +
				"transaction. None of the eight has a ledger.",
			fmt.Sprintf("Medians of %s of %v each, all nine in turn.", runs(rounds), length),
			"A kill -9 loses: what is lost when a process is killed at the worst moment, as TestBaselines shows. After a kill of " +
				"Redis none of the nine has lost an acknowledged share.",
		},
	}
	for _, n := range callers {
		head := fmt.Sprintf("%d callers: ", n)
		out.columns = append(out.columns, head+"grabs/s", "min", "max", "p50 ms", "p99 ms", "ours is")
	}
	out.columns = append(out.columns, "refused of "+strconv.Itoa(users), "statements a grab", "afterwards", "too late", "a kill -9 loses")
	ours := all[len(all)-1]
	for _, b := range all {
		row := []string{b.number + " " + b.name}
		for i, n := range callers {
			per, mid, tail := spread(b.runs[i], perSecond), spread(b.runs[i], p50), spread(b.runs[i], p99)
			ratio := spread(ours.runs[i], perSecond).Median / per.Median
			row = append(row, figure(per.Median), figure(per.Min), figure(per.Max),
				fmt.Sprintf("%.2f", mid.Median), fmt.Sprintf("%.2f", tail.Median), fmt.Sprintf("%.1fx", ratio))
			out.plot.bars = append(out.plot.bars, per.bar(b.label(callers), fmt.Sprintf("%d callers", n)))
			out.numbers = append(out.numbers, baselineNumbers{Design: b.number, Callers: n, PerSecond: per, P50Millis: mid, P99Millis: tail,
				Ratio: ratio, Loses: b.loses, Crowd: b.round})
		}
		out.rows = append(out.rows, append(row, strconv.Itoa(b.round.Refused), fmt.Sprintf("%.2f", b.round.Answer),
			fmt.Sprintf("%.2f", b.round.After),
			fmt.Sprintf("%.2f", b.round.Late), b.loses))
	}
	return out
}
