package wire

import (
	"hongbao/internal/money"
)

// Claim is a claim in answers.
type Claim struct {
	PacketID        string           `json:"packet_id" doc:"The packet of the share." example:"3q5k9v0c1m7e2u8h4r6t"`
	UserID          string           `json:"user_id" doc:"The user who won the share." example:"u2"`
	Nickname        *string          `json:"nickname" doc:"As in the request."`
	AvatarURL       *string          `json:"avatar_url" doc:"As in the request."`
	ShareIndex      int              `json:"share_index" minimum:"0" doc:"The index of the share, 0 to share_count - 1." example:"3"`
	Amount          money.Fen        `json:"amount" doc:"The amount of the share." example:"1288"`
	Currency        string           `json:"currency" enum:"CNY" doc:"The amount is in fen, the minor unit of CNY."`
	ClaimedAt       Time             `json:"claimed_at" doc:"When the share was won, by the clock of Redis."`
	Replayed        bool             `json:"replayed" doc:"true: the claim existed before this grab."`
	BestLuck        bool             `json:"best_luck" doc:"true on exactly one claim once the packet is sold out or closed: the largest, then the earliest, then the lowest index. false before."`
	Payout          PayoutRef        `json:"payout" doc:"The payout of the claim."`
	RecipientAction *RecipientAction `json:"recipient_action" doc:"What the recipient can do so that the payout is paid. confirm: confirm at the provider; of a failed payout, after POST …/confirm. fix_account: give another account with PUT …/recipient, or repair this one. verify_identity: prove who they are at the provider, or correct the name with PUT …/recipient. wait: finance decides. null: nothing."`
	Confirm         *Confirm         `json:"confirm" doc:"What the recipient's app needs in order to confirm. Only the claim of one user, read by itself, has it; null everywhere else, and while there is none. It works like a bearer key: give it to the recipient only."`
}

// Confirm is what the recipient's app needs in order to confirm a payout at the provider.
type Confirm struct {
	Parameters map[string]string `json:"parameters" doc:"For the provider's SDK."`
	ValidUntil Time              `json:"valid_until" doc:"Until when the recipient can confirm."`
}

// RecipientAction is what the recipient of a payout can do so that it is paid.
type RecipientAction string

// The actions.
const (
	RecipientConfirm        RecipientAction = "confirm"
	RecipientFixAccount     RecipientAction = "fix_account"
	RecipientVerifyIdentity RecipientAction = "verify_identity"
	RecipientWait           RecipientAction = "wait"
)

// PayoutRef is the payout of a claim.
type PayoutRef struct {
	ID     string       `json:"id" doc:"The payout's id, known when the share is won. For a share conflict it changes to an id that begins with h." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	Status PayoutStatus `json:"status" doc:"pending: not sent yet. sending: with the provider. unknown: the outcome is not known and is queried. awaiting_recipient: the recipient has to act. paid: done. failed, returned: finance decides. cancelled: refunded to the sender; of a refund: given up, because the sender must not get it. paid_outside: paid by other means."`
}

// Grab is the body of a grab.
type Grab struct {
	UserID    string     `json:"user_id" minLength:"1" maxLength:"64" doc:"The user who grabs: 1 to 64 bytes of UTF-8 without control characters, compared byte by byte." example:"u2"`
	Nickname  string     `json:"nickname,omitempty" maxLength:"64" doc:"Returned with the claim; an empty string counts as omitted." nullable:"true"`
	AvatarURL string     `json:"avatar_url,omitempty" maxLength:"512" doc:"Returned with the claim: an http or https URL; an empty string counts as omitted." nullable:"true"`
	Recipient *Recipient `json:"recipient,omitempty" orNull:"true" orText:"true" doc:"Who is paid: an account at the provider, or an object with more. By default the account is the user id. A repeat keeps the first recipient."`
	Ticket    string     `json:"ticket,omitempty" maxLength:"2048" doc:"For packets with tickets: the ticket that your app signed for this packet and user, see docs/integrate.md. At most 2048 bytes; other packets ignore it." nullable:"true"`
}

// Recipient is the recipient of a payout.
type Recipient struct {
	Account       string `json:"account,omitempty" minLength:"1" maxLength:"64" check:"id" doc:"The account at the provider, such as an openid; by default the user id." nullable:"true"`
	Name          string `json:"name,omitempty" minLength:"1" maxLength:"64" check:"name" doc:"The real name, where recipient_required of the packet has name, or to let the provider compare it. It is stored encrypted and is in no answer." nullable:"true"`
	Authorization string `json:"authorization,omitempty" minLength:"1" maxLength:"64" check:"authorization" doc:"The number of the recipient's agreement with the provider to be paid without confirming each time, where payouts.authorizations of the provider is true." nullable:"true"`
}

// UserClaim is a claim in the list of its user's claims.
type UserClaim struct {
	Claim
	SenderID string `json:"sender_id" doc:"Who sent the packet." example:"u1"`
	Greeting string `json:"greeting" doc:"Of the packet."`
}

// SummaryPeriod selects the year of a summary.
type SummaryPeriod struct {
	Year int    `json:"year,omitempty" minimum:"2000" maximum:"9999" doc:"The year; by default the current one." example:"2026"`
	TZ   string `json:"tz,omitempty" check:"zone" doc:"IANA name of the time zone in which the year is counted; Asia/Shanghai by default." example:"Asia/Shanghai"`
}

// Summary is what a user sent and received in a year.
type Summary struct {
	UserID   string          `json:"user_id" doc:"Whose summary it is." example:"u1"`
	Year     int             `json:"year" doc:"From the first moment of this year to its last, in the time zone." example:"2026"`
	TZ       string          `json:"tz" doc:"The time zone." example:"Asia/Shanghai"`
	Sent     SentSummary     `json:"sent" doc:"Packets by the time of their creation: those that were charged, whatever became of them."`
	Received ReceivedSummary `json:"received" doc:"Claims by the time they were won, paid out or not yet."`
}

// SentSummary is what a user sent.
type SentSummary struct {
	Count  int       `json:"count" minimum:"0" doc:"How many packets."`
	Amount money.Fen `json:"amount" doc:"The sum of their total_amount." fen:"sum"`
}

// ReceivedSummary is what a user received.
type ReceivedSummary struct {
	Count    int       `json:"count" minimum:"0" doc:"How many claims."`
	Amount   money.Fen `json:"amount" doc:"The sum of their amounts." fen:"sum"`
	BestLuck int       `json:"best_luck" minimum:"0" doc:"How many of them had the best luck of a packet that is sold out or closed."`
}
