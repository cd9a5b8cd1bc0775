package sandbox

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// returnsPage: next_after is null on the last page.
type returnsPage struct {
	At        string         `json:"at"` // now
	Items     []movementView `json:"items"`
	NextAfter *string        `json:"next_after"`
}

// handleReturns lists the returns of orders whose number starts with a prefix, in the order of
// their numbers, behind the number after.
func (s *Server) handleReturns(w http.ResponseWriter, r *http.Request) {
	query, p := parameters(r, "prefix", "after", "limit")
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	prefix, after, limit := query.Get("prefix"), query.Get("after"), movementsLimit
	if !validOrderNo(prefix) {
		s.writeProblem(w, r, invalid("prefix", "invalid", "must be 1 to 32 letters and digits"))
		return
	}
	if after != "" && !validOrderNo(after) {
		s.writeProblem(w, r, invalid("after", "invalid", "must be an order number"))
		return
	}
	if query.Has("limit") {
		n, err := strconv.Atoi(query.Get("limit"))
		if err != nil || n < 1 || n > movementsMax {
			s.writeProblem(w, r, invalid("limit", "out_of_range", "must be 1 to "+strconv.Itoa(movementsMax)))
			return
		}
		limit = n
	}
	answer := returnsPage{Items: []movementView{}}
	err := s.db.View(func(tx *bolt.Tx) error {
		answer.At = formatTime(time.Now().UnixMilli())
		items, err := readReturns(tx, prefix, after, limit+1)
		if len(items) > limit {
			items = items[:limit]
			answer.NextAfter = &items[limit-1].OrderNo
		}
		answer.Items = append(answer.Items, items...)
		return err
	})
	s.answer(w, r, answer, err)
}

// readReturns returns up to limit returns of orders with a prefix, behind a number.
func readReturns(tx *bolt.Tx, prefix, after string, limit int) (items []movementView, err error) {
	from := []byte(prefix)
	if after >= prefix {
		from = append([]byte(after), 1) // behind its index keys, which continue with a 0
	}
	movements, cursor := tx.Bucket(bucketMovements), tx.Bucket(bucketByOrder).Cursor()
	for key, value := cursor.Seek(from); bytes.HasPrefix(key, []byte(prefix)) && len(items) < limit; key, value = cursor.Next() {
		if op, _, _ := bytes.Cut(value, []byte{0}); string(op) != opReturn {
			continue
		}
		_, seq, ok := bytes.Cut(key, []byte{0})
		if !ok {
			return nil, fmt.Errorf("movement index of %q is damaged", key)
		}
		m, err := decodeMovement(movements.Get(seq))
		if err != nil {
			return nil, err
		}
		items = append(items, movementView{m.Seq, m.Op, m.OrderNo, m.Account, m.Amount, formatTime(m.AtMS)})
	}
	return items, nil
}
