package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	enumspb "go.temporal.io/api/enums/v1"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/workflows"
)

// measureBig measures packets of up to a million shares: the time until they open, their memory and
// disk, and the cost of their grabs; and ten thousand packets made at once.
func measureBig(t *testing.T, p plan, say func(string, ...any)) []result {
	sizes, paid := []int{1_000, 100_000, packet.MaxShares}, 2_000
	if !p.full {
		sizes, paid = []int{3, 50}, 10
	}
	var out []result
	t.Run("open", func(t *testing.T) { out = append(out, measureOpening(t, p, sizes, paid, say)...) })
	if t.Failed() {
		return nil
	}
	return append(out, measureGrabsBySize(t, p, say), measureStaging(t, p, say))
}

// opening is one packet from the request to the moment at which it can be grabbed, and the time of
// each step.
type opening struct {
	answer, open                 time.Duration // from the request on
	status                       int
	before, fund, load           time.Duration // until funding begins; rows in MySQL; shares in Redis
	mysql, redis, worker, engine time.Duration // of processors
}

// measureOpening makes packets over HTTP with a worker, and measures the room they take.
func measureOpening(t *testing.T, p plan, sizes []int, paid int, say func(string, ...any)) []result {
	r := newRig(t)
	w := spawn(t, r.settings("worker"))
	address := r.listen(t)
	r.post(t, w, address, 1) // opens connections and loads scripts
	empty := r.tableBytes(t)
	largest, written := sizes[len(sizes)-1], 0
	all := make([][]opening, len(sizes))
	for round := range p.rounds {
		for i, size := range sizes {
			o := r.post(t, w, address, size)
			say("%s shares open after %v, round %d of %d", figure(float64(size)), o.open.Round(time.Millisecond), round+1, p.rounds)
			all[i], written = append(all[i], o), written+size
		}
	}
	loaded := float64(r.tableBytes(t)-empty) / float64(written)
	say("MySQL: %d shares are claimed and paid", paid)
	settled := r.paidBytes(t, paid)
	memory := measureMemory(t, largest, say)
	return []result{openingTable(sizes, all, p), roomTable(largest, written, paid, loaded, settled, memory)}
}

// post makes one packet over HTTP and returns when it is open.
func (r *rig) post(t *testing.T, w *child, address string, shares int) opening {
	t.Helper()
	var o opening
	before, began := r.bill(t, w), time.Now()
	type reply struct {
		status int
		body   []byte
		err    error
		took   time.Duration
	}
	key := strconv.FormatInt(packetSerial.Add(1), 10)
	replied := make(chan reply, 1)
	go func() {
		req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI("http://" + address + "/v1/packets")
		req.Header.SetMethod(http.MethodPost)
		req.Header.SetContentType("application/json")
		req.Header.Set("Authorization", "Bearer "+r.token)
		req.Header.Set("Idempotency-Key", "big-"+key)
		req.SetBodyString(fmt.Sprintf(`{"sender_id":"sender%s","total_amount":%d,"share_count":%d}`, key, 2_000*int64(shares), shares))
		err := fasthttp.DoTimeout(req, res, patience)
		replied <- reply{res.StatusCode(), append([]byte(nil), res.Body()...), err, time.Since(began)}
	}()
	got := <-replied
	if got.err != nil || got.status != http.StatusCreated && got.status != http.StatusAccepted {
		t.Fatalf("create: %d %s, %v", got.status, got.body, got.err)
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(got.body, &made); err != nil {
		t.Fatal(err)
	}
	r.awaitOpen(t, []string{made.ID})
	o.status, o.answer = got.status, got.took
	after := r.bill(t, w)
	o.mysql, o.redis, o.worker, o.engine = after.mysql-before.mysql, after.redis-before.redis, after.worker-before.worker,
		after.temporal-before.temporal
	r.steps(t, made.ID, began, &o)
	r.complete(t, made.ID, shares)
	return o
}

// steps reads the time of each activity from the packet's history, which has the server's times of
// both ends. A small packet has none: it is open when its run waits for the packet's end.
func (r *rig) steps(t *testing.T, id string, began time.Time, o *opening) {
	t.Helper()
	names, scheduled := map[int64]string{}, map[int64]time.Time{}
	await(t, "the history has the opened pool", func() bool {
		events := r.client.GetWorkflowHistory(t.Context(), workflows.PacketID(id), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			at := e.GetEventTime().AsTime()
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				names[e.GetEventId()], scheduled[e.GetEventId()] = a.GetActivityType().GetName(), at
			}
			if e.GetTimerStartedEventAttributes() != nil && o.open == 0 {
				o.open = at.Sub(began)
			}
			done := e.GetActivityTaskCompletedEventAttributes()
			if done == nil {
				continue
			}
			begin := scheduled[done.GetScheduledEventId()]
			switch names[done.GetScheduledEventId()] {
			case "Fund":
				o.before, o.fund = begin.Sub(began), at.Sub(begin)
			case "OpenPool":
				o.load, o.open = at.Sub(begin), at.Sub(began)
			}
		}
		return o.open > 0
	})
}

// complete fails the test unless MySQL and the pool have every share of a packet, with its amount.
func (r *rig) complete(t *testing.T, id string, shares int) {
	t.Helper()
	n, sum := r.number(t, "SELECT COUNT(*) FROM shares WHERE packet_id = ?", id),
		r.number(t, "SELECT COALESCE(SUM(amount), 0) FROM shares WHERE packet_id = ?", id)
	if n != int64(shares) || sum != 2_000*int64(shares) {
		t.Fatalf("packet %s has %d shares of %d fen, want %d", id, n, sum, shares)
	}
	view, err := r.pool.View(t.Context(), id)
	if err != nil || view.RemainingCount != shares {
		t.Fatalf("the pool has %d shares, want %d: %v", view.RemainingCount, shares, err)
	}
}

