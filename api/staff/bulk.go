package staff

import (
	"context"
	"net/http"
	"slices"

	"hongbao/api/rest"
	"hongbao/internal/staff"
)

// maxBulk is how many payments or holds one bulk call decides about.
const maxBulk = 200

// bulk is a call of staff that decides about many payments or holds: the named ones, or those that its
// filter selects.
type bulk struct {
	named  []string // nil: those of list
	check  func(named []string) error
	list   func(owner string) (ids []string, more bool, err error)
	decide func(w staff.Write, id string) error
	render func(more bool) any
}

// Results of a bulk call for one item, beside its own.
const (
	bulkWaiting = "waiting" // for another person's same call
	bulkSkipped = "skipped"
)

// bulkMore marks in a plan that more matched than one call takes.
const bulkMore = "more"

// decideMany decides about each id of a stored plan and stores the answer, so that a repeat of the call
// returns the same.
func (s *API) decideMany(ctx context.Context, w staff.Write, b bulk) (staff.Answer, error) {
	ids := b.named
	if ids != nil {
		if err := b.check(ids); err != nil {
			return staff.Answer{}, err
		}
	} else {
		listed, more, err := b.list(w.Owner)
		if err != nil {
			return staff.Answer{}, err
		}
		if ids = listed; more {
			ids = append(ids, bulkMore)
		}
	}
	ids, done, err := s.cfg.Store.PlanBulk(ctx, w, ids)
	if err != nil || done.Status != 0 {
		return done, err
	}
	for _, id := range ids {
		if id == bulkMore {
			continue
		}
		if err := b.decide(w, id); err != nil {
			return staff.Answer{}, err
		}
	}
	return s.cfg.Store.EndBulk(ctx, w, staff.Answer{Status: http.StatusOK, Body: rest.EncodeBody(b.render(slices.Contains(ids, bulkMore)))})
}
