package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	bolt "go.etcd.io/bbolt"
)

// Buckets of the database. Numbers in keys are big-endian, so that keys sort as numbers do.
var (
	bucketOrders    = []byte("orders")         // order number -> record
	bucketMovements = []byte("movements")      // seq -> movement; only ever appended
	bucketByOrder   = []byte("movement_index") // order number, 0, seq -> op, 0, amount
	bucketRefunds   = []byte("charge_refunds") // charge order number, 0, refund order number -> present
	bucketSends     = []byte("sends")          // order number -> sends that stored nothing else (~flaky, ~lost_request)
	bucketUnfrozen  = []byte("unfrozen")       // account -> present
	bucketDue       = []byte("due")            // unix ns, id -> dueEvent
	bucketOutbox    = []byte("outbox")         // unix ns, id -> delivery
	bucketMeta      = []byte("meta")           // "faults" -> rules
	keyFaults       = []byte("faults")
	allBuckets      = [][]byte{bucketOrders, bucketMovements, bucketByOrder, bucketRefunds, bucketSends,
		bucketUnfrozen, bucketDue, bucketOutbox, bucketMeta}
)

// present is the value of keys without further content.
var present = []byte{1}

// movement is money that moved. AtMS is unix ms and never decreases from one seq to the next.
type movement struct {
	Seq     uint64 `json:"seq"`
	Op      string `json:"op"`
	OrderNo string `json:"order_no"`
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	AtMS    int64  `json:"at_ms"`
}

// openDB opens the file, waits up to 5 s for another process to release it, and creates the
// buckets.
func openDB(path string) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 5 * time.Second, FreelistType: bolt.FreelistMapType,
		NoFreelistSync: true, InitialMmapSize: 256 << 20})
	if err != nil {
		return nil, fmt.Errorf("open sandbox database: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range allBuckets {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return fmt.Errorf("bucket %s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("prepare sandbox database: %w", err)
	}
	return db, nil
}

// put stores a value as JSON.
func (tx *txn) put(bucket, key []byte, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode for %s: %w", bucket, err)
	}
	return tx.putRaw(bucket, key, raw)
}

func (tx *txn) putRaw(bucket, key, raw []byte) error {
	tx.dirty = true
	if err := tx.Bucket(bucket).Put(key, raw); err != nil {
		return fmt.Errorf("put into %s: %w", bucket, err)
	}
	return nil
}

func (tx *txn) delete(bucket, key []byte) error {
	tx.dirty = true
	if err := tx.Bucket(bucket).Delete(key); err != nil {
		return fmt.Errorf("delete from %s: %w", bucket, err)
	}
	return nil
}

// getOrder returns the stored order, nil if the number is unknown.
func getOrder(tx *bolt.Tx, orderNo string) (*record, error) {
	raw := tx.Bucket(bucketOrders).Get([]byte(orderNo))
	if raw == nil {
		return nil, nil
	}
	rec := new(record)
	if err := json.Unmarshal(raw, rec); err != nil {
		return nil, fmt.Errorf("decode order %s: %w", orderNo, err)
	}
	return rec, nil
}

func (tx *txn) putOrder(rec *record) error {
	return tx.put(bucketOrders, []byte(rec.OrderNo), rec)
}

// move appends a movement of the order's money, or one without an order number.
func (tx *txn) move(rec *record, op string, nowMS int64) error {
	b := tx.Bucket(bucketMovements)
	b.FillPercent = 0.95 // keys only ever grow
	if _, raw := b.Cursor().Last(); raw != nil {
		last, err := decodeMovement(raw)
		if err != nil {
			return err
		}
		// The clock may be set back; the statement is searched by time.
		nowMS = max(nowMS, last.AtMS)
	}
	seq, err := b.NextSequence()
	if err != nil {
		return fmt.Errorf("next movement: %w", err)
	}
	m := movement{Seq: seq, Op: op, OrderNo: rec.OrderNo, Account: rec.Account, Amount: rec.Amount, AtMS: nowMS}
	if err := tx.put(bucketMovements, bigEndian(seq), m); err != nil {
		return err
	}
	if slices.Contains(opsWithoutOrder, op) {
		return nil
	}
	value := append([]byte(op), 0)
	value = binary.BigEndian.AppendUint64(value, uint64(rec.Amount))
	return tx.putRaw(bucketByOrder, append(indexKey(rec.OrderNo), bigEndian(seq)...), value)
}

func decodeMovement(raw []byte) (movement, error) {
	var m movement
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("decode movement: %w", err)
	}
	return m, nil
}

// countSend counts a send that stores nothing else.
func (tx *txn) countSend(orderNo string) error {
	return tx.putRaw(bucketSends, []byte(orderNo), bigEndian(uint64(sendsOf(tx.Tx, orderNo)+1)))
}

func sendsOf(tx *bolt.Tx, orderNo string) int64 {
	raw := tx.Bucket(bucketSends).Get([]byte(orderNo))
	if len(raw) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(raw))
}

// schedule stores a value to be processed at a time, in bucketDue or bucketOutbox.
func (tx *txn) schedule(bucket []byte, at time.Time, value any) error {
	seq, err := tx.Bucket(bucket).NextSequence()
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	tx.wakeDue = true
	return tx.put(bucket, append(bigEndian(uint64(at.UnixNano())), bigEndian(seq)...), value)
}

// dueAt returns the time in a key made by schedule.
func dueAt(key []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(key)))
}

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// indexKey is the prefix of every index key of an order; the zero terminates the number, so that no
// number is a prefix of another.
func indexKey(orderNo string) []byte { return append([]byte(orderNo), 0) }
