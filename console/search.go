package console

import (
	"errors"
	"net/http"
	"strings"

	"hongbao/client"
	"hongbao/internal/packet"
)

// searchPage is what was found for what somebody has put in.
type searchPage struct {
	Query   string
	Payouts []payment
	Refunds []payment
	Packets []client.StaffPacket // that this user has sent
}

// searchRows is how many of each are shown; the lists have more.
const searchRows = 20

// idLen and orderLen are the lengths of a payment's id and of an order number.
const (
	idLen    = 25
	orderLen = 27
)

// search finds by order number, payment, packet or user. What is a packet or a
// payment of ours leads there at once; apps may give their users ids that look like it.
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
	// What the provider calls a payment is one thing only, too. A user's id is
	// compared byte by byte, so it is looked for as it was put in.
	err = v.find(&body, client.PayoutFilter{ProviderRef: trimmed})
	if err == nil && len(body.Payouts)+len(body.Refunds) == 0 {
		if err = v.find(&body, client.PayoutFilter{UserID: q}); err == nil {
			var sent *client.List[client.StaffPacket]
			if sent, err = v.staff.ListPackets(v.r.Context(), client.StaffPacketFilter{SenderID: q}, client.Page{Limit: searchRows}); err == nil {
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

// find adds the payouts and refunds that a filter selects.
func (v *visit) find(body *searchPage, f client.PayoutFilter) (err error) {
	if body.Payouts, _, _, err = v.readPayouts(v.r.Context(), f, client.Page{Limit: searchRows}); err == nil {
		body.Refunds, _, _, err = v.readRefunds(v.r.Context(), f, client.Page{Limit: searchRows})
	}
	return err
}

// pageFor is the page of the packet or payment that something names; "": of none
// that is there. While it cannot be asked, the page itself says so.
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

// paymentPath is the page of a payment by its id; "": it cannot be one.
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
		return "/packets/" + id[1:1+packet.IDLen]
	}
	return ""
}
