package rest

import (
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"hongbao/wire"
)

// advice is the next step of the caller for each code. docs/errors.md and the pages
// at /errors/{code} are generated from it and from the catalogue.
var advice = map[wire.Code]string{
	wire.CodeMalformedJSON:    "Check how the client encodes the body. Repeating it unchanged does not help.",
	wire.CodeMalformedRequest: "Check the HTTP client: request line, headers, percent-encoding of the path.",
	wire.CodeKeyRequired:      "Choose one key per operation (your order id is best), store it, and send it with every repeat.",
	wire.CodeUnauthenticated: "Send `Authorization: Bearer <key>`. `detail` says whether the key is missing, malformed (its checksum " +
		"does not fit: copy it again) or unknown. A key that was revoked, has expired or is not approved yet is answered like an unknown one.",
	wire.CodeFundingDeclined: "Show the sender the reason (`failure`). The packet can still be read; it is `rejected`. If the " +
		"charge succeeds later, the sender is refunded in full automatically. A new attempt needs a new Idempotency-Key.",
	wire.CodeInsufficientBalance: "`GET /v1/balance` shows what is available. Have finance credit the balance, then create the packet " +
		"with a new Idempotency-Key: the refusal is remembered for its key. For a debit, wait for packets to close, or ask for less.",
	wire.CodeReferenceUsed: "Check whether the movement was recorded already: `GET /v1/staff/balances/movements` and the approvals list it. " +
		"For another movement, give its own `reference`.",
	wire.CodeForbidden: "Use a key with the right role, which `detail` names: app keys for app paths, staff keys for staff paths, finance " +
		"for decisions, admin for keys. When `detail` asks for another person, that person has to send the request.",
	wire.CodeNotEligible: "Show the user that this packet is not open to them. The answer is final for a packet with a list, and " +
		"when `detail` says that the user won another packet of the campaign. For a packet with tickets, `detail` says what is wrong " +
		"with the ticket: sign a new ticket and repeat the grab with it. \"The grab was refused.\" comes from the platform's risk " +
		"check; give the user no further reason.",
	wire.CodeNotFound: "When `detail` names a thing (\"There is no such approval.\"), check its id. Otherwise check the path " +
		"against `/openapi.json` and whether it belongs to the other listener.",
	wire.CodePacketNotFound: "Check the id. A packet of another app is answered the same way.",
	wire.CodeClaimNotFound:  "The user has not won a share of this packet. An acknowledged claim is always found.",
	wire.CodePayoutNotFound: "Check the id: it is the `payout.id` of a claim.",
	wire.CodeRefundNotFound: "Check the id: `/v1/staff/refunds?packet_id=` lists the refunds of a packet.",
	wire.CodeChargeNotFound: "Check the id: `/v1/staff/charges?packet_id=` lists the charge of a packet.",
	wire.CodeCampaignNotFound: "Check the id: `/v1/campaigns` lists the campaigns of the app. A campaign of another app is answered " +
		"the same way.",
	wire.CodeMethodNotAllowed: "Use one of the methods in the Allow header.",
	wire.CodeRequestTimeout: "Send the request again over a faster connection. A create with the same Idempotency-Key and a grab of " +
		"the same user are safe to repeat.",
	wire.CodeNotOpenYet: "Show a countdown to `opens_at` and repeat the request then; Retry-After gives the seconds. A packet that " +
		"is still being funded may open later than `opens_at`.",
	wire.CodeSoldOut:             "Show that all shares are gone. The answer is final for users without a claim.",
	wire.CodeRequestInProgress:   "Wait for Retry-After and repeat the same request. The first request ends within 10 s.",
	wire.CodeRecipientIncomplete: "Give the members that `errors` names: `recipient_required` of the packet lists them before a grab.",
	wire.CodeRecipientFixed: "Read the claim. While its payout is under way or paid, the recipient stays; it can be changed after the " +
		"payout failed or was returned.",
	wire.CodeNotRetryable: "Read the payout or refund. `failed` and `returned` can be retried, cancelled or marked as paid. " +
		"One that is not final can be retried or marked as paid after the provider's memory of its order number ends, and an " +
		"`unknown` one marked as paid when money moved under an earlier number. A query needs an order number that was sent. " +
		"Another person may have decided first; a decision " +
		"that was answered or has expired cannot be approved, rejected or withdrawn.",
	wire.CodeRecoveryRequired: "The outcome of the packet's charge is not known, so its shares are not written. Have operations run " +
		"`hongbao recover` again once the provider answers.",
	wire.CodeHeld: "`detail` names the hold. `GET /v1/staff/holds/{id}` shows it and what its release lets go; release it " +
		"(`POST /v1/staff/holds/{id}/release`), then repeat the request.",
	wire.CodeDecisionPending: "`GET /v1/staff/approvals?payment_id=` lists it. A `waiting` decision has to be approved, rejected or " +
		"withdrawn first. An `open` cancel is being carried out and ends without further requests: read the payout again later. If the " +
		"provider gives no final answer, `POST /v1/staff/payouts/{id}/withdraw` ends it.",
	wire.CodeDecisionChanged: "Read `preview` and the payout or refund. An approval covers only what was shown when the decision " +
		"was made. Reject or withdraw the decision, then decide again on the current state.",
	wire.CodeOwnKey: "Send the request with the key of another administrator, or rotate the key with `grace_seconds` of at least 60 " +
		"and use the new key.",
	wire.CodeLastAdminKey: "Create another admin key without an expiry, then repeat the request with a new Idempotency-Key.",
	wire.CodeKeyEnded: "Read the key: `replaced_by` is its successor, which can be rotated. To replace a revoked or expired key, " +
		"create a new one.",
	wire.CodeCampaignEnded:    "Create another campaign with a new Idempotency-Key.",
	wire.CodeManyCampaigns:    "End campaigns that are no longer needed, then repeat the request.",
	wire.CodeManyUnpaid:       "Have the sender pay or close an earlier packet, then repeat the request with the same Idempotency-Key.",
	wire.CodeExpired:          "Show that the packet is over. The unclaimed amount is refunded to the sender.",
	wire.CodeBodyTooLarge:     "Send at most 64 KiB; 4 MiB when a packet or campaign is created.",
	wire.CodeUnsupportedMedia: "Send `Content-Type: application/json` without a content coding.",
	wire.CodeInvalidRequest:   "Correct every member listed in `errors`. Repeating the request unchanged does not help.",
	wire.CodeKeyReused:        "Use a new key for a new operation, and check for a mixed-up order id.",
	wire.CodeRateLimited: "Wait for Retry-After, then repeat the request. The platform sets the limits (`HONGBAO_LIMIT_USER`, " +
		"`HONGBAO_LIMIT_ADDRESS`, `HONGBAO_LIMIT_KEY`, `HONGBAO_LIMIT_WINS`); by default there are none. A user with a claim in this " +
		"packet gets it also when over a limit.",
	wire.CodeHeadersTooLarge: "Send fewer or shorter headers.",
	wire.CodeInternal:        "Report it with the `request_id`. A create with the same Idempotency-Key and a grab are safe to repeat.",
	wire.CodeUnavailable: "Wait for Retry-After and repeat the same request: either nothing was done, or the repeat returns what " +
		"was done.",
}

