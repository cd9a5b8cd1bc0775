package api

import (
	"context"
	"net/http"

	"hongbao/internal/payout"
)

// Activity is what was booked in each minute of the last hour.
type Activity struct {
	Minutes []ActiveMinute `json:"minutes" nullable:"false" doc:"The last 60 minutes, the oldest first; the last one is not over."`
}

// ActiveMinute is what was booked in one minute.
type ActiveMinute struct {
	At    Stamp            `json:"at" doc:"When it began."`
	Grabs Nullable[Booked] `json:"grabs" doc:"Grabs that were booked: from then on their money is owed. null while a busy hour is counted for the first time after the start of a process."`
	Paid  Nullable[Booked] `json:"paid" doc:"Payouts that were paid by the provider; null as above."`
}

// Booked counts bookings and adds them up.
type Booked struct {
	Count  int64    `json:"count" minimum:"0" doc:"How many there were."`
	Amount TotalFen `json:"amount" doc:"What they came to."`
}

func getActivity(r *request) (answer, error) {
	if err := readQuery(r).done(); err != nil {
		return answer{}, err
	}
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

func renderBooked(s payout.Sum) Nullable[Booked] {
	return orNull(&Booked{Count: s.Count, Amount: TotalFen(s.Amount)})
}
