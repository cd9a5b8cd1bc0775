package workflows

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// SummaryLimit is the maximum size of a summary in bytes, as sent: a JSON string with a header.
// Temporal rejects a start or an activity with a longer one (limit.userMetadataSummarySize).
const SummaryLimit = 400

// summaryHeader is room for the header; it is slightly more than the header takes.
const summaryHeader = 40

// summary shortens a text to what every server accepts as the summary of a run, an activity or a
// timer. A text that is too long ends with an ellipsis; no character is cut in half.
func summary(text string) string {
	const room, ellipsis = SummaryLimit - summaryHeader - len(`""`), "…"
	size, end := 0, 0 // in JSON so far; end of the text that fits before an ellipsis
	for i, r := range text {
		size += sizeInJSON(r)
		if size > room {
			return text[:end] + ellipsis
		}
		if size <= room-len(ellipsis) {
			_, n := utf8.DecodeRuneInString(text[i:])
			end = i + n
		}
	}
	return text
}

// sizeInJSON returns the maximum size of a character in JSON, in bytes: some are escaped, and
// invalid UTF-8 is replaced.
func sizeInJSON(r rune) int {
	if r < ' ' || strings.ContainsRune("\"\\<>&\u2028\u2029\ufffd", r) {
		return len(`\ufffd`)
	}
	return utf8.RuneLen(r)
}

// PacketSummary is the one-line description of a packet's workflow in the UI.
func PacketSummary(p packet.Packet) string {
	return summary(fmt.Sprintf("红包 %s %s in %d shares from %s", p.TotalAmount, p.Currency, p.ShareCount, p.SenderID))
}

// PayoutSummary is the one-line description of a payout's workflow in the UI.
func PayoutSummary(c packet.Claim) string {
	return summary(fmt.Sprintf("pay %s to %s for share %d of packet %s", c.Amount, c.Account(), c.ShareIndex, c.PacketID))
}

// PaymentSummary is the one-line description of a payment's run in the UI.
func PaymentSummary(p payout.Payment) string {
	verb := "pay %s %s to"
	switch p.Kind {
	case payout.KindRefund:
		verb = "refund %s %s to"
	case payout.KindCharge:
		verb = "charge %s %s from"
	}
	return summary(fmt.Sprintf(verb+" %s for packet %s", p.Amount, p.Currency, p.Account, p.PacketID))
}

// CampaignSummary is the one-line description of a campaign's runs in the UI.
func CampaignSummary(c campaign.Campaign) string {
	return summary("create the packet of the day of " + c.Name + ": " + PacketSummary(c.Template.Packet))
}

// ReconcileSummary is the one-line description of a reconciliation's workflow in the UI.
func ReconcileSummary(in ReconcileInput) string {
	return summary(fmt.Sprintf("compare the statement of %s of %s with the ledger", in.Provider, in.Day))
}

// DailyReconcileSummary is the one-line description of the run that requests the daily
// reconciliation.
func DailyReconcileSummary(provider string) string {
	return summary("request the reconciliation of the day before with " + provider)
}
