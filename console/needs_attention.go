package console

import (
	"net/url"

	"hongbao/wire"
)

// duePages are the lists of what needs a decision, by reason. The list of breaks is filtered by
// kind.
var duePages = map[string]string{"payout_failed": "/payouts?status=failed", "payout_returned": "/payouts?status=returned",
	"refund_failed": "/refunds?status=failed", "refund_returned": "/refunds?status=returned", "approval": "/approvals?status=waiting",
	"break": "/breaks?resolved=false"}

// duePart is the link of a reason and the key of its figures.
type duePart struct{ Href, Key string }

func dueOf(d wire.DecisionDue) duePart {
	out := duePart{Href: duePages[d.Reason], Key: "due-" + d.Reason}
	if d.Kind != nil {
		out.Href += "&" + url.Values{"kind": {*d.Kind}}.Encode()
		out.Key += "-" + *d.Kind
	}
	return out
}