// ErrorDocument renders docs/errors.md with one section per code.
func ErrorDocument() string {
	var b strings.Builder
	b.WriteString("# Errors\n\nFor engineers of app backends: what each error code means and what to do next.\n\n" +
		"Every error is `application/problem+json` (RFC 9457). Programs switch on `code`; `detail` is text for people. Each code below has\n" +
		"its status, its title, the usual `detail`, and the next step.\n\n" +
		"`type` is a URI reference, for example `/errors/sold_out`. Resolve it against the URL of the request, as RFC 9457 says:\n" +
		"`https://api.example.com/errors/sold_out` is a page about the code. It needs no key and exists on both listeners.\n\n" +
		"Generated from `api/rest/errors.go` and `api/rest/advice.go`: `go test ./api/rest -run TestErrorDocument -update`.\n")
	for _, r := range catalogue {
		fmt.Fprintf(&b, "\n## %s\n\n%d · %s\n\n%s\n\n%s\n", r.code, r.status, r.title, r.detail, advice[r.code])
	}
	return b.String()
}

// GetErrorPage renders the page that the `type` of an error refers to.
func GetErrorPage(r *Request) (Answer, error) {
	code := wire.Code(r.C.Params("code"))
	text, ok := advice[code]
	if !ok {
		return Answer{}, Refuse(wire.CodeNotFound)
	}
	status, title, detail := rowOf(code)
	page := fmt.Sprintf("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title><h1>%s</h1><p>%d · "+
		"<code>%s</code><p>%s<p>%s</html>\n",
		html.EscapeString(title), html.EscapeString(title), status, html.EscapeString(string(code)), html.EscapeString(detail),
		html.EscapeString(text))
	return Answer{Status: http.StatusOK, Raw: []byte(page), Kind: "text/html; charset=utf-8", Header: map[string]string{
		fiber.HeaderContentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
		fiber.HeaderXContentTypeOptions:   "nosniff",
	}}, nil
}
