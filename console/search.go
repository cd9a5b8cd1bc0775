package console

import (
	"errors"
	"net/http"
	"strings"

	"hongbao/client"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// searchPage is the result of a search.
type searchPage struct {
	Query   string
	Payouts []payment
	Refunds []payment
	Charges []payment
	Packets []wire.StaffPacket // sent by this user
}

// searchRows is how many results of each kind are shown.
const searchRows = 20

// idLen and orderLen are the lengths of a payment's id and of an order number.
const (
	idLen    = 25
	orderLen = 27
)

// search finds by order number, payment, packet or user. The id of an existing packet or
// payment redirects to its page; user ids of apps may have the same form.
func (v *visit) search() error {
	q := v.query.Get("q")
	trimmed := strings.TrimSpace(q)
	if trimmed == "" {
		v.show("search", http.StatusOK, searchPage{})
		return nil
	}
	to, err := v.pageFor(trimmed)
	if err != nil {
		return err
	}
	if to != "" {
		return v.redirectTo(to)
	}
	body := searchPage{Query: q}
	// A provider reference is unique too. User ids are compared byte by byte, so the user
	// filter takes the input untrimmed.
	err = v.find(&body, wire.PayoutFilter{ProviderRef: trimmed})
	if err == nil && len(body.Payouts)+len(body.Refunds)+len(body.Charges) == 0 {
		if err = v.find(&body, wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{UserID: q}}); err == nil {
			var sent *wire.List[wire.StaffPacket]
			if sent, err = v.staff.ListPackets(v.r.Context(), wire.StaffPacketFilter{SenderID: q}, client.Page{Limit: searchRows}); err == nil {
				body.Packets = sent.Items
			}
		}
	}
	status := http.StatusOK
	if err != nil {
		if status, err = v.refused(err); err != nil {
			return err
		}
	}
	v.show("search", status, body)
	return nil
}

// find reads the payouts, refunds and charges that match a filter.
func (v *visit) find(body *searchPage, f wire.PayoutFilter) (err error) {
	of := wire.RefundFilter{PayoutFilter: f}
	if body.Payouts, _, _, err = v.readPayouts(v.r.Context(), of, client.Page{Limit: searchRows}); err == nil {
		body.Refunds, _, _, err = v.readRefunds(v.r.Context(), of, client.Page{Limit: searchRows})
	}
	if err == nil {
		body.Charges, _, _, err = v.readCharges(v.r.Context(), of, client.Page{Limit: searchRows})
	}
	return err
}

// pageFor returns the page of the packet or payment with this id or order number; "" if it
// does not exist. While the API is unavailable it returns the page, which reports that.
func (v *visit) pageFor(text string) (to string, err error) {
	ctx := v.r.Context()
	switch {
	case packet.ValidID(text):
		to = "/packets/" + text
	case len(text) == orderLen || len(text) == idLen:
		to = paymentPath(text[:idLen])
	}
	kind, id, _ := strings.Cut(strings.TrimPrefix(to, "/"), "/")
	switch kind {
	case "packets":
		_, err = v.staff.Packet(ctx, id)
	case "payouts":
		_, err = v.staff.Payout(ctx, id)
	case "refunds":
		_, err = v.staff.Refund(ctx, id)
	case "charges":
		_, err = v.staff.Charge(ctx, id)
	}
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusNotFound {
		return "", nil
	}
	if err != nil && !unavailable(err) {
		return "", err
	}
	return to, nil
}

func (v *visit) redirectTo(path string) error {
	redirect(v.w, v.r, path)
	return nil
}

// chargeID returns the id of a packet's charge.
func chargeID(packetID string) string { return "c" + packetID + "0000" }

// paymentPath returns the page of a payment by its id; "" if the id is invalid.
func paymentPath(id string) string {
	if !packet.ValidID(id[1 : 1+packet.IDLen]) {
		return ""
	}
	switch id[0] {
	case 'p', 'h':
		return "/payouts/" + id
	case 'r':
		return "/refunds/" + id
	case 'c':
		return "/charges/" + id
	}
	return ""
}
