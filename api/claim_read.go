package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// grabCursor is the position after a page: share and user of the last claim for MySQL, and for
// Redis the number of earlier claims.
type grabCursor struct {
	PacketID string `json:"p"`
	Share    int    `json:"s"`
	User     string `json:"u"`
	Before   int    `json:"n"`
}

// grabPage is part of the claims of a packet, newest first.
type grabPage struct {
	location
	claims []packet.Claim
	payout func(packet.Claim) payout.PayoutProgress
	// before is, for Redis, the number of claims made before the next one after the n-th claim
	// of the page.
	before func(n int) int
}

// grabsAfter reads a page of the claims of a packet of the caller from the store that has all
// of them. When the pool is retired during the read, the packet is located again.
func (r *request) grabsAfter(id string, after grabCursor, limit int) (grabPage, error) {
	for try := 0; ; try++ {
		l, err := r.server.locate(r.Ctx, id)
		if err != nil {
			return grabPage{}, err
		}
		if err := r.own(l.snapshot().Packet); err != nil {
			return grabPage{}, err
		}
		if !l.hasPool {
			return r.recordedGrabs(l, after, limit)
		}
		page, err := r.pooledGrabs(l, id, after, limit)
		if err == nil {
			return page, nil
		}
		if try > 0 || !errors.Is(err, packet.ErrNotFound) {
			return grabPage{}, rest.Unavailable(err)
		}
	}
}

// pooledGrabs reads a page from Redis, where each share was won once.
func (r *request) pooledGrabs(l location, id string, after grabCursor, limit int) (grabPage, error) {
	claims, made, err := r.server.cfg.Pool.ClaimsPage(r.Ctx, id, after.Before, limit+1)
	if err != nil {
		return grabPage{}, err
	}
	// The previous page came from MySQL up to the claim of the cursor: it may include some
	// claims of this share, among them its winner.
	if len(claims) > 0 && claims[0].ShareIndex == after.Share && claims[0].UserID <= after.User {
		claims, made = claims[1:], made-1
	}
	claims = claims[:min(limit, len(claims))]
	return grabPage{location: l, claims: claims, payout: r.server.payoutProgress(r.Ctx, claims, rest.ReadTimeout),
		before: func(n int) int { return made - n }}, nil
}

func (r *request) recordedGrabs(l location, after grabCursor, limit int) (grabPage, error) {
	if !l.complete {
		return grabPage{}, rest.Unavailable(errors.New("the pool is not in redis, and the packet is not closed"))
	}
	ctx, cancel := context.WithTimeout(r.Ctx, rest.ReadTimeout)
	defer cancel()
	recorded, err := r.server.cfg.Store.AcknowledgedClaimsAfter(ctx, l.rec.ID, after.Share, after.User, limit)
	if err != nil {
		return grabPage{}, err
	}
	page := grabPage{location: l}
	of := make(map[string]payout.PayoutProgress, len(recorded))
	for _, p := range recorded {
		page.claims = append(page.claims, p.Claim)
		of[p.UserID] = progressOf(p)
	}
	page.payout = func(c packet.Claim) payout.PayoutProgress { return of[c.UserID] }
	// A share is listed again for each share conflict about it, so the next page may
	// continue with the same share. Claims do not contain their position.
	page.before = func(n int) int { return recorded[n-1].ShareIndex + 1 }
	return page, nil
}

type grabsIn struct {
	packetIn
	Page  rest.PageParams `in:"query"`
	after grabCursor
}

func (in *grabsIn) Check(o *rest.Object) {
	in.after = grabCursor{Share: -1, Before: -1}
	if cursor := in.Page.Cursor; cursor != "" && (rest.DecodeCursor(cursor, &in.after) != nil || in.after.Share < 0 || in.after.Before < 0) {
		o.Fault("cursor", rest.Fault{Code: rest.FaultFormat, Message: rest.CursorFault})
	}
}

func (s *Server) listGrabs(_ context.Context, in *grabsIn) (*wire.List[wire.Claim], error) {
	limit := cmp.Or(in.Page.Limit, rest.DefaultLimit)
	if in.Page.Cursor != "" && in.after.PacketID != in.ID {
		return nil, rest.BadCursor()
	}
	found, err := in.grabsAfter(in.ID, in.after, limit+1)
	if err != nil {
		return nil, err
	}
	page := &wire.List[wire.Claim]{Items: []wire.Claim{}}
	if len(found.claims) > limit {
		found.claims = found.claims[:limit]
		last := found.claims[limit-1]
		page.NextCursor = rest.EncodeCursor(grabCursor{PacketID: in.ID, Share: last.ShareIndex, User: last.UserID, Before: found.before(limit)})
	}
	best := s.luck(found.location)
	for _, c := range found.claims {
		p := found.payout(c)
		item := renderClaim(c, p)
		item.BestLuck = isBest(best, c, p)
		page.Items = append(page.Items, item)
	}
	return page, nil
}

