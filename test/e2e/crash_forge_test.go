package e2e

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"

	"hongbao/test/wait"
)

// The stories of this file forge what otherwise needs a defect or a loss: in Redis, in MySQL, in
// Temporal.

func (c *crashes) redis(t *testing.T) *redis.Client {
	t.Helper()
	r := redis.NewClient(&redis.Options{Addr: c.env("HONGBAO_REDIS_ADDR")})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (c *crashes) mysql(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", c.env("HONGBAO_MYSQL_DSN"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (c *crashes) temporal(t *testing.T) client.Client {
	t.Helper()
	tc, err := client.NewLazyClient(client.Options{HostPort: c.env("HONGBAO_TEMPORAL_ADDRESS"), Namespace: c.env("HONGBAO_TEMPORAL_NAMESPACE"),
		Logger: noLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tc.Close)
	return tc
}

// noLogger logs nothing.
type noLogger struct{}

func (noLogger) Debug(string, ...any) {}
func (noLogger) Info(string, ...any)  {}
func (noLogger) Warn(string, ...any)  {}
func (noLogger) Error(string, ...any) {}

// count returns the number that a query selects.
func count(t *testing.T, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// keyOf returns the packet's key in Redis, and the stream of its lane.
func (l *packetLife) keyOf(t *testing.T, r *redis.Client) (packet, handoff string) {
	t.Helper()
	keys, err := r.Keys(t.Context(), "hb:{*}:packet:"+l.id).Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("key of packet %s: %q %v", l.id, keys, err)
	}
	lane, _, _ := strings.Cut(keys[0], "packet:")
	return keys[0], lane + "handoff"
}

// lostHandOff deletes hand-offs before a worker reads them. Their payouts are found by comparing
// Redis with MySQL (R11), by the drain or the watch; when the watch was first, the story repeats
// with another packet.
func lostHandOff(t *testing.T, c *crashes, name string) {
	for n := range 4 {
		one := fmt.Sprintf("%s-%d", name, n)
		l := c.newPacketLife(t, one, 30)
		l.loseHandOff(t, one)
		l.recall(t)
		l.settled(t)
		if c.reached() {
			return
		}
	}
}

// loseHandOff makes users claim until one of their hand-offs is deleted unread.
func (l *packetLife) loseHandOff(t *testing.T, name string) {
	t.Helper()
	r := l.redis(t)
	_, stream := l.keyOf(t, r)
	n := 0
	wait.Until(t, "a hand-off is lost", func() bool { // other kills may come in between
		lost := 0
		still := n < 25 && l.whileStopped(t, func() {
			l.grabbed(t, fmt.Sprintf("%s-%d", name, n))
			n++
			lost = l.deleteHandOffs(t, r, stream)
		})
		return still && lost > 0
	})
}

// deleteHandOffs deletes the entries of a lane that hold claims of the packet.
func (l *packetLife) deleteHandOffs(t *testing.T, r *redis.Client, stream string) (deleted int) {
	t.Helper()
	entries, err := r.XRange(t.Context(), stream, "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Values["kind"] != "claims" || e.Values[l.id] == nil {
			continue
		}
		n, err := r.XDel(t.Context(), stream, e.ID).Result()
		if err != nil {
			t.Fatal(err)
		}
		deleted += int(n)
	}
	return deleted
}

// lapsed is a packet that expires before its charge is sent, because the provider is held: its
// sender is not charged (R2). Its expiry is moved by hand to save time. Other stories release the
// hold at any time; then the story repeats with another packet.
func lapsed(t *testing.T, c *crashes, name string) {
	r, db := c.redis(t), c.mysql(t)
	defer c.decided(t, "OPS", "/providers/sandbox/release", name+"-last", 200, map[string]any{"reason": "the end of the test"})
	for n := range 12 {
		one := fmt.Sprintf("%s-%d", name, n)
		c.decided(t, "OPS", "/providers/sandbox/hold", one, 200, map[string]any{"reason": "the provider is down"})
		a := c.post(t, c.api("/v1/packets"), c.env("HONGBAO_APP_KEY"), map[string]any{"sender_id": one, "total_amount": crashTotal,
			"share_count": 3}, "Idempotency-Key", one)
		l := &packetLife{crashes: c, id: a.str("id")}
		key, _ := l.keyOf(t, r)
		wait.Until(t, "the packet is recorded", func() bool { return count(t, db, "SELECT COUNT(*) FROM packets WHERE id = ?", l.id) == 1 })
		if _, err := db.ExecContext(t.Context(), "UPDATE packets SET expires_at = opens_at + INTERVAL 1000 MICROSECOND WHERE id = ? AND "+
			"status = 'funding'", l.id); err != nil {
			t.Fatal(err)
		}
		opened, err := r.HGet(t.Context(), key, "opens_at").Int64()
		if err == nil {
			err = r.HSet(t.Context(), key, "expires_at", opened+1).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		c.decided(t, "OPS", "/providers/sandbox/release", one+"-2", 200, map[string]any{"reason": "the provider is back"})
		var end string
		wait.Until(t, "the packet has come to its end", func() bool {
			end = string(c.packet(t, l.id).Status)
			return end == "rejected" || end == "closed"
		})
		moved := c.movements(t, l.id)
		if unsent := count(t, db, "SELECT COUNT(*) FROM payments WHERE packet_id = ? AND kind = 'c' AND attempt = 0 AND failure_code = "+
			"'expired_before_charge'", l.id); unsent == 1 {
			if end != "rejected" || len(moved) != 0 {
				t.Errorf("the packet is %s, and %v moved", end, moved)
			}
			if c.reached() {
				return
			}
		}
	}
}

// shareConflict forges a claim for a share that another user has. It cannot be recorded; it becomes
// a break and a failed payout, and moves no money until two persons void it (R10).
func shareConflict(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	r := c.redis(t)
	winner := name + "-a"
	l.grabbed(t, winner, name+"-b")
	for user := range l.won {
		l.payoutOf(t, user, "paid")
	}
	key, stream := l.keyOf(t, r)
	record, err := r.HGet(t.Context(), key+":winners", winner).Result()
	if err != nil {
		t.Fatal(err)
	}
	var index, amount int64
	at := strings.SplitN(record, ":", 4)[2]
	if _, err := fmt.Sscanf(record, "%d:%d:", &index, &amount); err != nil {
		t.Fatal(err)
	}
	l.forgeClaim(t, r, stream, name+"-too-late", packedShare(index, amount), at, 0, 0)
	l.conflictVoided(t, name)
}

// staleClaim has the lane of a packet rebuilt, and forges a hand-off from before the rebuild, of a claim
// that Redis lost: its share is free. The claim is kept in the pool, becomes a share conflict, and moves no
// money until two persons void it (R9, R10).
func staleClaim(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	l.grabbed(t, name+"-a")
	r := c.redis(t)
	key, stream := l.keyOf(t, r)
	lane, _, _ := strings.Cut(key, "packet:")
	if err := r.HSet(t.Context(), lane+"epoch", "gate", "halted", "reason", "by_hand").Err(); err != nil {
		t.Fatal(err)
	}
	l.grabbed(t, name+"-b") // from the rebuilt lane
	amount := count(t, c.mysql(t), "SELECT amount FROM shares WHERE packet_id = ? AND share_index = 2", l.id)
	l.forgeClaim(t, r, stream, name+"-stale", packedShare(2, int64(amount)), fmt.Sprint(time.Now().UnixMilli()), 1, 2)
	l.conflictVoided(t, name)
}

// packedShare returns a share as a hand-off has it: index (3 bytes) and amount (7 bytes), big-endian.
func packedShare(index, amount int64) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(index))[1:], binary.BigEndian.AppendUint64(nil, uint64(amount))[1:]...)
}

