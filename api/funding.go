package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// fundingRequest is the member funding of a create request. The body hash covers it: absent, or as the
// default, it is left out.
type fundingRequest struct {
	Source    wire.FundingSource `json:"source"`
	Method    string             `json:"method,omitempty"`
	Payer     map[string]string  `json:"payer,omitempty"`
	ReturnURL string             `json:"return_url,omitempty"`
	PayWithin int64              `json:"expires_in_seconds,omitempty"`
}

// readFunding reads the member funding; nil: the default. methods: the sender may choose how to pay.
func readFunding(o *rest.Object, methods bool) *fundingRequest {
	in := o.Object("funding", false)
	q := fundingRequest{Source: wire.FundingSource(rest.ValueOr(in.Text("source", false, func(s string) *rest.Fault {
		if s := wire.FundingSource(s); s != wire.FundingSender && s != wire.FundingMerchant {
			return &rest.Fault{Code: rest.FaultEnum, Message: "must be sender or merchant"}
		}
		return nil
	}), string(wire.FundingSender)))}
	if methods {
		readMethod(in, &q)
	}
	in.RejectUnknown()
	if q.Source == wire.FundingSender && q.Method == "" && len(q.Payer) == 0 && q.ReturnURL == "" && q.PayWithin == 0 {
		return nil
	}
	return &q
}

func readMethod(in *rest.Object, q *fundingRequest) {
	q.Method = rest.ValueOr(in.Text("method", false, nil), "")
	q.Payer = in.TextMap("payer")
	if f := checkMetadata(q.Payer); f != nil {
		in.Fault("payer", *f)
	}
	q.ReturnURL = rest.ValueOr(in.Text("return_url", false, rest.CheckText(maxReturnURL)), "")
	q.PayWithin = rest.ValueOr(in.Integer("expires_in_seconds", false, minPayWithin, maxPayWithin), 0)
}

// ofMerchant reports whether the app's balance pays.
func (q *fundingRequest) ofMerchant() bool { return q != nil && q.Source == wire.FundingMerchant }

// fundingSource is who pays for a packet of a charge provider.
func fundingSource(provider string) wire.FundingSource {
	if provider == payout.BalanceProvider {
		return wire.FundingMerchant
	}
	return wire.FundingSender
}

// How long a sender has to pay in an app, in seconds, and the shortest packet that such a sender can fund.
const (
	minPayWithin     = 60
	defaultPayWithin = 15 * 60
	maxPayWithin     = 24 * 60 * 60
	minPayerLife     = 10 * 60
	maxReturnURL     = 512
)

// Unpaid packets take memory and cost nothing to create, so they are bounded. Creates at the same moment may
// exceed a bound by a few.
const (
	maxUnpaidOfSender = 20
	maxUnpaidOfApp    = 10_000
	// guestsPerUnpaid is how many guests of a packet count as one more packet: 10,000 lists of 10,000 ids
	// would take several GB of Redis.
	guestsPerUnpaid = 100
)

// boundUnpaid refuses a packet that its sender pays in an app while too many others wait for their payment.
func (c *creation) boundUnpaid() error {
	if c.packet.PayWithin == 0 {
		return nil
	}
	atMost := maxUnpaidOfApp / (1 + c.packet.EligibleCount/guestsPerUnpaid)
	if ofApp, ofSender := c.server.cfg.Pool.StagedCounts(c.Ctx, c.packet.App, c.packet.SenderID); ofApp >= atMost ||
		ofSender >= maxUnpaidOfSender {
		return rest.Refuse(wire.CodeManyUnpaid)
	}
	return nil
}

// chooseMethod fixes how the sender of a new packet pays, by the methods of its charge provider. What the
// method needs of the sender is sealed.
func (c *creation) chooseMethod(limits payout.Limits, now time.Time) error {
	q := fundingRequest{}
	if c.Funding != nil {
		q = *c.Funding
	}
	method, ok := limits.Method(q.Method)
	if q.Method != "" && len(limits.Methods) == 0 {
		return rest.InvalidField("funding.method", rest.FaultEnum, "must be left out: there is none to choose")
	}
	if !ok && q.Method != "" {
		names := make([]string, len(limits.Methods))
		for i, m := range limits.Methods {
			names[i] = m.Name
		}
		return rest.InvalidField("funding.method", rest.FaultEnum, fmt.Sprintf("must be one of the provider's methods: %s",
			strings.Join(names, ", ")))
	}
	c.packet.ChargeMethod = method.Name
	if !method.NeedsPayer {
		if len(q.Payer) > 0 || q.ReturnURL != "" || q.PayWithin != 0 {
			return rest.InvalidField("funding.method", rest.FaultEnum, "must be one that the sender pays in an app, when payer, return_url or "+
				"expires_in_seconds is given")
		}
		return nil
	}
	for _, name := range method.Payer {
		if q.Payer[name] == "" {
			return rest.InvalidField("funding.payer."+name, rest.FaultRequired, "is required by the method")
		}
	}
	return c.payInApp(q, now)
}