type grabIn struct {
	packetIn
	User string `path:"user_id" of:"user"`
}

func (s *Server) getGrab(ctx context.Context, in *grabIn) (*wire.Claim, error) {
	l, c, p, err := in.claim(ctx)
	if err != nil {
		return nil, err
	}
	return s.renderOwnClaim(ctx, l, c, p), nil
}

// claim reads the claim that the path names.
func (in *grabIn) claim(ctx context.Context) (l location, c packet.Claim, p payout.PayoutProgress, err error) {
	if l, err = in.server.locate(ctx, in.ID); err != nil {
		return l, c, p, err
	}
	if err = in.own(l.snapshot().Packet); err != nil {
		return l, c, p, err
	}
	c, p, err = in.oneClaim(l, in.ID, in.User)
	return l, c, p, err
}

// renderOwnClaim renders a claim with what its recipient needs in order to confirm.
func (s *Server) renderOwnClaim(ctx context.Context, l location, c packet.Claim, p payout.PayoutProgress) *wire.Claim {
	out := renderClaim(c, p)
	out.BestLuck = isBest(s.luck(l), c, p)
	if p.Status == payout.StatusAwaitingRecipient {
		out.Confirm = s.confirm(ctx, c.PacketID, p.ID)
	}
	return &out
}

type confirmAgainIn struct {
	grabIn
	Body wire.NoMembers `in:"body"`
}

// confirmAgain has a payout sent again whose recipient did not confirm in time.
func (s *Server) confirmAgain(ctx context.Context, in *confirmAgainIn) (*wire.Claim, error) {
	l, c, p, err := in.claim(ctx)
	if err != nil {
		return nil, err
	}
	switch after, err := s.cfg.Store.ConfirmAgain(ctx, in.Caller.Key, p.ID); {
	case err == nil:
		p = after
	case errors.Is(err, packet.ErrNotFound): // MySQL does not have it yet: its payout is about to begin
	case rest.RefusedByState(err):
		return nil, rest.RefusedDecision(err)
	default:
		return nil, err
	}
	return s.renderOwnClaim(ctx, l, c, p), nil
}

// confirm reads what the recipient of a payout needs in order to confirm; nil: there is none, or it is not
// known now. The claim is returned in any case.
func (s *Server) confirm(ctx context.Context, packetID, payoutID string) *wire.Confirm {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	sealed, err := s.cfg.Store.RecipientAction(ctx, payoutID)
	if err == nil && len(sealed) == 0 {
		return nil
	}
	var action payout.ClientAction
	if err == nil {
		action, err = s.openAction(packetID, sealed)
	}
	if err != nil {
		slog.WarnContext(ctx, "the recipient's client data was not read", slog.String("payment_id", payoutID), slog.Any("error", err))
		return nil
	}
	if !action.ValidUntil.After(s.cfg.Now()) {
		return nil
	}
	return &wire.Confirm{Parameters: action.Parameters, ValidUntil: wire.At(action.ValidUntil)}
}

// oneClaim reads one user's claim from Redis, or else from MySQL. Only a store that has every
// claim may answer "not found".
func (r *request) oneClaim(l location, id, user string) (packet.Claim, payout.PayoutProgress, error) {
	if l.hasPool {
		c, ok, err := r.server.cfg.Pool.Claim(r.Ctx, id, user)
		if err != nil {
			return c, payout.PayoutProgress{}, err
		}
		if ok {
			return c, r.server.payoutProgress(r.Ctx, []packet.Claim{c}, rest.ReadTimeout)(c), nil
		}
	}
	ctx, cancel := context.WithTimeout(r.Ctx, rest.ReadTimeout)
	defer cancel()
	recorded, err := r.server.cfg.Store.Claim(ctx, id, user)
	switch {
	case err == nil:
		return recorded.Claim, progressOf(recorded), nil
	case errors.Is(err, packet.ErrNotFound) && (l.hasPool || l.complete),
		errors.Is(err, packet.ErrUnavailable) && l.hasPool && r.stillAlive(id):
		return packet.Claim{}, payout.PayoutProgress{}, rest.Refuse(wire.CodeClaimNotFound)
	case errors.Is(err, packet.ErrNotFound):
		return packet.Claim{}, payout.PayoutProgress{}, rest.Unavailable(err)
	}
	return packet.Claim{}, payout.PayoutProgress{}, err
}

// stillAlive reports whether a pool still exists after a read: then neither the pool nor its
// claims were retired during the read.
func (r *request) stillAlive(id string) bool {
	view, err := r.server.cfg.Pool.View(r.Ctx, id)
	return err == nil && !view.Retired
}

func progressOf(p packet.ClaimWithPayout) payout.PayoutProgress {
	return payout.PayoutProgress{ID: p.PayoutID, Status: payout.Status(p.PayoutStatus), FailureCode: p.FailureCode}
}
