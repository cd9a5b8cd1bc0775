package pool

import (
	"context"
	"hash/maphash"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

const (
	// placesChunk is the number of claims of one read of an index: about a tenth of a
	// millisecond of Redis' time.
	placesChunk = 1_000
	// placesPerSearch is the number of claims whose read costs about one search of an index.
	placesPerSearch = 6
	// maxPlaces bounds the claims that a process keeps of a lane: about 2 MB.
	maxPlaces = 25_000
)

// claimPlaces are the places in the lists of their users of a lane's claims, those of retired packets
// included. Users are hashes, so on a collision a search finds claims of both. The index is read once
// so many searches have read it that reading all of it costs Redis less than further searches, and
// new claims are added from the hand-offs.
type claimPlaces struct {
	places   map[uint64][]claimPlace // by user
	n        int
	last     string // the last indexed claim read
	complete bool   // all are read
	size     int64  // of the index, at the last search
	searches int64  // searches that read the index
}

type claimPlace struct {
	ms int64
	id string
}

func (c claimPlace) cursor() packet.Cursor { return packet.Cursor{At: fromMs(c.ms), ID: c.id} }

// of returns the places of a user's claims.
func (c *claimPlaces) of(owner uint64) (all []packet.Cursor) {
	for _, at := range c.places[owner] {
		all = append(all, at.cursor())
	}
	return all
}

// add adds claims. Before the first read there is nothing to add to.
func (c *claimPlaces) add(claims ...ownedClaim) {
	for _, claim := range claims {
		if c.places == nil {
			return
		}
		c.places[claim.owner] = append(c.places[claim.owner], claim.claimPlace)
		if c.n++; c.n > maxPlaces {
			*c = claimPlaces{}
		}
	}
}

// queue adds the next read of an index to a pipeline, when the searches of it justify that and it fits with
// the claims of the tail; else it returns nil.
func (c *claimPlaces) queue(ctx context.Context, pipe redis.Pipeliner, key string, tail int) *redis.StringSliceCmd {
	if c.size == 0 || c.size+int64(tail) > maxPlaces || c.searches*placesPerSearch < c.size {
		return nil
	}
	from := "-"
	if c.last != "" {
		from = "(" + c.last
	}
	return pipe.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key, ByLex: true, Start: from, Stop: "+", Count: placesChunk})
}

// collect keeps claims that were read. Those of the tail may be indexed behind the next reads.
func (c *claimPlaces) collect(seed maphash.Seed, members []string, tail []ownedClaim) error {
	if c.places == nil {
		c.places = map[uint64][]claimPlace{}
		c.add(tail...)
	}
	ids := map[string]string{} // a short copy of each: a member is longer
	for _, member := range members {
		end := len(member) - len(memberSuffix(0, "")) - packet.IDLen
		at, err := parseMemberSuffix(member[max(end, 0):])
		if err != nil {
			return err
		}
		if ids[at.ID] == "" {
			id := string([]byte(at.ID))
			ids[id] = id
		}
		c.last = member
		if c.add(ownedClaim{maphash.String(seed, member[:end]), claimPlace{at.At.UnixMilli(), ids[at.ID]}}); c.places == nil {
			return nil // too many
		}
	}
	c.complete = c.places != nil && len(members) < placesChunk
	return nil
}
