package api

import (
	"errors"
	"fmt"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// createRequest is a create request with defaults filled in. The body hash is computed from
// its JSON, so members and their order must never change.
type createRequest struct {
	SenderID string            `json:"sender_id"`
	Total    money.Fen         `json:"total_amount"`
	Count    int               `json:"share_count"`
	Split    packet.SplitMode  `json:"split"`
	MinShare money.Fen         `json:"min_share"`
	MaxShare money.Fen         `json:"max_share"` // 0: no cap
	Currency string            `json:"currency"`
	Greeting string            `json:"greeting"`
	OpensAt  *time.Time        `json:"opens_at"` // UTC, whole milliseconds
	Life     int64             `json:"expires_in_seconds"`
	Eligible []string          `json:"eligible_user_ids"` // in the order given; nil: everybody
	GroupID  *string           `json:"group_id"`
	Metadata map[string]string `json:"metadata"`
	Tickets  bool              `json:"tickets,omitempty"` // omitted when false, so that the hash of requests without it does not change
	Funding  *fundingRequest   `json:"funding,omitempty"` // nil: the default
}

// readCreate parses and checks the body of a create request.
func readCreate(body []byte) (createRequest, error) {
	o, err := rest.ReadObject(body)
	if err != nil {
		return createRequest{}, err
	}
	return createFrom(o)
}

func createFrom(o *rest.Object) (createRequest, error) {
	q := createMembers(o, true)
	return q, o.Done()
}

// createMembers reads the members of a packet, or of a campaign's template, which has no
// opening time.
func createMembers(o *rest.Object, opens bool) (q createRequest) {
	q.SenderID = rest.ValueOr(o.Text("sender_id", true, rest.CheckID), "")
	readSplit(o, &q)
	q.Currency = rest.ValueOr(o.Text("currency", false, func(s string) *rest.Fault {
		if s != packet.CurrencyCNY {
			return &rest.Fault{Code: rest.FaultEnum, Message: "must be CNY"}
		}
		return nil
	}), packet.CurrencyCNY)
	q.Greeting = rest.ValueOr(o.Text("greeting", false, rest.CheckText(packet.MaxGreeting)), "")
	if opens {
		q.OpensAt = readTime(o, "opens_at")
	}
	q.Funding = readFunding(o, opens)
	q.Life = rest.ValueOr(o.Integer("expires_in_seconds", false, int64(packet.MinLife.Seconds()), int64(packet.MaxLife.Seconds())),
		int64(packet.DefaultLife.Seconds()))
	q.Eligible = o.List("eligible_user_ids", packet.MaxEligible, rest.CheckID)
	q.Tickets = rest.ValueOr(o.Boolean("tickets"), false)
	if q.Tickets && q.Eligible != nil {
		o.Fault("tickets", rest.Fault{Code: rest.FaultEnum, Message: "cannot be combined with eligible_user_ids"})
	}
	q.GroupID = o.Text("group_id", false, rest.CheckID)
	q.Metadata = o.TextMap("metadata")
	if f := checkMetadata(q.Metadata); f != nil {
		o.Fault("metadata", *f)
	}
	return q
}

// checkMetadata bounds values and names separately. As JSON with every byte escaped both are
// less than 32 KiB.
func checkMetadata(metadata map[string]string) *rest.Fault {
	names, values := 0, 0
	for name, value := range metadata {
		names, values = names+len(name), values+len(value)
	}
	if names > packet.MaxMetadata || values > packet.MaxMetadata {
		return &rest.Fault{Code: rest.FaultLength,
			Message: fmt.Sprintf("must have at most %d bytes of values, and as many of names", packet.MaxMetadata)}
	}
	return nil
}

// readSplit reads the members that determine the shares. Their relations are checked only when
// each is valid by itself.
func readSplit(o *rest.Object, q *createRequest) {
	total := o.Integer("total_amount", true, 1, int64(money.Max))
	count := o.Integer("share_count", true, 1, packet.MaxShares)
	mode := o.Text("split", false, nil)
	least := o.Integer("min_share", false, 1, int64(money.Max))
	most := o.Integer("max_share", false, 1, int64(money.Max))
	numbers := []string{"total_amount", "share_count", "min_share", "max_share"}
	unread := o.Faulty(numbers...)

	q.Total = money.Fen(rest.ValueOr(total, 1))
	q.Count = int(rest.ValueOr(count, 1))
	q.Split = packet.SplitMode(rest.ValueOr(mode, string(packet.SplitRandom)))
	q.MinShare = money.Fen(rest.ValueOr(least, int64(packet.DefaultMinShare)))
	q.MaxShare = money.Fen(rest.ValueOr(most, 0))
	err := packet.SplitParams{Mode: q.Split, Total: q.Total, Count: q.Count, Min: q.MinShare, Max: q.MaxShare}.Validate()
	var faults packet.SplitParamErrors
	if err != nil && !errors.As(err, &faults) {
		o.Fault("split", rest.Fault{Code: rest.FaultRange, Message: "cannot be split"})
		return
	}
	for _, f := range faults {
		relation := f.Code == packet.CodeTotalTooSmall || f.Code == packet.CodeTotalTooLarge
		if !o.Faulty(f.Field) && !(relation && unread) {
			o.Fault(f.Field, rest.Fault{Code: f.Code, Message: f.Message})
		}
	}
}

// readTime reads an RFC 3339 time and truncates it to milliseconds.
func readTime(o *rest.Object, name string) *time.Time {
	var at time.Time
	text := o.Text(name, false, func(s string) *rest.Fault {
		parsed, err := rest.ParseTime(s)
		at = parsed.UTC().Truncate(time.Millisecond)
		if err != nil || at.Year() < 1 || at.Year() > 9999 { // a zone offset can leave the range of years
			return &rest.Fault{Code: rest.FaultFormat, Message: "must be an RFC 3339 time such as 2026-02-17T20:00:00.000Z"}
		}
		return nil
	})
	if text == nil {
		return nil
	}
	return &at
}

// packet returns the packet to stage. Redis sets its times.
func (q createRequest) packet(app, id, hash string, seedKey [32]byte) packet.Packet {
	return packet.Packet{
		ID: id, App: app, SenderID: q.SenderID, Currency: q.Currency, TotalAmount: q.Total, ShareCount: q.Count, Split: q.Split,
		MinShare: q.MinShare, MaxShare: q.MaxShare, Greeting: q.Greeting, GroupID: q.GroupID, Metadata: q.Metadata,
		EligibleCount: len(q.Eligible), Tickets: q.Tickets, BodyHash: hash, Commitment: packet.Commitment(packet.DeriveSeed(seedKey, id)),
	}
}
