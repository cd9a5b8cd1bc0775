package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hongbao/wire"
)

// payoutIDsParam lists payouts; their number is bounded by the length of a request line.
var payoutIDsParam = param{in: "query", name: "ids", required: true, schema: "",
	example: "p3q5k9v0c1m7e2u8h4r6t0003,p3q5k9v0c1m7e2u8h4r6t0004",
	about:   "1 to 100 ids of payouts, with commas between them."}

// checkIDs checks the form of a comma-separated list of ids.
func (of bulkOf) checkIDs(text string) *fault {
	ids := strings.Split(text, ",")
	if len(ids) > maxNamed {
		return &fault{faultLength, fmt.Sprintf("must have 1 to %d ids", maxNamed)}
	}
	for i, id := range ids {
		if f := of.checkID(id); f != nil {
			return &fault{faultFormat, "must be ids, each of " + of.one + ", with commas between them"}
		}
		if slices.Contains(ids[:i], id) {
			return &fault{faultDuplicate, "must have no id twice"}
		}
	}
	return nil
}

func getPayoutStatuses(r *request) (answer, error) {
	return r.statuses(bulkPayouts, func(found []wire.PayoutAt) any { return wire.PayoutStatuses{Items: found} })
}

// statuses answers with the statuses of the ids in the query.
func (r *request) statuses(of bulkOf, body func([]wire.PayoutAt) any) (answer, error) {
	q := readQuery(r)
	text := q.text("ids", of.checkIDs)
	if text == "" && len(q.faults) == 0 {
		q.fault("ids", fault{faultRequired, "is missing"})
	}
	if err := q.done(); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	ids := strings.Split(text, ",")
	found, err := r.server.cfg.Store.PaymentStatuses(ctx, ids)
	if err != nil {
		return answer{}, err
	}
	out := []wire.PayoutAt{}
	for _, id := range ids {
		if status, ok := found[id]; ok {
			out = append(out, wire.PayoutAt{ID: id, Status: wire.PayoutStatus(status)})
		}
	}
	return answer{status: http.StatusOK, body: body(out)}, nil
}
