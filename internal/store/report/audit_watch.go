package report

import (
	"context"
	"sync"
	"time"

	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const (
	// auditStep is the number of audit entries that one statement reads.
	auditStep = 1000
	// auditTimeLimit bounds the time of one call. The next call continues from there.
	auditTimeLimit = time.Second
	// auditRestartAfter is how long a check is trusted. Then the walk restarts, because a checked
	// entry may have been changed since.
	auditRestartAfter = time.Hour
)

// auditWalk is the position of the incremental audit check.
type auditWalk struct {
	mu         sync.Mutex
	restoredAt time.Time // RestoredAt of the MySQL that was checked
	began      time.Time
	chain      staff.AuditChain
	checked    int64 // seq of the last checked entry
	ended      bool  // reached the end or a bad entry
}

// WatchAudit checks the audit chain incrementally: each call continues for about a second and
// returns the position reached. After an hour the check restarts. VerifyAudit checks everything at
// once. Errors: ErrUnavailable.
func (s *Source) WatchAudit(ctx context.Context) (staff.AuditWatch, error) {
	w := &s.auditWalk
	w.mu.Lock()
	defer w.mu.Unlock()
	out, err := w.advance(ctx, s)
	return out, mysql.Classify(err)
}

func (w *auditWalk) advance(ctx context.Context, s *Source) (out staff.AuditWatch, err error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return out, err
	}
	var head mysql.AuditHead // stays zero before the first entry
	if err := s.read(ctx).Where("id = 1").Limit(1).Find(&head).Error; err != nil {
		return out, err
	}
	out.Head.Seq = head.Seq
	copy(out.Head.Hash[:], head.Hash)
	books, err := mysql.ReadState(s.read(ctx))
	if err != nil {
		return out, err
	}
	if !books.RestoredAt.Equal(w.restoredAt) { // checked entries may be gone or replaced
		w.restoredAt, w.began = books.RestoredAt, time.Time{}
	}
	if w.began.IsZero() || w.checked > out.Head.Seq || w.ended && now.Sub(w.began) > auditRestartAfter || now.Before(w.began) {
		w.began, w.chain, w.checked = now, staff.AuditChain{}, 0
	}
	patience, cancel := context.WithTimeout(ctx, auditTimeLimit)
	defer cancel()
	w.ended = w.checked == out.Head.Seq
	for !w.ended && patience.Err() == nil {
		// Entries above the head were appended since; the next call checks them.
		var rows []mysql.AuditRow
		err := s.read(ctx).Where("seq > ? AND seq <= ?", w.checked, out.Head.Seq).Order("seq").Limit(auditStep).Find(&rows).Error
		if err != nil {
			return out, err
		}
		for _, row := range rows {
			if !w.chain.Add(row.Entry()) {
				break
			}
			w.checked = row.Seq
		}
		w.ended = len(rows) < auditStep || w.checked < rows[len(rows)-1].Seq
	}
	out.Checked = w.checked
	if w.ended {
		end := w.chain // a copy: the head moves on
		out.FirstBad = end.End(out.Head)
	}
	return out, nil
}
