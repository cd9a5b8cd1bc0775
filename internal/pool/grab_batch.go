package pool

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"hongbao/internal/packet"
)

// grabBatch is grabs of one packet that are decided together, and the result. A user who
// grabs twice is sent once.
type grabBatch struct {
	id    string
	grabs []grab

	// The flusher owns the fields below until done is closed; then they are read-only.
	done   chan struct{}
	err    error
	full   error      // for users who could win, when Redis is at its memory limit
	users  int        // sent to Redis
	userOf []grabUser // by grab

	outcome, detail string
	at              time.Time // claim time of the wins
	shares          string    // packed
	// ranks are the users' positions among the winners; below 0: position in others.
	// nil: each user's position is the index.
	ranks  []int
	others []otherResult
}

// grabUser is the user of a grab within the batch.
type grabUser struct {
	index    int  // position of the user; -1: the caller cancelled, nothing was sent
	repeated bool // an earlier grab of the batch has the same user
}

// otherResult is the result of a user who has a result of its own.
type otherResult struct{ outcome, detail string }

func newGrabBatch(id string, room int) *grabBatch {
	return &grabBatch{id: id, grabs: make([]grab, 0, room), done: make(chan struct{})}
}

// encode returns the users and their profiles as grab.lua reads them; no users when no
// caller waits.
func (b *grabBatch) encode() (users, profiles []byte) {
	const typical = 24 // bytes of a user id
	known := make(map[string]int, len(b.grabs))
	b.userOf = make([]grabUser, len(b.grabs))
	ids := make([]byte, 0, typical*len(b.grabs))
	var encodedProfiles []byte
	profileCount := uint32(0)
	for i := range b.grabs {
		g := &b.grabs[i]
		if g.ctx.Err() != nil {
			b.userOf[i].index = -1 // a cancelled grab takes nothing; under overload it would delay the others
			continue
		}
		n, again := known[g.user]
		b.userOf[i] = grabUser{n, again}
		if again {
			continue
		}
		b.userOf[i].index = b.users
		known[g.user] = b.users
		b.users++
		ids = msgp.AppendString(ids, g.user)
		if g.encoded != "" {
			profileCount++
			encodedProfiles = msgp.AppendString(msgp.AppendInt(encodedProfiles, b.users), g.encoded)
		}
	}
	if b.users == 0 {
		return nil, nil
	}
	users = append(msgp.AppendArrayHeader(make([]byte, 0, len(ids)+msgp.ArrayHeaderSize), uint32(b.users)), ids...)
	if profileCount > 0 {
		profiles = append(msgp.AppendMapHeader(nil, profileCount), encodedProfiles...)
	}
	return users, profiles
}

// replyFields is the number of reply elements of grab.lua for a packet.
const replyFields = 5

// decode reads the packet's part of the reply.
func (b *grabBatch) decode(reply []any) error {
	var fields [replyFields]string
	for i := range fields {
		s, err := text(reply, i)
		if err != nil {
			return err
		}
		fields[i] = s
	}
	b.outcome, b.detail = fields[0], fields[1]
	if fields[2] != "" {
		b.shares = fields[2]
		ms, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return fmt.Errorf("%w: claimed at: %w", ErrMalformed, err)
		}
		b.at = fromMs(ms)
	}
	if fields[4] == "" {
		return nil
	}
	if err := b.decodeOthers([]byte(fields[4])); err != nil {
		return fmt.Errorf("%w: others: %w", ErrMalformed, err)
	}
	return nil
}

// decodeOthers reads the users with a result of their own, and ranks the others in order.
func (b *grabBatch) decodeOthers(encoded []byte) error {
	n, encoded, err := msgp.ReadArrayHeaderBytes(encoded)
	if err != nil {
		return err
	}
	b.ranks = make([]int, b.users)
	for range n / 3 {
		var position int
		var o otherResult
		if position, encoded, err = msgp.ReadIntBytes(encoded); err != nil {
			return err
		}
		if o.outcome, encoded, err = msgp.ReadStringBytes(encoded); err != nil {
			return err
		}
		if o.detail, encoded, err = msgp.ReadStringBytes(encoded); err != nil {
			return err
		}
		if position < 1 || position > b.users {
			return fmt.Errorf("position %d of %d users", position, b.users)
		}
		b.others = append(b.others, o)
		b.ranks[position-1] = -len(b.others)
	}
	rank := 0
	for i, r := range b.ranks {
		if r == 0 {
			b.ranks[i] = rank
			rank++
		}
	}
	return nil
}

// result returns the result of grab i, once done is closed.
func (b *grabBatch) result(i int) (packet.GrabAnswer, error) {
	if b.err != nil {
		return packet.GrabAnswer{}, b.err
	}
	g, at := &b.grabs[i], b.userOf[i]
	if at.index < 0 { // the caller cancelled
		return packet.GrabAnswer{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(g.ctx))
	}
	rank := at.index
	if b.ranks != nil {
		rank = b.ranks[at.index]
	}
	got, err := b.resultOf(g.user, rank)
	if err != nil || got.Result != packet.GrabWon {
		return got, err
	}
	if at.repeated {
		got.Result = packet.GrabReplayed // won by the user's first grab, with its profile
		g = b.firstGrab(at.index)
	}
	got.Claim.Profile = g.profile
	return got, nil
}

// resultOf returns the result of a user; without the profile of a new win.
func (b *grabBatch) resultOf(user string, rank int) (packet.GrabAnswer, error) {
	switch {
	case rank < 0:
		o := b.others[-rank-1]
		return decodeGrabbed(b.id, user, o.outcome, o.detail)
	case b.full != nil && b.outcome == packet.GrabUnavailable.String():
		return packet.GrabAnswer{}, b.full
	case rank >= len(b.shares)/packet.ShareLen:
		return decodeGrabbed(b.id, user, b.outcome, b.detail)
	}
	index, amount, err := packet.UnpackShare(b.shares, rank)
	if err != nil {
		return packet.GrabAnswer{}, err
	}
	return packet.GrabAnswer{Result: packet.GrabWon, Claim: packet.Claim{PacketID: b.id, UserID: user, ShareIndex: index, Amount: amount,
		ClaimedAt: b.at}}, nil
}

// firstGrab returns the first grab of a user.
func (b *grabBatch) firstGrab(user int) *grab {
	for i, at := range b.userOf {
		if at.index == user && !at.repeated {
			return &b.grabs[i]
		}
	}
	return nil
}

// decodeGrabbed decodes an outcome of grab.lua with its detail.
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
