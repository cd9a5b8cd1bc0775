package api

import (
	"context"

	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) getActivity(ctx context.Context, _ *struct{}) (*wire.Activity, error) {
	minutes, err := s.cfg.Store.Activity(ctx)
	out := &wire.Activity{Minutes: make([]wire.ActiveMinute, len(minutes))}
	for i, m := range minutes {
		out.Minutes[i] = wire.ActiveMinute{At: wire.At(m.At)}
		if m.Counted {
			out.Minutes[i].Grabs, out.Minutes[i].Paid = renderBooked(m.Grabs), renderBooked(m.Paid)
		}
	}
	return out, err
}

func renderBooked(s staff.Sum) *wire.Booked {
	return &wire.Booked{Count: s.Count, Amount: s.Amount}
}