// tableBytes returns the size of all tables and their indexes in MySQL.
func (r *rig) tableBytes(t *testing.T) int64 {
	t.Helper()
	rows, err := r.db.QueryContext(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	r.exec(t, "ANALYZE TABLE "+strings.Join(names, ", "))
	return r.number(t, "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()")
}

// paidBytes lets every share of a packet be claimed and paid, and returns the size in MySQL per share: claim, payout, attempt,
// transfers and events, with all indexes.
func (r *rig) paidBytes(t *testing.T, shares int) float64 {
	t.Helper()
	before := r.tableBytes(t)
	ids := r.stage(t, 1, wanted{sender: "sender", shares: shares, life: time.Hour})
	r.awaitOpen(t, ids)
	won, err := r.grabAll(t.Context(), ids, "room", shares)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "all are paid", func() bool {
		return r.number(t, "SELECT COUNT(*) FROM payments WHERE packet_id = ? AND kind = 'p' AND status = ?", ids[0],
			string(payout.StatusPaid)) == int64(shares)
	})
	r.paidOnce(t, "transfer", "room", won)
	return float64(r.tableBytes(t)-before) / float64(shares)
}

func openingTable(sizes []int, all [][]opening, p plan) result {
	out := result{title: "from POST to open", columns: []string{"shares", "seconds to open", "least", "most", "until funding", "rows in MySQL",
		"shares in Redis", "answer", "MySQL CPU s", "Redis CPU s", "worker CPU s", "Temporal CPU s"},
		plot: &plot{title: "From POST to open", unit: "s", log: true},
		notes: []string{
			fmt.Sprintf("Over HTTP, with one worker, MariaDB with `innodb_flush_log_at_trx_commit=1`, Redis with `appendfsync always`; medians "+
				"of %s, the sizes in turn. The machine has nothing else to do, and all parts share it.", runs(p.rounds)),
			"Until funding: the packet is staged, its workflow started, its row written and the sender charged. Rows: all shares in one " +
				"transaction with the change to open. After 3 s the API answers 202 and the packet opens later. Up to 2,000 shares all of that is " +
				"one step.",
		}}
	for i, size := range sizes {
		of := func(pick func(opening) time.Duration) rate {
			var seconds []float64
			for _, o := range all[i] {
				seconds = append(seconds, pick(o).Seconds())
			}
			return rateOf(seconds)
		}
		open := of(func(o opening) time.Duration { return o.open })
		row := []string{figure(float64(size)), fmt.Sprintf("%.3f", open.Median), fmt.Sprintf("%.3f", open.Min), fmt.Sprintf("%.3f", open.Max)}
		for _, pick := range []func(opening) time.Duration{func(o opening) time.Duration { return o.before },
			func(o opening) time.Duration { return o.fund }, func(o opening) time.Duration { return o.load }} {
			part := "-"
			if median := of(pick).Median; median > 0 {
				part = fmt.Sprintf("%.3f", median)
			}
			row = append(row, part)
		}
		row = append(row, strconv.Itoa(all[i][0].status))
		for _, pick := range []func(opening) time.Duration{func(o opening) time.Duration { return o.mysql },
			func(o opening) time.Duration { return o.redis }, func(o opening) time.Duration { return o.worker },
			func(o opening) time.Duration { return o.engine }} {
			row = append(row, fmt.Sprintf("%.2f", of(pick).Median))
		}
		out.rows = append(out.rows, row)
		out.plot.bars = append(out.plot.bars, open.bar("", figure(float64(size))+" shares"))
		out.numbers = append(out.numbers, map[string]any{"kind": "opening", "shares": size, "open_seconds": open,
			"fund_seconds": of(func(o opening) time.Duration { return o.fund }),
			"load_seconds": of(func(o opening) time.Duration { return o.load })})
	}
	return out
}

func roomTable(largest, written, paid int, loaded, settled float64, memory shareMemory) result {
	row := func(where, when string, bytes float64, of int) []string {
		return []string{where, when, figure(bytes), figure(float64(of))}
	}
	return result{title: "bytes a share", columns: []string{"where", "when", "bytes a share", "shares measured"},
		rows: [][]string{
			row("Redis", "the packet is open", memory.loaded, largest), row("Redis", "all are claimed, no hand-off has been read", memory.claimed,
				largest),
			row("Redis", "all hand-offs are acknowledged, the claims are in the lists of their users", memory.drained, largest),
			row("MySQL", "the packet is open", loaded, written), row("MySQL", "all are claimed and paid", settled, paid),
		},
		notes: []string{
			"Redis: `used_memory`; users have ids of up to 7 bytes and no profile. MySQL: rows and keys of all tables after ANALYZE; " +
				"paid means claim, payout, attempt, transfers and events.",
			fmt.Sprintf("A share is %s of money in both. A packet of %s shares stays in Redis until it is closed.", money.Fen(2_000),
				figure(float64(largest))),
		},
		numbers: []any{map[string]any{"kind": "bytes a share", "redis_open": memory.loaded, "redis_claimed": memory.claimed,
			"redis_drained": memory.drained, "mysql_open": loaded, "mysql_paid": settled}},
	}
}
