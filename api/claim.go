package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

// grabRequest is a parsed and checked Grab.
type grabRequest struct {
	user    string
	profile packet.Profile
	name    string // the recipient's, "": not stated
	ticket  string // "": none
}

// Limits of the profile in a grab.
const (
	maxNickname  = 64  // characters
	maxAvatarURL = 512 // characters
)

// readGrab parses and checks the body of a grab. A faultless body is decoded in one step; any
// other body is read member by member to report its faults.
func readGrab(body []byte) (grabRequest, error) {
	if g, ok := decodeGrab(body); ok {
		return g, nil
	}
	o, err := rest.ReadObject(body)
	if err != nil {
		return grabRequest{}, err
	}
	return grabFrom(o)
}

// decodeGrab decodes the body of a grab; false: the body may have faults, or its recipient is an object. The decoder refuses
// duplicate and unknown members, other types and invalid UTF-8; null counts as omitted, as in
// readGrab.
func decodeGrab(body []byte) (grabRequest, bool) {
	var g struct { // pointers: an empty member is not an omitted one
		UserID    string  `json:"user_id"`
		Nickname  *string `json:"nickname"`
		AvatarURL *string `json:"avatar_url"`
		Recipient *string `json:"recipient"`
		Ticket    *string `json:"ticket"`
	}
	if json.Unmarshal(body, &g, json.RejectUnknownMembers(true)) != nil || rest.CheckID(g.UserID) != nil ||
		g.Nickname != nil && rest.CheckText(maxNickname)(*g.Nickname) != nil ||
		g.AvatarURL != nil && checkAvatar(*g.AvatarURL) != nil ||
		g.Recipient != nil && rest.CheckID(*g.Recipient) != nil ||
		g.Ticket != nil && checkTicket(*g.Ticket) != nil {
		return grabRequest{}, false
	}
	return grabRequest{user: g.UserID, ticket: rest.ValueOr(g.Ticket, ""),
		profile: packet.Profile{Nickname: nonEmpty(g.Nickname), AvatarURL: nonEmpty(g.AvatarURL), Recipient: rest.ValueOr(g.Recipient, "")}}, true
}

func grabFrom(o *rest.Object) (grabRequest, error) {
	var g grabRequest
	g.user = rest.ValueOr(o.Text("user_id", true, rest.CheckID), "")
	to := readRecipient(o, "recipient")
	g.profile = packet.Profile{
		Nickname:  nonEmpty(o.Text("nickname", false, rest.CheckText(maxNickname))),
		AvatarURL: nonEmpty(o.Text("avatar_url", false, checkAvatar)),
		Recipient: to.Account, Authorization: to.Authorization,
	}
	g.name = to.Name
	g.ticket = rest.ValueOr(o.Text("ticket", false, checkTicket), "")
	return g, o.Done()
}

func checkTicket(s string) *rest.Fault {
	if len(s) > ticket.MaxBytes {
		return &rest.Fault{Code: rest.FaultLength, Message: fmt.Sprintf("must have at most %d bytes", ticket.MaxBytes)}
	}
	return nil
}

// nonEmpty returns nil for an empty nickname or avatar: apps send empty values for users without
// a profile.
func nonEmpty(s *string) *string {
	if s != nil && *s == "" {
		return nil
	}
	return s
}

func checkAvatar(s string) *rest.Fault {
	if s == "" {
		return nil // counts as omitted
	}
	if f := rest.CheckText(maxAvatarURL)(s); f != nil {
		return f
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return &rest.Fault{Code: rest.FaultFormat, Message: "must be an http or https URL"}
	}
	return nil
}

// renderClaim renders a claim; only its payout and best luck can change later.
func renderClaim(c packet.Claim, p payout.PayoutProgress) wire.Claim {
	return wire.Claim{
		PacketID: c.PacketID, UserID: c.UserID, Nickname: c.Nickname, AvatarURL: c.AvatarURL, ShareIndex: c.ShareIndex,
		Amount: c.Amount, Currency: packet.CurrencyCNY, ClaimedAt: wire.At(c.ClaimedAt),
		Payout:          wire.PayoutRef{ID: p.ID, Status: wire.PayoutStatus(p.Status)},
		RecipientAction: wire.NonZero(wire.RecipientAction(payout.RecipientActionOf(p.Status, p.FailureCode))),
	}
}

// pendingPayout is the progress of a claim's payout as long as MySQL does not have it.
func pendingPayout(c payout.ClaimRef) payout.PayoutProgress {
	return payout.PayoutProgress{ID: payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), Status: payout.StatusPending}
}

func claimRefOf(c packet.Claim) payout.ClaimRef {
	return payout.ClaimRef{PacketID: c.PacketID, UserID: c.UserID, ShareIndex: c.ShareIndex}
}

// payoutProgress reads the progress of the payouts of claims, and returns it by claim.
// Unrecorded payouts are pending, and all are pending while MySQL is unavailable: claims are
// returned without MySQL.
func (s *Server) payoutProgress(ctx context.Context, claims []packet.Claim, limit time.Duration) func(packet.Claim) payout.PayoutProgress {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	refs := make([]payout.ClaimRef, len(claims))
	for i, c := range claims {
		refs[i] = claimRefOf(c)
	}
	found, err := s.cfg.Store.PayoutProgress(ctx, refs)
	if err != nil {
		slog.WarnContext(ctx, "payout statuses were not read", slog.Any("error", err))
	}
	return func(c packet.Claim) payout.PayoutProgress {
		if p, ok := found[claimRefOf(c)]; ok && err == nil {
			return p
		}
		return pendingPayout(claimRefOf(c))
	}
}

// luck returns the index of the best-luck share of a packet; nil while shares can be claimed,
// or when no share was claimed.
func (s *Server) luck(l location) *int {
	id := l.snapshot().ID
	if known, ok := s.lucky.get(id); ok && known.epoch == l.epoch {
		return known.share
	}
	best, final := l.bestLuck()
	if final {
		s.lucky.put(id, luck{best, l.epoch})
	}
	return best
}

// bestLuck returns the index of the best-luck share, and whether it is final.
func (l location) bestLuck() (share *int, final bool) {
	if l.hasPool {
		return l.view.BestLuck()
	}
	return l.rec.BestShare, l.complete
}

// isBest reports whether a claim has the best luck: best is the index of that share. A share
// conflict never has it: its payout has another id, and its share belongs to another
// claim.
func isBest(best *int, c packet.Claim, p payout.PayoutProgress) bool {
	return best != nil && *best == c.ShareIndex && p.ID == pendingPayout(claimRefOf(c)).ID
}
