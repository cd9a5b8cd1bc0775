package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"hongbao/packet"
	"hongbao/payout"
)

// Claims is a page of claims.
type Claims struct {
	Items      []Claim          `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"Continues the list; null on its last page."`
}

// claims reads every claim of a packet from where all of them are.
func (s *Server) claims(ctx context.Context, l location) ([]packet.Claim, error) {
	if l.alive {
		return s.cfg.Pool.Claims(ctx, l.view.Packet.ID)
	}
	if !l.settled {
		return nil, unavailable(errors.New("the pool is not in redis, and the packet is not closed"))
	}
	paid, err := s.cfg.Store.Claims(ctx, l.rec.ID)
	out := make([]packet.Claim, len(paid))
	for i, p := range paid {
		out[i] = p.Claim
	}
	return out, err
}

// allClaims locates a packet of the caller and reads its claims. A pool that is
// retired between the two is looked for again.
func (r *request) allClaims(id string) (location, []packet.Claim, error) {
	for try := 0; ; try++ {
		l, err := r.server.locate(r.ctx, id)
		if err != nil {
			return l, nil, err
		}
		if err := r.own(l.snapshot().Packet); err != nil {
			return l, nil, err
		}
		all, err := r.server.claims(r.ctx, l)
		if err != nil || !l.alive || len(all) >= l.view.ClaimedCount {
			return l, all, err
		}
		if try > 0 {
			return l, nil, unavailable(errors.New("counter and winners of the pool disagree"))
		}
	}
}

// newestFirst orders claims for lists.
func newestFirst(a, b packet.Claim) int {
	return cmp.Or(b.ClaimedAt.Compare(a.ClaimedAt), cmp.Compare(b.ShareIndex, a.ShareIndex))
}

// grabCursor is the last claim of a page.
type grabCursor struct {
	PacketID string `json:"p"`
	At       int64  `json:"t"` // ms
	Share    int    `json:"s"`
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
	after := grabCursor{}
	if cursor != "" && (decodeCursor(cursor, &after) != nil || after.PacketID != id) {
		return answer{}, badCursor()
	}
	l, all, err := r.allClaims(id)
	if err != nil {
		return answer{}, err
	}
	best, err := r.server.luckiest(r.ctx, l, func() ([]packet.Claim, error) { return all, nil })
	if err != nil {
		return answer{}, err
	}
	slices.SortFunc(all, newestFirst)
	if cursor != "" {
		last := packet.Claim{ClaimedAt: time.UnixMilli(after.At), ShareIndex: after.Share}
		at, _ := slices.BinarySearchFunc(all, last, newestFirst)
		for at < len(all) && newestFirst(all[at], last) <= 0 {
			at++
		}
		all = all[at:]
	}
	page := Claims{Items: []Claim{}}
	if len(all) > limit {
		all = all[:limit]
		last := all[limit-1]
		page.NextCursor = encodeCursor(grabCursor{PacketID: id, At: last.ClaimedAt.UnixMilli(), Share: last.ShareIndex})
	}
	status := r.server.statuses(r.ctx, all, readLimit)
	for _, c := range all {
		item := renderClaim(c, status(c))
		item.BestLuck = isBest(best, c)
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
	c, status, err := r.oneClaim(l, id, user)
	if err != nil {
		return answer{}, err
	}
	best, err := r.server.luckiest(r.ctx, l, func() ([]packet.Claim, error) { return r.server.claims(r.ctx, l) })
	if err != nil && (l.alive || l.settled) {
		return answer{}, err
	}
	out := renderClaim(c, status)
	out.BestLuck = isBest(best, c)
	return answer{status: http.StatusOK, body: out}, nil
}

// oneClaim reads one user's claim from Redis, else from MySQL. "There is none"
// is said only by a store that knows every claim.
func (r *request) oneClaim(l location, id, user string) (packet.Claim, payout.Status, error) {
	if l.alive {
		c, ok, err := r.server.cfg.Pool.Claim(r.ctx, id, user)
		if err != nil {
			return c, "", err
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
		return paid.Claim, payout.Status(paid.PayoutStatus), nil
	case errors.Is(err, packet.ErrNotFound) && (l.alive || l.settled), errors.Is(err, packet.ErrUnavailable) && l.alive:
		return packet.Claim{}, "", refuse(CodeClaimNotFound)
	case errors.Is(err, packet.ErrNotFound):
		return packet.Claim{}, "", unavailable(err)
	}
	return packet.Claim{}, "", err
}
