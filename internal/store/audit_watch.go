package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"hongbao/internal/payout"
)

const (
	// auditStep is how many entries of the audit one statement reads.
	auditStep = 1000
	// auditTimeLimit is how long one call checks entries; the next one goes on from there.
	auditTimeLimit = time.Second
	// auditRestartAfter is how long what was checked is believed: then the walk begins anew,
	// because an entry may have been changed behind its back.
	auditRestartAfter = time.Hour
)

// auditWalk is how far the chain of the audit was checked.
type auditWalk struct {
	mu         sync.Mutex
	restoredAt time.Time // when the books that it is of were restored last
	began      time.Time
	chain      payout.AuditChain
	checked    int64 // number of the last entry
	ended      bool  // it came to the end, or to a bad entry
}

// WatchAudit checks the chain of the audit in turns: each call goes on where the
// last one ended, for about a second, and tells how far it has come; once an hour
// all is checked anew. VerifyAudit checks all at once. Errors: ErrUnavailable.
func (s *Store) WatchAudit(ctx context.Context) (payout.AuditWatch, error) {
	w := &s.auditWalk
	w.mu.Lock()
	defer w.mu.Unlock()
	out, err := w.advance(ctx, s)
	return out, classify(err)
}

func (w *auditWalk) advance(ctx context.Context, s *Store) (out payout.AuditWatch, err error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return out, err
	}
	var hash []byte
	err = s.sql.QueryRowContext(ctx, "SELECT seq, hash FROM audit_head WHERE id = 1").Scan(&out.Head.Seq, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // without a row nothing was ever appended
		return out, err
	}
	copy(out.Head.Hash[:], hash)
	books, err := s.Books(ctx)
	if err != nil {
		return out, err
	}
	if !books.RestoredAt.Equal(w.restoredAt) { // what was checked may be gone, and other entries in its place
		w.restoredAt, w.began = books.RestoredAt, time.Time{}
	}
	if w.began.IsZero() || w.checked > out.Head.Seq || w.ended && now.Sub(w.began) > auditRestartAfter || now.Before(w.began) {
		w.began, w.chain, w.checked = now, payout.AuditChain{}, 0
	}
	patience, cancel := context.WithTimeout(ctx, auditTimeLimit)
	defer cancel()
	w.ended = w.checked == out.Head.Seq
	for !w.ended && patience.Err() == nil {
		// What is above the head was appended since, and is looked at by the next call.
		var rows []auditRow
		err := s.read(ctx).Raw("SELECT "+auditColumns+" FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", w.checked,
			out.Head.Seq, auditStep).Scan(&rows).Error
		if err != nil {
			return out, err
		}
		for _, row := range rows {
			if !w.chain.Add(row.entry()) {
				break
			}
			w.checked = row.Seq
		}
		w.ended = len(rows) < auditStep || w.checked < rows[len(rows)-1].Seq
	}
	out.Checked = w.checked
	if w.ended {
		end := w.chain // the head moves on: what is said of the end holds for now
		out.FirstBad = end.End(out.Head)
	}
	return out, nil
}
