package api

import (
	"context"
	"net/http"

	"hongbao/internal/staff"
)

// Activity is the claims and payouts recorded per minute of the last hour.
type Activity struct {
	Minutes []ActiveMinute `json:"minutes" nullable:"false" doc:"The last 60 minutes, oldest first; the last minute is not over."`
}

// ActiveMinute is the claims and payouts recorded in one minute.
type ActiveMinute struct {
	At    Stamp            `json:"at" doc:"When it began."`
	Grabs Nullable[Booked] `json:"grabs" doc:"Claims that were recorded; from then on the amount is owed. null while a busy hour is counted for the first time after a process start."`
	Paid  Nullable[Booked] `json:"paid" doc:"Payouts that the provider paid; null as above."`
}

// Booked is a count and a sum of recorded entries.
type Booked struct {
	Count  int64    `json:"count" minimum:"0" doc:"The count."`
	Amount TotalFen `json:"amount" doc:"The sum."`
}

func getActivity(r *request) (answer, error) {
	ctx, cancel := context.WithTimeout(r.ctx, overviewLimit)
	defer cancel()
	minutes, err := r.server.cfg.Store.Activity(ctx)
	if err != nil {
		return answer{}, err
	}
	out := Activity{Minutes: make([]ActiveMinute, len(minutes))}
	for i, m := range minutes {
		out.Minutes[i] = ActiveMinute{At: Stamp(m.At)}
		if m.Counted {
			out.Minutes[i].Grabs, out.Minutes[i].Paid = renderBooked(m.Grabs), renderBooked(m.Paid)
		}
	}
	return answer{status: http.StatusOK, body: out}, nil
}

func renderBooked(s staff.Sum) Nullable[Booked] {
	return orNull(&Booked{Count: s.Count, Amount: TotalFen(s.Amount)})
}
