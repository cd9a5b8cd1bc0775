package api

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/payout"
)

// overviewLimit bounds the reading of the overview.
const overviewLimit = 8 * time.Second

// Overview is where all the money is, and what is not at its end.
type Overview struct {
	Money     Nullable[Funds] `json:"money" doc:"The ledger over all packets; null while a large one is added up for the first time after the start of a process, and when it comes to more than 64 bits hold."`
	Payments  []Unfinished    `json:"payments" nullable:"false" doc:"Payments that are not at their end, by kind and status; kinds and statuses with none left out."`
	Breaks    Pile            `json:"breaks" doc:"Breaks that nobody has resolved."`
	Approvals Pile            `json:"approvals" doc:"Decisions that wait for a second person."`

	Decisions []DecisionDue `json:"decisions" nullable:"false" doc:"What waits for staff to decide, by reason; reasons without any left out."`

	LateRefunds Pile `json:"late_refunds" doc:"Refunds that are due for five minutes and not at their end: /v1/staff/refunds?late=true lists them."`
}

// Funds is the money of all packets: funded = paid + owed + remaining + refunding + refunded.
type Funds struct {
	Funded    TotalFen `json:"funded" doc:"What senders were charged."`
	Paid      TotalFen `json:"paid" doc:"Paid to winners, outside payments included, without what came back."`
	Owed      TotalFen `json:"owed" doc:"Claimed and not paid."`
	Remaining TotalFen `json:"remaining" doc:"In packets, not claimed."`
	Refunding TotalFen `json:"refunding" doc:"On its way back to senders."`
	Refunded  TotalFen `json:"refunded" doc:"Back with senders."`
	Ties      bool     `json:"ties" doc:"The parts make up the whole, and none is below zero."`
}

// Unfinished are the payments of one kind in one status.
type Unfinished struct {
	Kind     string       `json:"kind" enum:"charge,payout,refund,honour" doc:"honour: a promise that could not be booked, which the house pays."`
	Status   PayoutStatus `json:"status" doc:"Their status."`
	Count    int64        `json:"count" minimum:"1" doc:"How many there are."`
	Amount   TotalFen     `json:"amount" doc:"What they come to."`
	OldestAt Stamp        `json:"oldest_at" doc:"When the oldest of them was made."`
}

// DecisionBacklog is what waits for staff to decide for one reason.
type DecisionDue struct {
	Reason   string           `json:"reason" enum:"payout_failed,payout_returned,refund_failed,refund_returned,approval,break" doc:"Why. What waits for two reasons counts in both: a share conflict is a payout that failed and a break."`
	Kind     Nullable[string] `json:"kind" doc:"Of a break its kind; null of everything else."`
	Count    int64            `json:"count" minimum:"1" doc:"How many there are."`
	Amount   TotalFen         `json:"amount" doc:"What they come to; with more: at least."`
	More     bool             `json:"more" doc:"There are more than 10,000, of which the newest were added up."`
	OldestAt Stamp            `json:"oldest_at" doc:"Since when the first of them waits."`
}

// Pile is a number of things that wait.
type Pile struct {
	Count    int64           `json:"count" minimum:"0" doc:"How many wait."`
	OldestAt Nullable[Stamp] `json:"oldest_at" doc:"Since when the oldest has; null when none does."`
}

// PaymentSum counts payments and adds them up.
type PaymentSum struct {
	Count  int64    `json:"count" minimum:"0" doc:"How many there are; with more: at least."`
	Amount TotalFen `json:"amount" doc:"What they come to; with more: at least."`
	More   bool     `json:"more" doc:"There are more than 10,000, of which the newest were counted."`
}

// kindNames are the names of kinds of payments.
var kindNames = map[payout.Kind]string{payout.KindCharge: "charge", payout.KindPayout: "payout", payout.KindRefund: "refund",
	payout.KindHonour: "honour"}

func getOverview(r *request) (answer, error) {
	if err := readQuery(r).done(); err != nil {
		return answer{}, err
	}
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

func renderPile(p payout.Backlog) Pile { return Pile{Count: p.Count, OldestAt: stampOrNull(p.Oldest)} }

// fundsOf are the figures of a proof, over all packets: promises that could not be
// booked are the house's money and left out.
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

// paymentSum adds up what a list with the same filters would show.
func (r *request) paymentSum(kind payout.Kind) (answer, error) {
	q := readQuery(r)
	now := r.server.cfg.Now().UTC()
	filter := readFilter(q, now)
	q.late(&filter, kind, now)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	filter.Kind = kind
	ctx, cancel := context.WithTimeout(r.ctx, listLimit)
	defer cancel()
	sum, more, err := r.server.cfg.Store.PaymentSum(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: PaymentSum{Count: sum.Count, Amount: TotalFen(sum.Amount), More: more}}, nil
}
