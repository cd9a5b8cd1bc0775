package pool

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/tinylib/msgp/msgp"

	"hongbao/crash"
	"hongbao/packet"
)

// batch is the grabs of one lane that go to Redis in one call of grab.lua. A user
// who grabs one packet twice in a batch is asked for once.
type batch struct {
	lane  *lane
	grabs []grab

	// What follows belongs to the flusher until done is closed, then to everybody.
	done    chan struct{}
	err     error
	places  []place // of each grab
	packets []*asked
}

// place is where the answer to a grab is.
type place struct {
	packet *asked // nil: its caller had left, nothing was asked
	user   int    // number of the user among those of the packet
	again  bool   // another grab of the batch brought him
}

// asked is the question about one packet, and its answer.
type asked struct {
	id       string
	users    int
	ids      []byte // user ids, MessagePack
	profiles []byte // place -> profile, MessagePack, without its head
	told     int    // profiles
	known    map[string]int

	outcome, detail, at string
	shares              []string
	// ranks is the number of each user among the shares; below 0 he is among
	// the others. nil: everybody has the rank of his place.
	ranks  []int
	others []other
}

// other is a user for whom something else came out than for the rest.
type other struct{ outcome, detail string }

// markLen is the length of the mark of a call: 40 random bits to tell apart the
// few calls that ask for one user and one packet.
const markLen = 8

// question puts the arguments of grab.lua together. It is nil when nobody waits.
func (b *batch) question() (keys []string, args []any) {
	b.places = make([]place, len(b.grabs))
	for i, g := range b.grabs {
		if g.ctx.Err() != nil {
			continue // nothing is taken for who has left; under overload it would keep the others waiting
		}
		a := b.about(g.packetID)
		n, again := a.known[g.userID]
		if !again {
			n = a.users
			a.known[g.userID] = n
			a.users++
			a.ids = msgp.AppendString(a.ids, g.userID)
			if g.encoded != "" {
				a.told++
				a.profiles = msgp.AppendString(msgp.AppendInt(a.profiles, a.users), g.encoded)
			}
		}
		b.places[i] = place{packet: a, user: n, again: again}
	}
	if len(b.packets) == 0 {
		return nil, nil
	}
	keys = append(make([]string, 0, 1+5*len(b.packets)), b.lane.keys.handoff)
	args = append(make([]any, 0, 1+2*len(b.packets)), rand.Text()[:markLen])
	for _, a := range b.packets {
		k := b.lane.keys.packets.of(a.id)
		keys = append(keys, k.packet, k.shares, k.winners, k.eligible, k.order)
		args = append(args, append(msgp.AppendArrayHeader(nil, uint32(a.users)), a.ids...), append(msgp.AppendMapHeader(nil, uint32(a.told)), a.profiles...))
	}
	return keys, args
}

// about returns the question about a packet.
func (b *batch) about(id string) *asked {
	for _, a := range b.packets { // most batches are about one
		if a.id == id {
			return a
		}
	}
	a := &asked{id: id, known: make(map[string]int, len(b.grabs))}
	b.packets = append(b.packets, a)
	return a
}

// read takes the reply of grab.lua apart.
func (b *batch) read(reply []any) error {
	if len(reply) != len(b.packets) {
		return fmt.Errorf("%w: %d replies for %d packets", ErrMalformed, len(reply), len(b.packets))
	}
	for i, a := range b.packets {
		part, err := list(reply, i)
		if err != nil {
			return err
		}
		if err := a.read(part); err != nil {
			return err
		}
	}
	return nil
}

func (a *asked) read(part []any) error {
	var fields [4]string
	for i := range fields {
		s, err := text(part, i)
		if err != nil {
			return err
		}
		fields[i] = s
	}
	a.outcome, a.detail, a.at = fields[0], fields[1], fields[3]
	if fields[2] != "" {
		a.shares = strings.Split(fields[2], " ")
	}
	others, err := list(part, 4)
	if err != nil || len(others) == 0 {
		return err
	}
	a.ranks = make([]int, a.users)
	for i := 0; i < len(others); i += 3 {
		n, err := number(others, i)
		if err != nil {
			return err
		}
		var o other
		if o.outcome, err = text(others, i+1); err != nil {
			return err
		}
		if o.detail, err = text(others, i+2); err != nil {
			return err
		}
		if n < 1 || int(n) > a.users {
			return fmt.Errorf("%w: place %d of %d users", ErrMalformed, n, a.users)
		}
		a.others = append(a.others, o)
		a.ranks[n-1] = -len(a.others)
	}
	rank := 0
	for i, r := range a.ranks {
		if r == 0 {
			a.ranks[i] = rank
			rank++
		}
	}
	return nil
}

