package workflows

import (
	"fmt"
	"strings"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// PacketDetails is the long description of a packet's workflow in the UI (markdown). console is
// the console's address; "": no link.
func PacketDetails(p packet.Packet, console string) string {
	return fmt.Sprintf("Packet `%s` of app `%s`, split `%s`, opens %s, expires %s.\n\n%sAPI: `GET /v1/packets/%s`, payouts: `GET "+
		"/v1/staff/payouts?packet_id=%s`",
		p.ID, p.App, p.Split, p.OpensAt.UTC().Format(time.RFC3339), p.ExpiresAt.UTC().Format(time.RFC3339), pageLink(console, "packets/"+p.ID),
		p.ID, p.ID)
}

// PaymentDetails is the long description of a payment's run in the UI (markdown). console is the
// console's address; "": no link.
func PaymentDetails(paymentID, console string) string {
	text := fmt.Sprintf("Payment `%s`. %s.", paymentID, places(paymentID, console))
	place := placeOf(paymentID)
	if strings.HasPrefix(place, "packets/") { // a charge is never retried by staff
		return text
	}
	return text + fmt.Sprintf(" A failed one is retried by `POST /v1/staff/%s/retry`.", place)
}

// parseMemberSuffix is where staff find a payment, in the console and below /v1/staff.
func placeOf(paymentID string) string {
	switch parts, err := payout.Parse(paymentID); {
	case err == nil && parts.Kind == payout.KindRefund:
		return "refunds/" + paymentID
	case err == nil && parts.Kind == payout.KindCharge:
		return "packets/" + parts.PacketID
	}
	return "payouts/" + paymentID
}

// places returns links to a payment (markdown).
func places(paymentID, console string) string {
	place := placeOf(paymentID)
	return pageLink(console, place) + "API: `GET /v1/staff/" + place + "`"
}

// pageLink returns a link to a page of the console (markdown); "" if the console's address is not
// set.
func pageLink(console, place string) string {
	if console == "" {
		return ""
	}
	return fmt.Sprintf("Console: [%s](%s/%s). ", place, strings.TrimRight(console, "/"), place)
}

// endDetails describes how a payment ended, and the next step for staff (markdown).
func endDetails(st payout.State, console string) string {
	text := "Status: **" + string(st.Status) + "**."
	if f := st.Failure; f != nil && (st.Status == payout.StatusFailed || st.Status == payout.StatusReturned) {
		text += fmt.Sprintf(" `%s`: %s\n\n**Next:** %s", f.Code, f.Message, f.NextAction)
	}
	return text + "\n\n" + places(st.PaymentID, console)
}

// waitDetails describes what an open payment waits for (markdown).
func waitDetails(st payout.State, console string) string {
	at := st.Step.At.UTC().Format(time.RFC3339)
	text := fmt.Sprintf("Status: **%s**. Next: %s order `%s` at %s, or when a notification arrives.", st.Status, st.Step.Do,
		st.Step.OrderNo, at)
	if st.Step.Deferred != payout.NotDeferred {
		text = fmt.Sprintf("Status: **%s**. **Deferred**: %s. Retries at %s by itself.", st.Status, st.Step.Deferred, at)
	}
	return text + "\n\n" + places(st.PaymentID, console)
}
