package api

import (
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// advice says for every code what the caller should do. docs/errors.md and the
// pages that `type` links to are made from it and from the catalogue.
var advice = map[Code]string{
	CodeMalformedJSON:    "Check how the body is encoded and whether it was cut off on its way. Repeating it unchanged does not help.",
	CodeMalformedRequest: "Check the HTTP client: request line, headers, percent-encoding of the path.",
	CodeKeyRequired:      "Choose a key per logical operation, your order id is best, keep it, and send it with every repeat.",
	CodeUnauthenticated:  "Send `Authorization: Bearer <key>`. A revoked, expired or mistyped key looks the same as an unknown one.",
	CodeFundingDeclined: "Tell the sender why (`failure`). Nothing was taken; the packet stays readable as `rejected`. Should the " +
		"provider charge him after all, he gets all of it back by itself. A new attempt needs a new Idempotency-Key.",
	CodeForbidden: "Use a key of the right role: app keys for app paths, staff keys for staff paths, finance for decisions, admin " +
		"for keys.",
	CodeNotEligible: "Show the user that this packet is not for him. Where the packet has a list it will not change, nor where " +
		"`detail` says that he has won in another packet of its campaign. Where it wants " +
		"tickets, `detail` says what is wrong with this one: sign him another if he may grab, and send the same with it. \"The grab was " +
		"refused.\" comes from the platform's risk check; do not tell the user more.",
	CodeNotFound: "When `detail` names a thing (\"There is no such approval.\"), check its id. Else check the path against " +
		"`/openapi.json`, and whether it belongs to the other listener.",
	CodePacketNotFound:   "Check the id. Another app's packet is not found either.",
	CodeClaimNotFound:    "This user has not won a share of this packet. A claim that was acknowledged is always found.",
	CodePayoutNotFound:   "Check the id: it is the `payout.id` of a claim.",
	CodeRefundNotFound:   "Check the id: `/v1/staff/refunds?packet_id=` lists the refunds of a packet.",
	CodeCampaignNotFound: "Check the id: `/v1/campaigns` lists the app's own. Another app's campaign is not found either.",
	CodeMethodNotAllowed: "Use one of the methods in the Allow header.",
	CodeRequestTimeout: "Send the request again, faster. A create with the same Idempotency-Key and a grab of the same user are safe to " +
		"repeat.",
	CodeNotOpenYet: "Show a countdown to `opens_at` and ask again then; Retry-After says when. A packet that is still being funded " +
		"may open later than `opens_at`.",
	CodeSoldOut: "Show that all shares are gone. It stays the answer for everybody who has no claim.",
	CodeRequestInProgress: "The first request with this key has not ended. Wait for Retry-After and send the same again; it takes at most " +
		"10 s.",
	CodeNotRetryable: "Read the payout or refund. `failed` and `returned` can be retried, cancelled or marked as paid; `unknown` can " +
		"be retried or marked as paid, and only once the provider no longer knows its number, or has moved money under an earlier one " +
		"(mark-paid alone); asking needs an order number that was sent. Somebody may have been faster, and what was answered or has expired " +
		"cannot be approved, rejected or withdrawn any more. Of a packet that `hongbao recover` has left to people nothing is decided while " +
		"its break of kind `restored` is open; the detail says so.",
	CodeDecisionPending: "`GET /v1/staff/approvals?payment_id=` lists it. While it is `waiting`, have it approved or rejected first, or " +
		"the one who asked withdraw it. " +
		"While it is `open`, it is agreed and being carried out: it ends by itself, so read the payout or refund again after a while.",
	CodeDecisionChanged: "Read `preview` and the payout or refund. The consent of a second person covers what the first one was shown. " +
		"Reject the decision, or have the one who asked withdraw it, and decide again on what is there now.",
	CodeOwnKey: "Ask with the key of another administrator, or rotate the key with `grace_seconds` of 60 or more and use the new " +
		"one.",
	CodeLastAdminKey: "Make another key of role admin that does not end by itself, then ask again under a new Idempotency-Key.",
	CodeKeyEnded: "Read the key: `replaced_by` is its successor, which can be rotated. A key that was revoked or has expired is " +
		"replaced by creating one.",
	CodeCampaignEnded:    "Create another campaign, under a new Idempotency-Key.",
	CodeManyCampaigns:    "End those that are not wanted any more, then send the same again.",
	CodeExpired:          "Show that the packet is over. What was left goes back to the sender.",
	CodeBodyTooLarge:     "Keep bodies below 64 KiB; creating a packet may take 4 MiB.",
	CodeUnsupportedMedia: "Send `Content-Type: application/json` and no content coding.",
	CodeInvalidRequest:   "Mend every member listed in `errors`. Repeating it unchanged does not help; nothing was changed.",
	CodeKeyReused:        "The key belongs to another request. Use a new key for a new operation; look for a mixed-up order id.",
	CodeRateLimited: "Wait for Retry-After, then send the same again: nothing was taken or changed. Limits are off unless the " +
		"platform sets some (`HONGBAO_LIMIT_USER`, `HONGBAO_LIMIT_ADDRESS`, `HONGBAO_LIMIT_KEY`, `HONGBAO_LIMIT_WINS`). " +
		"Who has a claim of this packet already gets " +
		"it also when he is over a limit.",
	CodeHeadersTooLarge: "Send fewer or shorter headers.",
	CodeInternal:        "Report it with the `request_id`. Repeating a create with the same key, or a grab, is safe.",
	CodeUnavailable:     "Wait for Retry-After and send the same again: nothing was taken, or the repeat finds what was done.",
}

// ErrorDocument renders docs/errors.md: one section a code.
func ErrorDocument() string {
	var b strings.Builder
	b.WriteString("# Errors\n\nEvery error is `application/problem+json` (RFC 9457). Programs switch on `code`; `type` links to the " +
		"section of the code, `detail` is for\npeople. Generated from `api/errors.go` and `api/advice.go`: `go test ./api -run " +
		"TestErrorDocument -update`.\n")
	for _, r := range catalogue {
		fmt.Fprintf(&b, "\n## %s\n\n%d · %s\n\n%s\n\n%s\n", r.code, r.status, r.title, r.detail, advice[r.code])
	}
	return b.String()
}

// getErrorPage is what the `type` of an error links to.
func getErrorPage(r *request) (answer, error) {
	code := Code(r.c.Params("code"))
	text, ok := advice[code]
	if !ok {
		return answer{}, refuse(CodeNotFound)
	}
	status, title, detail := code.row()
	page := fmt.Sprintf("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title><h1>%s</h1><p>%d · "+
		"<code>%s</code><p>%s<p>%s</html>\n",
		html.EscapeString(title), html.EscapeString(title), status, html.EscapeString(string(code)), html.EscapeString(detail),
		html.EscapeString(text))
	return answer{status: http.StatusOK, raw: []byte(page), kind: "text/html; charset=utf-8", header: map[string]string{
		fiber.HeaderContentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
		fiber.HeaderXContentTypeOptions:   "nosniff",
	}}, nil
}
