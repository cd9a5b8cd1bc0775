package api

import (
	"context"
	"errors"
	"net/http"

	"hongbao/packet"
	"hongbao/payout"
)

// Claims is a page of claims.
type Claims struct {
	Items      []Claim          `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"Continues the list; null on its last page."`
}

// grabCursor is the last claim of a page: its share and user for MySQL, and how
// many claims were made before it for Redis.
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
	payout func(packet.Claim) payout.Progress
	// made is how many claims had been made with the first one of the page.
	made int
}

// grabsAfter locates a packet of the caller and reads a page of its claims from
// where all of them are. A pool that is retired between the two is looked for again.
func (r *request) grabsAfter(id string, after grabCursor, limit int) (grabPage, error) {
	for try := 0; ; try++ {
		l, err := r.server.locate(r.ctx, id)
		if err != nil {
			return grabPage{}, err
		}
		if err := r.own(l.snapshot().Packet); err != nil {
			return grabPage{}, err
		}
		if !l.alive {
			return r.recordedGrabs(l, after, limit)
		}
		claims, made, err := r.server.cfg.Pool.ClaimsPage(r.ctx, id, after.Before, limit)
		if err == nil {
			return grabPage{location: l, claims: claims, made: made, payout: r.server.statuses(r.ctx, claims, readLimit)}, nil
		}
		if try > 0 || !errors.Is(err, packet.ErrNotFound) {
			return grabPage{}, unavailable(err)
		}
	}
}

func (r *request) recordedGrabs(l location, after grabCursor, limit int) (grabPage, error) {
	if !l.settled {
		return grabPage{}, unavailable(errors.New("the pool is not in redis, and the packet is not closed"))
	}
	ctx, cancel := context.WithTimeout(r.ctx, readLimit)
	defer cancel()
	paid, err := r.server.cfg.Store.ToldAfter(ctx, l.rec.ID, after.Share, after.User, limit)
	if err != nil {
		return grabPage{}, err
	}
	page := grabPage{location: l}
	of := make(map[string]payout.Progress, len(paid))
	for _, p := range paid {
		page.claims = append(page.claims, p.Claim)
		of[p.UserID] = progressOf(p)
	}
	page.payout = func(c packet.Claim) payout.Progress { return of[c.UserID] }
	if len(paid) > 0 {
		page.made = paid[0].ShareIndex + 1
	}
	return page, nil
}

func listGrabs(r *request) (answer, error) {
	id, err := r.packetID()
	if err != nil {
		return answer{}, err
	}
	q := readQuery(r)
	limit, cursor := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	after := grabCursor{Share: -1, Before: -1}
	if cursor != "" && (decodeCursor(cursor, &after) != nil || after.PacketID != id || after.Share < 0 || after.Before < 0) {
		return answer{}, badCursor()
	}
	found, err := r.grabsAfter(id, after, limit+1)
	if err != nil {
		return answer{}, err
	}
	page := Claims{Items: []Claim{}}
	if len(found.claims) > limit {
		found.claims = found.claims[:limit]
		last := found.claims[limit-1]
		page.NextCursor = encodeCursor(grabCursor{PacketID: id, Share: last.ShareIndex, User: last.UserID, Before: found.made - limit})
	}
	best := r.server.luck(found.location)
	for _, c := range found.claims {
		paid := found.payout(c)
		item := renderClaim(c, paid)
		item.BestLuck = isBest(best, c, paid)
		page.Items = append(page.Items, item)
	}
	return answer{status: http.StatusOK, body: page}, nil
}

func getGrab(r *request) (answer, error) {
	id, err := r.packetID()
	if err != nil {
		return answer{}, err
	}
	user, err := r.userID()
	if err != nil {
		return answer{}, err
	}
	l, err := r.server.locate(r.ctx, id)
	if err != nil {
		return answer{}, err
	}
	if err := r.own(l.snapshot().Packet); err != nil {
		return answer{}, err
	}
	c, paid, err := r.oneClaim(l, id, user)
	if err != nil {
		return answer{}, err
	}
	out := renderClaim(c, paid)
	out.BestLuck = isBest(r.server.luck(l), c, paid)
	return answer{status: http.StatusOK, body: out}, nil
}

// oneClaim reads one user's claim from Redis, else from MySQL. "There is none"
// is said only by a store that knows every claim.
func (r *request) oneClaim(l location, id, user string) (packet.Claim, payout.Progress, error) {
	if l.alive {
		c, ok, err := r.server.cfg.Pool.Claim(r.ctx, id, user)
		if err != nil {
			return c, payout.Progress{}, err
		}
		if ok {
			return c, r.server.statuses(r.ctx, []packet.Claim{c}, readLimit)(c), nil
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, readLimit)
	defer cancel()
	paid, err := r.server.cfg.Store.Claim(ctx, id, user)
	switch {
	case err == nil:
		return paid.Claim, progressOf(paid), nil
	case errors.Is(err, packet.ErrNotFound) && (l.alive || l.settled), errors.Is(err, packet.ErrUnavailable) && l.alive:
		return packet.Claim{}, payout.Progress{}, refuse(CodeClaimNotFound)
	case errors.Is(err, packet.ErrNotFound):
		return packet.Claim{}, payout.Progress{}, unavailable(err)
	}
	return packet.Claim{}, payout.Progress{}, err
}

func progressOf(p packet.Paid) payout.Progress {
	return payout.Progress{ID: p.PayoutID, Status: payout.Status(p.PayoutStatus)}
}