// forgeClaim adds the hand-off of a claim; epoch and seq 0: unknown.
func (l *packetLife) forgeClaim(t *testing.T, r *redis.Client, stream, user string, share []byte, at string, epoch, seq byte) {
	t.Helper()
	str := func(s string) string { return "\xd9" + string([]byte{byte(len(s))}) + s } // MessagePack
	part := str(fmt.Sprint(epoch)) + string([]byte{seq}) + str("") + str(at) + "\xc2" + str(string(share)) + str("\x91"+str(user)) +
		str("\x80")
	if err := r.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: []any{"kind", "claims", l.id, part}}).Err(); err != nil {
		t.Fatal(err)
	}
}

// conflictVoided waits for the packet's share conflict, which two persons void, and ends the packet.
func (l *packetLife) conflictVoided(t *testing.T, name string) {
	t.Helper()
	db := l.mysql(t)
	wait.Until(t, "the share conflict is recorded as a break", func() bool {
		return count(t, db, "SELECT COUNT(*) FROM breaks WHERE packet_id = ? AND kind = 'share_conflict'", l.id) == 1
	})
	var id string
	query := "SELECT payment_id FROM claims WHERE packet_id = ? AND kind = 'conflict'"
	if err := db.QueryRowContext(t.Context(), query, l.id).Scan(&id); err != nil {
		t.Fatal(err)
	}
	a := l.decided(t, "FINANCE", "/payouts/"+id+"/cancel", name, 202, map[string]any{"reason": "the order was void"})
	l.decided(t, "FINANCE2", "/approvals/"+a.str("approval", "id")+"/approve", name+"-2", 202, map[string]any{"reason": "agreed"})
	wait.Until(t, "the share conflict is void", func() bool {
		return count(t, db, "SELECT COUNT(*) FROM payments WHERE id = ? AND status = 'cancelled'", id) == 1
	})
	l.recall(t)
	l.settled(t)
}

// quarantined leaves an undecodable hand-off with a dead consumer: a running worker takes it over
// and quarantines it.
func quarantined(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	r := c.redis(t)
	_, stream := l.keyOf(t, r)
	const add = `redis.call('XADD', KEYS[1], '*', 'kind', 'claims', ARGV[1], 'unreadable')
		return #redis.call('XREADGROUP', 'GROUP', 'relay', ARGV[2], 'COUNT', '100', 'STREAMS', KEYS[1], '>')`
	if err := r.Eval(t.Context(), add, []string{stream}, "claim:"+l.id+":"+name, "w60").Err(); err != nil {
		t.Fatal(err)
	}
	db := c.mysql(t)
	wait.Until(t, "the hand-off is in quarantine", func() bool {
		return count(t, db, "SELECT COUNT(*) FROM quarantine WHERE content LIKE CONCAT('%', ?, '%')", l.id) == 1
	})
	l.grabbed(t, name+"-a")
	l.recall(t)
	l.settled(t)
}

// recalledAtExpiry signals to the workflow by hand that the packet has expired, and recalls it:
// Redis has the true reason.
func recalledAtExpiry(t *testing.T, c *crashes, name string) {
	l := c.newPacketLife(t, name, 3)
	l.grabbed(t, name+"-a")
	if err := c.temporal(t).SignalWorkflow(t.Context(), "packet/"+l.id, "", "close", "expired"); err != nil {
		t.Fatal(err)
	}
	l.recall(t)
	l.settled(t)
	if n := count(t, c.mysql(t), "SELECT COUNT(*) FROM packets WHERE id = ? AND close_reason = 'recalled'", l.id); n != 1 {
		t.Error("the row's reason is not the recall")
	}
}