// answer returns what caller i of the batch gets, once done is closed.
func (b *batch) answer(i int) (packet.Grabbed, error) {
	if b.err != nil {
		return packet.Grabbed{}, b.err
	}
	g, at := &b.grabs[i], b.places[i]
	if at.packet == nil { // nobody is there to read it
		return packet.Grabbed{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(g.ctx))
	}
	a, rank := at.packet, at.user
	if a.ranks != nil {
		rank = a.ranks[at.user]
	}
	var got packet.Grabbed
	var err error
	switch {
	case rank >= 0 && rank < len(a.shares):
		got.Result = packet.GrabWon
		if got.Claim, err = packet.NewClaim(a.id, g.userID, a.shares[rank], a.at, ""); err == nil {
			got.Claim.Profile = g.profile
		}
	case rank >= 0:
		got, err = decodeGrabbed(a.id, g.userID, a.outcome, a.detail)
	default:
		o := a.others[-rank-1]
		got, err = decodeGrabbed(a.id, g.userID, o.outcome, o.detail)
	}
	if err != nil {
		return packet.Grabbed{}, err
	}
	if at.again && got.Result == packet.GrabWon {
		got.Result = packet.GrabReplayed // won by the same user's other request, with its profile
		got.Claim.Profile = b.brought(at).profile
	}
	return got, nil
}

// brought returns the grab that brought the user of a place.
func (b *batch) brought(at place) *grab {
	for i, p := range b.places {
		if p.packet == at.packet && p.user == at.user {
			return &b.grabs[i]
		}
	}
	return nil
}

// decodeGrabbed reads an outcome of grab.lua with its detail.
func decodeGrabbed(packetID, userID, outcome, detail string) (packet.Grabbed, error) {
	result, ok := grabResults[outcome]
	if !ok {
		return packet.Grabbed{}, fmt.Errorf("%w: grab outcome %q", ErrMalformed, outcome)
	}
	g := packet.Grabbed{Result: result}
	switch result {
	case packet.GrabUnavailable:
		return packet.Grabbed{}, ErrInconsistent
	case packet.GrabWon, packet.GrabReplayed:
		claim, err := packet.DecodeClaim(packetID, userID, detail)
		if err != nil {
			return packet.Grabbed{}, err
		}
		g.Claim = claim
	case packet.GrabNotOpenYet:
		if detail == "" {
			break
		}
		ms, err := strconv.ParseInt(detail, 10, 64)
		if err != nil {
			return packet.Grabbed{}, fmt.Errorf("%w: opens_at: %w", ErrMalformed, err)
		}
		g.OpensAt = fromMs(ms)
	}
	return g, nil
}

// fly sends batches of one server together and answers every caller in them. It has
// its own deadline: the context of one caller must not end the grabs of the others.
func (p *Pool) fly(flight []*batch) {
	defer func() {
		var err error
		if r := recover(); r != nil {
			p.cfg.Logger.Error("panic while grabbing", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("%w: %v", errPanicked, r)
		}
		for _, b := range flight {
			if err != nil {
				b.err = err
			}
			close(b.done)
		}
	}()
	ctx, cancel := context.WithTimeout(p.base, (retries+1)*p.cfg.Timeout)
	defer cancel()
	calls := make([]*grabCall, 0, len(flight))
	for _, b := range flight {
		if keys, args := b.question(); keys != nil {
			calls = append(calls, &grabCall{batch: b, keys: keys, args: args})
		}
	}
	_ = crash.Do(crash.GrabTake, func() error { return p.ask(ctx, calls) }) // the batches keep their errors
	for _, c := range calls {
		reply, err := c.cmd.Slice()
		if err == nil {
			c.batch.err = c.batch.read(reply)
		} else {
			c.batch.err = redisError("grab", err)
		}
	}
}

// grabCall is one call of grab.lua.
type grabCall struct {
	batch *batch
	keys  []string
	args  []any
	cmd   *redis.Cmd
}

// ask makes the calls, several of them in one pipeline. After a restart Redis has
// forgotten the script: then it did nothing, and is told it again.
func (p *Pool) ask(ctx context.Context, calls []*grabCall) error {
	if len(calls) == 1 {
		calls[0].cmd = grabScript.Run(ctx, p.rdb, calls[0].keys, calls[0].args...)
		return calls[0].cmd.Err()
	}
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, c := range calls {
			c.cmd = grabScript.EvalSha(ctx, pipe, c.keys, c.args...)
		}
		return nil
	})
	for _, c := range calls {
		if redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") {
			c.cmd = grabScript.Run(ctx, p.rdb, c.keys, c.args...)
		}
	}
	return err
}
