package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones independent of the machine

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// received are a user's claims in Redis, with their packets.
type received struct {
	claims  []packet.Claim
	packets map[string]seenPacket
}

// seenPacket is the part of a packet that the list of a user's claims shows.
type seenPacket struct {
	sender, greeting string
	best             *int // best-luck share, once no share can be claimed
	retired          bool
	epoch            int64 // epoch of the pool at the time of the read
}

// live reads claims of a user from Redis. Claims retired during the read are left out: MySQL
// has them and is read afterwards.
func (r *request) live(user string, after packet.Cursor, limit int) (received, error) {
	claims, err := r.server.cfg.Pool.UserClaims(r.ctx, r.caller.app.ID, user, after, limit)
	if err != nil {
		return received{}, err
	}
	packets, err := r.server.seenPackets(r.ctx, claims)
	return received{claims, packets}, err
}

// seenPackets reads the packets of some claims. Ended packets are cached, so that repeated
// reads by many users do not load Redis.
func (s *Server) seenPackets(ctx context.Context, claims []packet.Claim) (map[string]seenPacket, error) {
	seen := make(map[string]seenPacket, len(claims))
	var ask []string
	for _, c := range claims {
		known, ok := s.ended.get(c.PacketID)
		if epoch, open := s.cfg.Fence(c.PacketID); ok && open && known.epoch == epoch {
			seen[c.PacketID] = known
		} else {
			seen[c.PacketID] = seenPacket{epoch: epoch}
			ask = append(ask, c.PacketID)
		}
	}
	views, err := s.cfg.Pool.Views(ctx, ask)
	if err != nil {
		return nil, err
	}
	if len(views) < len(ask) {
		return nil, unavailable(errors.New("the pool of a claim is lost"))
	}
	for id, view := range views {
		best, final := view.BestLuck()
		p := seenPacket{view.Packet.SenderID, view.Packet.Greeting, best, view.Retired, seen[id].epoch}
		if seen[id] = p; final {
			s.ended.put(id, p)
		}
	}
	return seen, nil
}

// best reports whether a claim had the best luck of an ended packet.
func (l received) best(c packet.Claim, p payout.PayoutProgress) bool {
	return isBest(l.packets[c.PacketID].best, c, p)
}

func listUserClaims(r *request) (answer, error) {
	user, err := r.userID()
	if err != nil {
		return answer{}, err
	}
	q := readQuery(r)
	limit, cursor := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	filters := map[string]string{"user_id": user}
	after, _, err := resume(cursor, "claims", filters)
	if err != nil {
		return answer{}, err
	}
	items, err := r.userClaims(user, after, limit+1)
	if err != nil {
		return answer{}, err
	}
	page := wire.List[wire.UserClaim]{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		page.NextCursor = place{placeOf(page.Items[limit-1])}.cursor("claims", filters)
	}
	return answer{status: http.StatusOK, body: page}, nil
}

func placeOf(c wire.UserClaim) packet.Cursor {
	return packet.Cursor{At: c.ClaimedAt.Time, ID: c.PacketID}
}

// userClaims merges claims of Redis and MySQL. A claim is in both from its recording until its
// packet is retired: then MySQL has its payout and Redis its best luck. Its position in the
// list is the same in both.
func (r *request) userClaims(user string, after packet.Cursor, limit int) ([]wire.UserClaim, error) {
	live, err := r.live(user, after, limit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.UserClaims(ctx, r.caller.app.ID, user, after, limit)
	if err != nil {
		return nil, err
	}
	items := make([]wire.UserClaim, 0, len(rows)+len(live.claims))
	recorded := make(map[string]bool, len(rows))
	for _, row := range rows {
		recorded[row.PacketID] = true
		item := wire.UserClaim{Claim: renderClaim(row.Claim, progressOf(row.ClaimWithPayout)), SenderID: row.SenderID, Greeting: row.Greeting}
		item.BestLuck = row.BestLuck || live.best(row.Claim, progressOf(row.ClaimWithPayout))
		items = append(items, item)
	}
	for _, c := range live.claims {
		p := live.packets[c.PacketID]
		if recorded[c.PacketID] || p.retired {
			continue
		}
		pending := pendingPayout(claimRefOf(c))
		item := wire.UserClaim{Claim: renderClaim(c, pending), SenderID: p.sender, Greeting: p.greeting}
		item.BestLuck = live.best(c, pending)
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b wire.UserClaim) int { return placeOf(a).Compare(placeOf(b)) })
	return items[:min(limit, len(items))], nil
}