// payInApp bounds the time in which a sender has to pay: before the packet opens, and in the first half of its
// life.
func (c *creation) payInApp(q fundingRequest, now time.Time) error {
	most := c.Life / 2
	if c.OpensAt != nil {
		most += int64(max(c.OpensAt.Sub(now), 0) / time.Second)
		most = min(most, int64(c.OpensAt.Sub(now)/time.Second))
	}
	within := q.PayWithin
	if within == 0 {
		within = max(min(defaultPayWithin, most), minPayWithin)
	}
	switch {
	case c.Life < minPayerLife:
		return rest.InvalidField("expires_in_seconds", rest.FaultRange,
			fmt.Sprintf("must be at least %d with a method that the sender pays in an app",
				minPayerLife))
	case within > most:
		return rest.InvalidField("funding.expires_in_seconds", rest.FaultRange,
			"must end before opens_at, and in the first half of the packet's "+
				"expires_in_seconds")
	}
	c.packet.PayWithin = within
	if len(q.Payer) == 0 && q.ReturnURL == "" {
		return nil
	}
	plain, err := json.Marshal(packet.Payer{Payer: q.Payer, ReturnURL: q.ReturnURL})
	if err != nil {
		return fmt.Errorf("encode payer: %w", err)
	}
	c.packet.SealedPayer, err = packet.Seal(c.server.cfg.SeedKey, c.packet.ID, plain)
	return err
}

// funding renders how a packet is paid for.
func (s *Server) funding(snap snapshot) (wire.Funding, error) {
	p := snap.Packet
	out := wire.Funding{Source: fundingSource(p.ChargeProvider), Provider: p.ChargeProvider, Status: wire.FundingPaid}
	if p.ChargeMethod != "" {
		out.Method = &p.ChargeMethod
	}
	if p.PayWithin > 0 {
		out.ExpiresAt = rest.TimeOrNull(p.PayUntil())
	}
	switch snap.status {
	case packet.StatusFunding:
		out.Status = wire.FundingProcessing
		if len(snap.action) == 0 {
			return out, nil
		}
		action, err := s.openAction(p.ID, snap.action)
		if err != nil {
			return out, err
		}
		if action.ValidUntil.After(s.cfg.Now()) {
			out.Status, out.NextAction = wire.FundingRequiresAction, nextAction(action)
		}
	case packet.StatusRejected:
		out.Status, out.Failure = wire.FundingDeclined, rest.FailureOf(snap.failure)
		if f := snap.failure; f != nil && (f.Code == payout.FailureFundingExpired || f.Code == payout.FailureFundingCancelled) {
			out.Status = wire.FundingExpired
		}
	}
	return out, nil
}

// addLatePayment adds to a rejected packet that its sender was charged nevertheless, which the provider reported later.
// Without MySQL the packet is answered as Redis knows it.
func (s *Server) addLatePayment(ctx context.Context, out *wire.Packet) error {
	refund, err := s.paymentOf(ctx, payout.KindRefund, out.ID)
	if err != nil || refund.ID == "" {
		return err
	}
	out.Funding.LatePayment = &wire.LatePayment{Amount: refund.Amount, PaidAt: wire.At(refund.CreatedAt),
		Refund: wire.LateRefund{Status: wire.PayoutStatus(refund.Status)}}
	if refund.Status == payout.StatusPaid || refund.Status == payout.StatusPaidOutside {
		out.RefundedAmount = refund.Amount
	}
	return nil
}

// addRefusedCoupon adds to a packet that did not open that its sender paid with a coupon, which is not accepted.
func (s *Server) addRefusedCoupon(ctx context.Context, out *wire.Packet) error {
	charge, err := s.paymentOf(ctx, payout.KindCharge, out.ID)
	if err == nil && charge.RefusedCoupon() {
		f := payout.FailureOf(payout.KindCharge, payout.FailureCouponNotAllowed, "")
		out.Funding.Failure = &wire.Failure{Code: f.Code, Message: f.Message}
	}
	return err
}

// paymentOf reads the charge or remainder of a packet; its id is empty without one, and while MySQL is away.
func (s *Server) paymentOf(ctx context.Context, kind payout.Kind, packetID string) (staff.PaymentDetail, error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	d, err := s.cfg.Store.Payment(ctx, payout.ID(kind, packetID, 0))
	if errors.Is(err, packet.ErrNotFound) || errors.Is(err, packet.ErrUnavailable) {
		return staff.PaymentDetail{}, nil
	}
	return d, err
}

// openAction opens sealed client data of a payment of a packet.
func (s *Server) openAction(packetID string, sealed []byte) (action payout.ClientAction, err error) {
	plain, err := packet.Open(s.cfg.SeedKey, packetID, sealed)
	if err != nil {
		return action, err
	}
	if err := json.Unmarshal(plain, &action); err != nil {
		return action, fmt.Errorf("client data of packet %s: %w", packetID, err)
	}
	return action, nil
}

func nextAction(a payout.ClientAction) *wire.NextAction {
	out := &wire.NextAction{Type: wire.ActionType(a.Type), Parameters: a.Parameters, ValidUntil: wire.At(a.ValidUntil)}
	if out.Parameters == nil {
		out.Parameters = map[string]string{}
	}
	if a.URL != "" {
		out.URL = &a.URL
	}
	if a.QRCode != "" {
		out.QRCode = &a.QRCode
	}
	return out
}
