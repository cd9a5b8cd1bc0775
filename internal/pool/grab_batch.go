package pool

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

// question is grabs of one packet that are decided together, and the answer. A user
// who grabs twice is asked for once.
type grabBatch struct {
	id    string
	grabs []grab

	// What follows belongs to the flusher until done is closed, then to everybody.
	done   chan struct{}
	err    error
	full   error      // for who could win, when Redis has no memory for it
	users  int        // that were asked for
	userOf []grabUser // of each grab

	outcome, detail string
	at              time.Time // of the claims that were made now
	shares          []string
	// ranks is the number of each user among those who got shares; below 0 he is
	// among the others. nil: everybody has the number in which he was asked for.
	ranks  []int
	others []otherResult
}

// place is where the answer to a grab is.
type grabUser struct {
	index    int  // number of the user, -1: the caller had left, nothing was asked
	repeated bool // an earlier grab has brought him
}

// other is a user for whom something else came out than for the rest.
type otherResult struct{ outcome, detail string }

func newGrabBatch(id string, room int) *grabBatch {
	return &grabBatch{id: id, grabs: make([]grab, 0, room), done: make(chan struct{})}
}

// ask returns the users and their profiles as grab.lua reads them; no users when
// nobody waits.
func (q *grabBatch) encode() (users, profiles []byte) {
	const typical = 24 // bytes of a user id
	known := make(map[string]int, len(q.grabs))
	q.userOf = make([]grabUser, len(q.grabs))
	ids := make([]byte, 0, typical*len(q.grabs))
	var told []byte
	toldBy := uint32(0)
	for i := range q.grabs {
		g := &q.grabs[i]
		if g.ctx.Err() != nil {
			q.userOf[i].index = -1 // nothing is taken for who has left; under overload it would keep the others waiting
			continue
		}
		n, again := known[g.user]
		q.userOf[i] = grabUser{n, again}
		if again {
			continue
		}
		q.userOf[i].index = q.users
		known[g.user] = q.users
		q.users++
		ids = msgp.AppendString(ids, g.user)
		if g.encoded != "" {
			toldBy++
			told = msgp.AppendString(msgp.AppendInt(told, q.users), g.encoded)
		}
	}
	if q.users == 0 {
		return nil, nil
	}
	users = append(msgp.AppendArrayHeader(make([]byte, 0, len(ids)+msgp.ArrayHeaderSize), uint32(q.users)), ids...)
	if toldBy > 0 {
		profiles = append(msgp.AppendMapHeader(nil, toldBy), told...)
	}
	return users, profiles
}

// replyFields is how many elements grab.lua replies for a packet.
const replyFields = 5

// read takes the packet's part of the reply.
func (q *grabBatch) decode(reply []any) error {
	var fields [replyFields]string
	for i := range fields {
		s, err := text(reply, i)
		if err != nil {
			return err
		}
		fields[i] = s
	}
	q.outcome, q.detail = fields[0], fields[1]
	if fields[2] != "" {
		q.shares = strings.Split(fields[2], " ")
		ms, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return fmt.Errorf("%w: claimed at: %w", ErrMalformed, err)
		}
		q.at = fromMs(ms)
	}
	if fields[4] == "" {
		return nil
	}
	if err := q.decodeOthers([]byte(fields[4])); err != nil {
		return fmt.Errorf("%w: others: %w", ErrMalformed, err)
	}
	return nil
}

// decodeOthers ranks the users: the others below 0, the rest in their order.
func (q *grabBatch) decodeOthers(b []byte) error {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return err
	}
	q.ranks = make([]int, q.users)
	for range n / 3 {
		var place int
		var o otherResult
		if place, b, err = msgp.ReadIntBytes(b); err != nil {
			return err
		}
		if o.outcome, b, err = msgp.ReadStringBytes(b); err != nil {
			return err
		}
		if o.detail, b, err = msgp.ReadStringBytes(b); err != nil {
			return err
		}
		if place < 1 || place > q.users {
			return fmt.Errorf("place %d of %d users", place, q.users)
		}
		q.others = append(q.others, o)
		q.ranks[place-1] = -len(q.others)
	}
	rank := 0
	for i, r := range q.ranks {
		if r == 0 {
			q.ranks[i] = rank
			rank++
		}
	}
	return nil
}

// answer returns what caller i gets, once done is closed.
func (q *grabBatch) result(i int) (packet.GrabAnswer, error) {
	if q.err != nil {
		return packet.GrabAnswer{}, q.err
	}
	g, at := &q.grabs[i], q.userOf[i]
	if at.index < 0 { // nobody is there to read it
		return packet.GrabAnswer{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(g.ctx))
	}
	rank := at.index
	if q.ranks != nil {
		rank = q.ranks[at.index]
	}
	got, err := q.resultOf(g.user, rank)
	if err != nil || got.Result != packet.GrabWon {
		return got, err
	}
	if at.repeated {
		got.Result = packet.GrabReplayed // won by the same user's other request, with its profile
		g = q.firstGrab(at.index)
	}
	got.Claim.Profile = g.profile
	return got, nil
}

// decided returns what came out for a user; the profile of who won now is left out.
func (q *grabBatch) resultOf(user string, rank int) (packet.GrabAnswer, error) {
	switch {
	case rank < 0:
		o := q.others[-rank-1]
		return decodeGrabbed(q.id, user, o.outcome, o.detail)
	case q.full != nil && q.outcome == packet.GrabUnavailable.String():
		return packet.GrabAnswer{}, q.full
	case rank >= len(q.shares):
		return decodeGrabbed(q.id, user, q.outcome, q.detail)
	}
	index, amount, err := packet.DecodeShare(q.shares[rank])
	if err != nil {
		return packet.GrabAnswer{}, err
	}
	return packet.GrabAnswer{Result: packet.GrabWon, Claim: packet.Claim{PacketID: q.id, UserID: user, ShareIndex: index, Amount: amount,
		ClaimedAt: q.at}}, nil
}

// brought returns the grab that brought a user.
func (q *grabBatch) firstGrab(user int) *grab {
	for i, at := range q.userOf {
		if at.index == user && !at.repeated {
			return &q.grabs[i]
		}
	}
	return nil
}

// decodeGrabbed reads an outcome of grab.lua with its detail.
func decodeGrabbed(packetID, userID, outcome, detail string) (packet.GrabAnswer, error) {
	result, ok := grabResults[outcome]
	if !ok {
		return packet.GrabAnswer{}, fmt.Errorf("%w: grab outcome %q", ErrMalformed, outcome)
	}
	g := packet.GrabAnswer{Result: result}
	switch result {
	case packet.GrabUnavailable:
		return packet.GrabAnswer{}, ErrInconsistent
	case packet.GrabWon, packet.GrabReplayed:
		claim, err := packet.DecodeClaim(packetID, userID, detail)
		if err != nil {
			return packet.GrabAnswer{}, err
		}
		g.Claim = claim
	case packet.GrabNotEligible:
		g.WonBefore = detail == "won"
	case packet.GrabNotOpenYet:
		if detail == "" {
			break
		}
		ms, err := strconv.ParseInt(detail, 10, 64)
		if err != nil {
			return packet.GrabAnswer{}, fmt.Errorf("%w: opens_at: %w", ErrMalformed, err)
		}
		g.OpensAt = fromMs(ms)
	}
	return g, nil
}
