package api

import (
	"context"
	"net/http"

	"hongbao/internal/staff"
	"hongbao/wire"
)

func getActivity(r *request) (answer, error) {
	ctx, cancel := context.WithTimeout(r.ctx, overviewLimit)
	defer cancel()
	minutes, err := r.server.cfg.Store.Activity(ctx)
	if err != nil {
		return answer{}, err
	}
	out := wire.Activity{Minutes: make([]wire.ActiveMinute, len(minutes))}
	for i, m := range minutes {
		out.Minutes[i] = wire.ActiveMinute{At: wire.At(m.At)}
		if m.Counted {
			out.Minutes[i].Grabs, out.Minutes[i].Paid = renderBooked(m.Grabs), renderBooked(m.Paid)
		}
	}
	return answer{status: http.StatusOK, body: out}, nil
}

func renderBooked(s staff.Sum) *wire.Booked {
	return &wire.Booked{Count: s.Count, Amount: s.Amount}
}
