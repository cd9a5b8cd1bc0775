package api

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// overviewLimit bounds the read of the overview.
const overviewLimit = 8 * time.Second

// Overview is the balances of the ledger and the unfinished work.
type Overview struct {
	Money     Nullable[Funds] `json:"money" doc:"The sums of the ledger over all packets; null while a large ledger is summed for the first time after a process start, and when a sum exceeds 64 bits."`
	Payments  []Unfinished    `json:"payments" nullable:"false" doc:"Unfinished payments by kind and status, without empty groups."`
	Breaks    Pile            `json:"breaks" doc:"Open breaks."`
	Approvals Pile            `json:"approvals" doc:"Decisions that wait for a second person."`

	Decisions []DecisionDue `json:"decisions" nullable:"false" doc:"What waits for a decision of staff, by reason, without empty groups."`

	LateRefunds Pile `json:"late_refunds" doc:"Unfinished refunds that have been due for at least five minutes; /v1/staff/refunds?late=true lists them."`
}

// Funds is the money of all packets: funded = paid + owed + remaining + refunding + refunded.
type Funds struct {
	Funded    TotalFen `json:"funded" doc:"Charged to senders."`
	Paid      TotalFen `json:"paid" doc:"Paid to recipients, including payments by other means, without returned amounts."`
	Owed      TotalFen `json:"owed" doc:"Claimed and not paid."`
	Remaining TotalFen `json:"remaining" doc:"In packets and not claimed."`
	Refunding TotalFen `json:"refunding" doc:"Being refunded to senders."`
	Refunded  TotalFen `json:"refunded" doc:"Refunded to senders."`
	Ties      bool     `json:"ties" doc:"true: the parts add up to funded, and none is negative."`
}

// Unfinished are the payments of one kind in one status.
type Unfinished struct {
	Kind     string       `json:"kind" enum:"charge,payout,refund,honour" doc:"The kind; honour: a share conflict that is paid with our own money."`
	Status   PayoutStatus `json:"status" doc:"The status."`
	Count    int64        `json:"count" minimum:"1" doc:"The count."`
	Amount   TotalFen     `json:"amount" doc:"The sum."`
	OldestAt Stamp        `json:"oldest_at" doc:"When the oldest was created."`
}

// DecisionDue is what waits for a decision of staff, for one reason.
type DecisionDue struct {
	Reason   string           `json:"reason" enum:"payout_failed,payout_returned,refund_failed,refund_returned,approval,break" doc:"The reason. An item with two reasons counts in both: a share conflict is a failed payout and a break."`
	Kind     Nullable[string] `json:"kind" doc:"The kind of a break; null otherwise."`
	Count    int64            `json:"count" minimum:"1" doc:"The count."`
	Amount   TotalFen         `json:"amount" doc:"The sum; with more, a lower bound."`
	More     bool             `json:"more" doc:"true: there are more than 10,000; the newest were summed."`
	OldestAt Stamp            `json:"oldest_at" doc:"Since when the oldest waits."`
}

// Pile is a count of waiting items and the age of the oldest.
type Pile struct {
	Count    int64           `json:"count" minimum:"0" doc:"The count."`
	OldestAt Nullable[Stamp] `json:"oldest_at" doc:"Since when the oldest waits; null without any."`
}

// PaymentSum is the count and sum of payments.
type PaymentSum struct {
	Count  int64    `json:"count" minimum:"0" doc:"The count; with more, a lower bound."`
	Amount TotalFen `json:"amount" doc:"The sum; with more, a lower bound."`
	More   bool     `json:"more" doc:"true: there are more than 10,000; the newest were counted."`
}

// kindNames are the names of kinds of payments.
var kindNames = map[payout.Kind]string{payout.KindCharge: "charge", payout.KindPayout: "payout", payout.KindRefund: "refund",
	payout.KindHonour: "honour"}

func getOverview(r *request) (answer, error) {
	ctx, cancel := context.WithTimeout(r.ctx, overviewLimit)
	defer cancel()
	found, err := r.server.cfg.Store.Overview(ctx)
	if err != nil {
		return answer{}, err
	}
	out := Overview{Payments: []Unfinished{}, Decisions: []DecisionDue{}, Breaks: renderPile(found.Breaks),
		Approvals:   renderPile(found.Approvals),
		LateRefunds: renderPile(found.LateRefunds)}
	if found.Summed == found.Posted {
		out.Money = orNull(fundsOf(found.Ledger))
	}
	for _, p := range found.Payments {
		out.Payments = append(out.Payments, Unfinished{Kind: kindNames[p.Kind], Status: PayoutStatus(p.Status), Count: p.Count,
			Amount: TotalFen(p.Amount), OldestAt: Stamp(p.Oldest)})
	}
	for _, d := range found.Decisions {
		if d.Count > 0 {
			out.Decisions = append(out.Decisions, DecisionDue{Reason: string(d.Reason), Kind: textOrNull(string(d.Break)), Count: d.Count,
				Amount: TotalFen(d.Amount), More: d.AtLeast, OldestAt: Stamp(d.Oldest)})
		}
	}
	return answer{status: http.StatusOK, body: out}, nil
}

func renderPile(p staff.Backlog) Pile { return Pile{Count: p.Count, OldestAt: stampOrNull(p.Oldest)} }

// fundsOf returns the figures of a proof over all packets. Share conflicts are paid with our
// own money and are left out.
func fundsOf(all payout.Balances) *Funds {
	a := proofCheck{}
	a.ledger = all.Own()
	p := a.figures()
	f := &Funds{Funded: TotalFen(p.Total), Paid: TotalFen(p.Paid), Owed: TotalFen(p.Owed), Remaining: TotalFen(p.Remaining),
		Refunding: TotalFen(p.Refunding), Refunded: TotalFen(p.Refunded)}
	f.Ties = f.Funded == f.Paid+f.Owed+f.Remaining+f.Refunding+f.Refunded && min(f.Paid, f.Owed, f.Remaining, f.Refunding, f.Refunded) >= 0
	return f
}

func sumPayouts(r *request) (answer, error) { return r.paymentSum(payout.KindPayout) }
func sumRefunds(r *request) (answer, error) { return r.paymentSum(payout.KindRefund) }

// paymentSum sums what the list with the same filters returns.
func (r *request) paymentSum(kind payout.Kind) (answer, error) {
	q := readQuery(r)
	now := r.server.cfg.Now().UTC()
	filter := readFilter(q, now)
	q.late(&filter, kind, now)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	filter.Kind = kind
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	sum, more, err := r.server.cfg.Store.PaymentSum(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: PaymentSum{Count: sum.Count, Amount: TotalFen(sum.Amount), More: more}}, nil
}
