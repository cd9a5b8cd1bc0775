package api

import (
	"fmt"
	"strings"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// fundingRequest is the member funding of a create request. The body hash covers it: absent, or as the
// default, it is left out.
type fundingRequest struct {
	Source wire.FundingSource `json:"source"`
	Method string             `json:"method,omitempty"`
}

// readFunding reads the member funding; nil: the default.
func readFunding(o *object) *fundingRequest {
	in := o.object("funding", false)
	q := fundingRequest{Source: wire.FundingSource(valueOr(in.text("source", false, func(s string) *fault {
		if wire.FundingSource(s) != wire.FundingSender {
			return &fault{faultEnum, "must be sender"}
		}
		return nil
	}), string(wire.FundingSender)))}
	q.Method = valueOr(in.text("method", false, nil), "")
	in.rejectUnknown()
	if q == (fundingRequest{Source: wire.FundingSender}) {
		return nil
	}
	return &q
}

// chooseMethod fixes how the sender of a new packet pays, by the methods of its charge provider.
func (c *creation) chooseMethod(limits payout.Limits) error {
	asked := ""
	if c.Funding != nil {
		asked = c.Funding.Method
	}
	method, ok := limits.Method(asked)
	if !ok && asked != "" {
		names := make([]string, len(limits.Methods))
		for i, m := range limits.Methods {
			names[i] = m.Name
		}
		return invalidField("funding.method", faultEnum, fmt.Sprintf("must be one of the provider's methods: %s", strings.Join(names, ", ")))
	}
	c.packet.ChargeMethod = method.Name
	return nil
}

// fundingOf renders how a packet is paid for.
func fundingOf(p packet.Packet, status packet.Status, failure *packet.Failure) wire.Funding {
	out := wire.Funding{Source: wire.FundingSender, Provider: p.ChargeProvider, Status: wire.FundingPaid}
	if p.ChargeMethod != "" {
		out.Method = &p.ChargeMethod
	}
	switch status {
	case packet.StatusFunding:
		out.Status = wire.FundingProcessing
	case packet.StatusRejected:
		out.Status, out.Failure = wire.FundingDeclined, failureOf(failure)
	}
	return out
}
