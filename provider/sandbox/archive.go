package sandbox

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	bolt "go.etcd.io/bbolt"
)

// ErrArchive means that a past cannot be put into a database, because things have
// happened in it already: what moved once keeps its place for ever.
var ErrArchive = errors.New("the sandbox's database is not empty")

// Past is an order that is over, and when its money moved.
type Past struct {
	Op            string // charge, transfer or refund
	OrderNo       string
	Account       string
	Amount        int64 // fen
	Currency      string
	Remark        string
	ChargeOrderNo string // of a refund
	Status        Status // succeeded, declined or returned
	Code, Message string
	ProviderRef   string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	ReturnedAt    time.Time // when it came back, of a returned one
}

// Archive fills the database of a sandbox that has never been used with a past. The
// sandbox must not run meanwhile.
type Archive struct {
	db    *bolt.DB
	batch []Past
	moves []movement
}

// archiveBatch is how many orders are written at once: in the order of their
// numbers, so that few pages are written twice.
const archiveBatch = 200_000

// NewArchive opens the database file, which is made when missing. Errors: ErrArchive.
func NewArchive(path string) (*Archive, error) {
	db, err := openDB(path)
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *bolt.Tx) error {
		for _, name := range allBuckets {
			if key, _ := tx.Bucket(name).Cursor().First(); key != nil && !bytes.Equal(name, bucketMeta) {
				return ErrArchive
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.NoSync = true // until Close
	return &Archive{db: db}, nil
}

// Add puts an order into the past.
func (a *Archive) Add(p Past) error {
	a.batch = append(a.batch, p)
	if p.Status != StatusDeclined {
		a.moves = append(a.moves, movement{Op: p.Op, OrderNo: p.OrderNo, Account: p.Account, Amount: p.Amount, AtMS: p.CreatedAt.UnixMilli()})
	}
	if p.Status == StatusReturned {
		a.moves = append(a.moves, movement{Op: opReturn, OrderNo: p.OrderNo, Account: p.Account, Amount: p.Amount, AtMS: p.ReturnedAt.UnixMilli()})
	}
	if len(a.batch) < archiveBatch {
		return nil
	}
	return a.flush()
}

// Close writes what is left and the movements, in the order of time. After an
// error the file holds part of the past, and has to be made anew.
func (a *Archive) Close() error {
	err := a.flush()
	if err == nil {
		err = a.writeMoves()
	}
	if err == nil {
		err = a.db.Sync()
	}
	return errors.Join(err, a.db.Close())
}

func (a *Archive) flush() error {
	slices.SortFunc(a.batch, func(x, y Past) int { return cmp.Compare(x.OrderNo, y.OrderNo) })
	err := a.db.Update(func(tx *bolt.Tx) error {
		orders, refunds := tx.Bucket(bucketOrders), tx.Bucket(bucketRefunds)
		for _, p := range a.batch {
			rec := record{params: params{Op: p.Op, OrderNo: p.OrderNo, Account: p.Account, Amount: p.Amount, Currency: p.Currency, Remark: p.Remark,
				ChargeOrderNo: p.ChargeOrderNo}, Status: p.Status, Code: p.Code, Message: p.Message, ProviderRef: p.ProviderRef,
				CreatedMS: p.CreatedAt.UnixMilli(), UpdatedMS: p.UpdatedAt.UnixMilli(), Told: p.Status}
			raw, err := json.Marshal(&rec)
			if err != nil {
				return fmt.Errorf("encode order %s: %w", p.OrderNo, err)
			}
			if err := orders.Put([]byte(p.OrderNo), raw); err != nil {
				return fmt.Errorf("put order %s: %w", p.OrderNo, err)
			}
			if p.ChargeOrderNo == "" || p.Status == StatusDeclined {
				continue
			}
			if err := refunds.Put(append(indexKey(p.ChargeOrderNo), p.OrderNo...), present); err != nil {
				return fmt.Errorf("put refund %s: %w", p.OrderNo, err)
			}
		}
		return nil
	})
	a.batch = a.batch[:0]
	return err
}

// writeMoves numbers the movements as they were made, and lists them by order.
func (a *Archive) writeMoves() error {
	slices.SortStableFunc(a.moves, func(x, y movement) int { return cmp.Compare(x.AtMS, y.AtMS) })
	for i := range a.moves {
		a.moves[i].Seq = uint64(i) + 1
	}
	err := a.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketMovements)
		b.FillPercent = 1 // never changed again
		for _, m := range a.moves {
			raw, err := json.Marshal(m)
			if err != nil {
				return fmt.Errorf("encode movement: %w", err)
			}
			if err := b.Put(bigEndian(m.Seq), raw); err != nil {
				return fmt.Errorf("put movement: %w", err)
			}
		}
		return b.SetSequence(uint64(len(a.moves)))
	})
	if err != nil {
		return err
	}
	slices.SortFunc(a.moves, func(x, y movement) int { return cmp.Or(cmp.Compare(x.OrderNo, y.OrderNo), cmp.Compare(x.Seq, y.Seq)) })
	return a.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketByOrder)
		for _, m := range a.moves {
			value := binary.BigEndian.AppendUint64(append([]byte(m.Op), 0), uint64(m.Amount))
			if err := b.Put(append(indexKey(m.OrderNo), bigEndian(m.Seq)...), value); err != nil {
				return fmt.Errorf("put movement: %w", err)
			}
		}
		return nil
	})
}