// Limits and defaults of summaries.
const (
	firstYear   = 2000
	lastYear    = 9999
	defaultZone = "Asia/Shanghai"
	maxZoneName = 64
	// sumStep is how many claims are read from Redis at a time.
	sumStep = 1_000
)

// zone loads a time zone by its IANA name. Other names known to the machine are refused: its
// local zone, and zones with leap seconds.
func zone(name string) (*time.Location, error) {
	first, _, _ := strings.Cut(name, "/")
	if name == "" || len(name) > maxZoneName || slices.Contains([]string{"Local", "localtime", "posixrules", "Factory", "right", "posix"},
		first) {
		return nil, fmt.Errorf("time zone %q", name)
	}
	return time.LoadLocation(name)
}

func checkZone(name string) *fault {
	if _, err := zone(name); err != nil {
		return &fault{faultFormat, "must be the IANA name of a time zone such as Asia/Shanghai"}
	}
	return nil
}

func getSummary(r *request) (answer, error) {
	user, err := r.userID()
	if err != nil {
		return answer{}, err
	}
	q := readQuery(r)
	year, given := q.integer("year", firstYear, lastYear)
	name := q.text("tz", checkZone)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	if name == "" {
		name = defaultZone
	}
	loc, err := zone(name)
	if err != nil {
		return answer{}, err
	}
	if !given {
		year = int64(r.server.cfg.Now().In(loc).Year())
	}
	sums, err := r.sums(user, yearOf(int(year), loc))
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: wire.Summary{
		UserID: user, Year: int(year), TZ: name, Sent: wire.SentSummary{Count: sums.SentCount, Amount: sums.SentAmount},
		Received: wire.ReceivedSummary{Count: sums.ReceivedCount, Amount: sums.ReceivedAmount, BestLuck: sums.BestLuckCount},
	}}, nil
}

func yearOf(year int, loc *time.Location) packet.Span {
	end := time.Date(year+1, time.January, 1, 0, 0, 0, 0, loc)
	if last := time.UnixMilli(maxMs); end.After(last) {
		end = last
	}
	return packet.Span{From: time.Date(year, time.January, 1, 0, 0, 0, 0, loc), To: end}
}

// sums adds the sums of Redis and MySQL. What is counted in Redis is excluded in MySQL, so a
// claim that is recorded during the read counts once.
func (r *request) sums(user string, in packet.Span) (packet.UserSums, error) {
	var held packet.UserSums
	var ids []string
	var best []packet.Claim // the best-luck claim of each packet by Redis, which does not know share conflicts
	for after := (packet.Cursor{At: in.To}); ; {
		live, err := r.live(user, after, sumStep)
		if err != nil {
			return held, err
		}
		for _, c := range live.claims {
			after = packet.Cursor{At: c.ClaimedAt, ID: c.PacketID}
			if c.ClaimedAt.Before(in.From) || live.packets[c.PacketID].retired {
				continue
			}
			ids = append(ids, c.PacketID)
			held.ReceivedCount++
			held.ReceivedAmount = held.ReceivedAmount.Plus(c.Amount)
			if live.best(c, pendingPayout(claimRefOf(c))) {
				best = append(best, c)
			}
		}
		if len(live.claims) < sumStep || after.At.Before(in.From) {
			break
		}
	}
	payoutOf := r.server.payoutProgress(r.ctx, best, readTimeout)
	for _, c := range best {
		if isBest(&c.ShareIndex, c, payoutOf(c)) {
			held.BestLuckCount++
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	sums, err := r.server.cfg.Store.UserSums(ctx, r.caller.app.ID, user, in, ids)
	sums.ReceivedCount += held.ReceivedCount
	sums.ReceivedAmount = sums.ReceivedAmount.Plus(held.ReceivedAmount)
	sums.BestLuckCount += held.BestLuckCount
	return sums, err
}
