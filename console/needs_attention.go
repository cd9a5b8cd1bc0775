package console

import (
	"net/url"

	"hongbao/client"
)

// duePages are the lists of what waits for a decision, by reason; that of a break lists
// its kind.
var duePages = map[string]string{"payout_failed": "/payouts?status=failed", "payout_returned": "/payouts?status=returned",
	"refund_failed": "/refunds?status=failed", "refund_returned": "/refunds?status=returned", "approval": "/approvals?status=waiting",
	"break": "/breaks?resolved=false"}

// duePart is where a reason leads to, and what names its figures.
type duePart struct{ Href, Key string }

func dueOf(d client.DecisionDue) duePart {
	out := duePart{Href: duePages[d.Reason], Key: "due-" + d.Reason}
	if d.Kind != nil {
		out.Href += "&" + url.Values{"kind": {*d.Kind}}.Encode()
		out.Key += "-" + *d.Kind
	}
	return out
}
