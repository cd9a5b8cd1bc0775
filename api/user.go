package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"hongbao/api/rest"

	_ "time/tzdata"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// time zones independent of the machine

// userClaims is the list of the claims of a user.
func (s *Server) userClaims() rest.Listing[struct{}, wire.UserClaim] {
	return rest.Listing[struct{}, wire.UserClaim]{Name: "claims", ID: "packet",
		Read: func(ctx context.Context, a rest.Selection[struct{}]) ([]wire.UserClaim, *rest.Position, error) {
			items, err := s.claimsOfUser(ctx, a.Caller.App.ID, a.Within, a.After.Cursor(), a.Limit+1)
			return rest.Cut(items, err, a.Limit, func(c wire.UserClaim) rest.Position { return rest.Position{At: c.ClaimedAt.Time, ID: c.PacketID} },
				func(c wire.UserClaim) wire.UserClaim { return c })
		}}
}

// userClaims merges claims of MySQL with those that only Redis has. Redis is read first: what is
// recorded or retired during the read is in MySQL. The position of a claim is the same in both.
func (s *Server) claimsOfUser(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]wire.UserClaim, error) {
	fresh, err := s.unrecorded(ctx, app, user, after, limit)
	if err != nil {
		return nil, err
	}
	claims, err := s.cfg.Store.UserClaims(ctx, app, user, after, limit)
	if err != nil {
		return nil, err
	}
	for _, c := range fresh {
		if !slices.ContainsFunc(claims, func(d packet.ReceivedClaim) bool { return d.PacketID == c.PacketID }) {
			claims = append(claims, c)
		}
	}
	placeOf := func(c packet.ReceivedClaim) packet.Cursor { return packet.Cursor{At: c.ClaimedAt, ID: c.PacketID} }
	slices.SortFunc(claims, func(a, b packet.ReceivedClaim) int { return placeOf(a).Compare(placeOf(b)) })
	claims = claims[:min(limit, len(claims))]
	var ongoing []string
	for _, c := range claims {
		if !c.Final {
			ongoing = append(ongoing, c.PacketID)
		}
	}
	pools, err := s.cfg.Pool.Progress(ctx, ongoing)
	if err != nil {
		return nil, err
	}
	items := make([]wire.UserClaim, len(claims))
	for i, c := range claims {
		items[i] = wire.UserClaim{Claim: renderClaim(c.Claim, progressOf(c.ClaimWithPayout)), SenderID: c.SenderID, Greeting: c.Greeting}
		best, _ := pools[c.PacketID].BestLuck()
		items[i].BestLuck = c.BestLuck || isBest(best, c.Claim, progressOf(c.ClaimWithPayout))
	}
	return items, nil
}

// unrecorded returns the claims of a user that MySQL does not have, among the places of a page.
func (s *Server) unrecorded(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.ReceivedClaim, error) {
	places, err := s.cfg.Pool.ClaimPlaces(ctx, app, user, after, limit)
	if err != nil {
		return nil, err
	}
	packets, err := s.cfg.Store.ClaimedPackets(ctx, user, idsOf(places))
	if err != nil {
		return nil, err
	}
	var left []string
	for _, at := range places {
		if !packets[at.ID].Recorded {
			left = append(left, at.ID)
		}
	}
	claims, err := s.cfg.Pool.ClaimsOf(ctx, user, left)
	if err != nil {
		return nil, err
	}
	var lost []string // packets that a restored MySQL does not have
	for id := range claims {
		if _, known := packets[id]; !known {
			lost = append(lost, id)
		}
	}
	views, err := s.cfg.Pool.Views(ctx, lost)
	if err != nil {
		return nil, err
	}
	fresh := make([]packet.ReceivedClaim, 0, len(claims))
	for id, c := range claims {
		pending := pendingPayout(claimRefOf(c))
		got := packet.ReceivedClaim{SenderID: packets[id].SenderID, Greeting: packets[id].Greeting,
			ClaimWithPayout: packet.ClaimWithPayout{Claim: c, PayoutID: pending.ID, PayoutStatus: string(pending.Status)}}
		if view, ok := views[id]; ok {
			got.SenderID, got.Greeting = view.Packet.SenderID, view.Packet.Greeting
		}
		fresh = append(fresh, got)
	}
	return fresh, nil
}

