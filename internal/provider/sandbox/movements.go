package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Page sizes of movements.
const (
	movementsLimit = 1000
	movementsMax   = 10000
	maxPrefixes    = 64
)

// movementView is a movement as the API shows it.
type movementView struct {
	Seq     uint64 `json:"seq"`
	Op      string `json:"op"`
	OrderNo string `json:"order_no"`
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	At      string `json:"at"`
}

type movementPage struct {
	Items []movementView `json:"items"`
}

// statementPage: next_after is null on the last page.
type statementPage struct {
	Date      string         `json:"date"`
	Items     []movementView `json:"items"`
	NextAfter *uint64        `json:"next_after"`
}

// totals are the sums of what moved, in fen.
type totals struct {
	Charged     int64 `json:"charged"`
	Transferred int64 `json:"transferred"`
	Returned    int64 `json:"returned"`
	Refunded    int64 `json:"refunded"`
}

// readMovements returns up to limit movements after a seq and before a time (ms).
func readMovements(tx *bolt.Tx, after uint64, limit int, beforeMS int64) ([]movementView, error) {
	items := []movementView{}
	cursor := tx.Bucket(bucketMovements).Cursor()
	for _, raw := cursor.Seek(bigEndian(after + 1)); raw != nil && len(items) < limit; _, raw = cursor.Next() {
		m, err := decodeMovement(raw)
		if err != nil {
			return nil, err
		}
		if m.AtMS >= beforeMS {
			break
		}
		items = append(items, movementView{m.Seq, m.Op, m.OrderNo, m.Account, m.Amount, formatTime(m.AtMS)})
	}
	return items, nil
}

// seqBefore returns the seq of the last movement before a time, by binary search: seqs have no gaps
// and times never decrease.
func seqBefore(tx *bolt.Tx, ms int64) (uint64, error) {
	b := tx.Bucket(bucketMovements)
	var failed error
	n := sort.Search(int(b.Sequence()), func(i int) bool {
		m, err := decodeMovement(b.Get(bigEndian(uint64(i) + 1)))
		if err != nil {
			failed = err
		}
		return m.AtMS >= ms
	})
	return uint64(n), failed
}

func (s *Server) handleMovements(w http.ResponseWriter, r *http.Request) {
	_, after, limit, p := page(r, movementsLimit, movementsMax)
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	var items []movementView
	err := s.db.View(func(tx *bolt.Tx) (err error) {
		items, err = readMovements(tx, after, limit, math.MaxInt64)
		return err
	})
	s.answer(w, r, movementPage{Items: items}, err)
}

// moveBody is a movement without an order in the request. OrderNo is the order that a fee belongs to; it may be absent.
type moveBody struct {
	Op      *string `json:"op"`
	Amount  *int64  `json:"amount"`
	OrderNo string  `json:"order_no"`
}

// handleMove adds a movement without an order, such as a fee.
func (s *Server) handleMove(w http.ResponseWriter, r *http.Request) {
	var b moveBody
	body, p := readBody(w, r, maxBody)
	if p == nil {
		p = decode(body, &b)
	}
	switch {
	case p != nil:
	case b.Op == nil || !slices.Contains(opsWithoutOrder, *b.Op):
		p = invalid("op", "invalid", "must be fee, fee_returned, top_up or withdrawal")
	case b.Amount == nil || *b.Amount < 1 || *b.Amount > maxAmount:
		p = invalid("amount", "out_of_range", "must be 1 to 2^53-1 fen")
	}
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	err := s.writer.do(func(tx *txn) error {
		return tx.move(&record{params: params{OrderNo: b.OrderNo, Amount: *b.Amount}}, *b.Op, time.Now().UnixMilli())
	})
	s.answerEmpty(w, r, err)
}

// handleStatement lists one UTC day's movements in the order they were made.
func (s *Server) handleStatement(w http.ResponseWriter, r *http.Request) {
	query, after, limit, p := page(r, movementsLimit, movementsMax, "date")
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	day, err := time.Parse(time.DateOnly, query.Get("date"))
	if err != nil {
		s.writeProblem(w, r, invalid("date", "invalid", "must be a UTC day, YYYY-MM-DD"))
		return
	}
	answer := statementPage{Date: day.Format(time.DateOnly)}
	err = s.db.View(func(tx *bolt.Tx) error {
		start, err := seqBefore(tx, day.UnixMilli())
		if err != nil {
			return err
		}
		items, err := readMovements(tx, max(after, start), limit+1, day.AddDate(0, 0, 1).UnixMilli())
		if len(items) > limit {
			items = items[:limit]
			answer.NextAfter = &items[limit-1].Seq
		}
		answer.Items = items
		return err
	})
	s.answer(w, r, answer, err)
}

// handleTotals sums the movements of all orders whose number starts with one of the prefixes.
func (s *Server) handleTotals(w http.ResponseWriter, r *http.Request) {
	query, p := parameters(r, "prefix")
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	prefixes := query["prefix"]
	if len(prefixes) == 0 || len(prefixes) > maxPrefixes {
		s.writeProblem(w, r, invalid("prefix", "out_of_range", "must be given 1 to 64 times"))
		return
	}
	for _, prefix := range prefixes {
		if !validOrderNo(prefix) {
			s.writeProblem(w, r, invalid("prefix", "invalid", "must be 1 to 32 letters and digits"))
			return
		}
	}
	var t totals
	err := s.db.View(func(tx *bolt.Tx) error {
		for _, prefix := range withoutCovered(prefixes) {
			if err := t.add(tx, prefix); err != nil {
				return err
			}
		}
		return nil
	})
	s.answer(w, r, t, err)
}

// withoutCovered drops prefixes that another one covers, so that nothing is counted twice.
func withoutCovered(prefixes []string) []string {
	sorted := slices.Clone(prefixes)
	slices.Sort(sorted)
	kept := sorted[:0]
	for _, prefix := range sorted {
		if len(kept) == 0 || !strings.HasPrefix(prefix, kept[len(kept)-1]) {
			kept = append(kept, prefix)
		}
	}
	return kept
}

func (t *totals) add(tx *bolt.Tx, prefix string) error {
	cursor := tx.Bucket(bucketByOrder).Cursor()
	for key, value := cursor.Seek([]byte(prefix)); bytes.HasPrefix(key, []byte(prefix)); key, value = cursor.Next() {
		op, raw, ok := bytes.Cut(value, []byte{0})
		if !ok || len(raw) != 8 {
			return fmt.Errorf("movement index of %q is damaged", key)
		}
		sum := map[string]*int64{opCharge: &t.Charged, opTransfer: &t.Transferred, opReturn: &t.Returned,
			opRefund: &t.Refunded}[string(op)]
		if sum == nil {
			return fmt.Errorf("movement index of %q: unknown op %q", key, op)
		}
		amount := int64(binary.BigEndian.Uint64(raw))
		if amount > math.MaxInt64-*sum {
			return fmt.Errorf("sum of %q is above 2^63-1", op)
		}
		*sum += amount
	}
	return nil
}