func idsOf(places []packet.Cursor) []string {
	ids := make([]string, len(places))
	for i, at := range places {
		ids[i] = at.ID
	}
	return ids
}

// Limits and defaults of summaries.
const (
	// sumStep is how many claims are read from Redis at a time.
	sumStep = 1_000
)

type summaryIn struct {
	asked
	User  string             `path:"user_id" of:"user"`
	Query wire.SummaryPeriod `in:"query"`
}

func (s *Server) getSummary(ctx context.Context, in *summaryIn) (*wire.Summary, error) {
	name := cmp.Or(in.Query.TZ, rest.DefaultZone)
	loc, err := rest.Zone(name)
	if err != nil {
		return nil, err
	}
	year := cmp.Or(in.Query.Year, s.cfg.Now().In(loc).Year())
	sums, err := s.sums(ctx, in.Caller.App.ID, in.User, yearOf(year, loc))
	return &wire.Summary{
		UserID: in.User, Year: year, TZ: name, Sent: wire.SentSummary{Count: sums.SentCount, Amount: sums.SentAmount},
		Received: wire.ReceivedSummary{Count: sums.ReceivedCount, Amount: sums.ReceivedAmount, BestLuck: sums.BestLuckCount},
	}, err
}

func yearOf(year int, loc *time.Location) packet.Span {
	end := time.Date(year+1, time.January, 1, 0, 0, 0, 0, loc)
	if last := time.UnixMilli(rest.MaxMs); end.After(last) {
		end = last
	}
	return packet.Span{From: time.Date(year, time.January, 1, 0, 0, 0, 0, loc), To: end}
}

// sums adds the sums of Redis and MySQL. What is counted in Redis is excluded in MySQL, so a
// claim that is recorded during the read counts once.
func (s *Server) sums(ctx context.Context, app, user string, in packet.Span) (packet.UserSums, error) {
	var held packet.UserSums
	var ids []string
	var best []packet.Claim // the best-luck claim of each packet by Redis, which does not know share conflicts
	for after := (packet.Cursor{At: in.To}); ; {
		places, err := s.cfg.Pool.ClaimPlaces(ctx, app, user, after, sumStep)
		if err != nil {
			return held, err
		}
		claims, err := s.cfg.Pool.ClaimsOf(ctx, user, idsOf(places))
		if err != nil {
			return held, err
		}
		pools, err := s.cfg.Pool.Progress(ctx, slices.Collect(maps.Keys(claims)))
		if err != nil {
			return held, err
		}
		for _, after = range places {
			c, ok := claims[after.ID]
			pool, live := pools[after.ID]
			if !ok || !live || pool.Retired || c.ClaimedAt.Before(in.From) {
				continue
			}
			ids = append(ids, c.PacketID)
			held.ReceivedCount++
			held.ReceivedAmount = held.ReceivedAmount.Plus(c.Amount)
			if share, _ := pool.BestLuck(); isBest(share, c, pendingPayout(claimRefOf(c))) {
				best = append(best, c)
			}
		}
		if len(places) < sumStep || after.At.Before(in.From) {
			break
		}
	}
	payoutOf := s.payoutProgress(ctx, best, rest.ReadTimeout)
	for _, c := range best {
		if isBest(&c.ShareIndex, c, payoutOf(c)) {
			held.BestLuckCount++
		}
	}
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	sums, err := s.cfg.Store.UserSums(ctx, app, user, in, ids)
	sums.ReceivedCount += held.ReceivedCount
	sums.ReceivedAmount = sums.ReceivedAmount.Plus(held.ReceivedAmount)
	sums.BestLuckCount += held.BestLuckCount
	return sums, err
}
