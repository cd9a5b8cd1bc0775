package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// progressTimeout bounds the read of a payout's progress during a grab.
const progressTimeout = 300 * time.Millisecond

// grabShare answers a grab with the first outcome that applies, in the order of
// packet.GrabResult. grab.lua decides; grabFromRow decides for packets no longer in Redis. What
// this process remembers answers first, to save Redis the call.
func grabShare(r *request) (rest.Answer, error) {
	// A malformed id is answered like an unknown one, after the body is checked.
	id, idErr := r.packetID()
	asked, err := readGrab(r.Payload)
	if err = cmp.Or(err, idErr); err != nil {
		return rest.Answer{}, err
	}
	if err := r.server.admit(id); err != nil {
		r.server.metrics.grab(packet.GrabUnavailable)
		return rest.Answer{}, err
	}
	fact, err := r.factsOf(id)
	if err != nil {
		return rest.Answer{}, err
	}
	user := asked.user
	if r.server.soldOut.refuses(id, user) {
		if refused := r.bodyRefusal(fact, id, asked); refused != nil { // comes before sold_out
			return r.refuseBody(refused)
		}
		r.server.metrics.soldOutLocally.Inc()
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabSoldOut})
	}
	if known := r.server.rememberedClaim(id, user); known != nil {
		r.server.metrics.grab(packet.GrabReplayed)
		return rest.Answer{Status: http.StatusOK, Raw: r.renderRepeated(known.claim, r.progressOf(known))}, nil
	}
	overLimit, badBody := r.checkBeforePool(fact, id, asked)
	if overLimit != nil {
		return r.answerOverLimit(id, user, overLimit)
	}
	if badBody != nil {
		return r.answerBadBody(id, user, badBody)
	}
	if err := r.checkRisk(id, user, fact); err != nil {
		return r.refusedByRisk(user, err)
	}
	if asked.profile.SealedName, err = packet.SealText(r.server.cfg.SeedKey, id, asked.name); err != nil {
		return rest.Answer{}, err
	}
	got, err := r.grab(id, user, asked.profile)
	r.giveBackUnused(user, got.Result, err)
	if err == nil && (got.Result == packet.GrabNotFound || got.Result == packet.GrabRetired) {
		return r.grabFromRow(id, user)
	}
	if err != nil {
		r.server.metrics.grab(packet.GrabUnavailable)
		return rest.Answer{}, err
	}
	if got.OpensAt.IsZero() {
		got.OpensAt = fact.opensAt
	}
	if got.Result == packet.GrabSoldOut {
		r.server.soldOut.learn(id, fact)
	}
	if got.Result == packet.GrabWon && got.Claim.ShareIndex == fact.shares-1 {
		return r.answerLastShare(got)
	}
	return r.answerGrab(got)
}

// errLaneFenced is the cause of a 503, for the log only.
var errLaneFenced = errors.New("the pool is being checked or rebuilt")

// admit refuses changes of a packet while its lane is fenced.
func (s *Server) admit(id string) error {
	if _, open := s.cfg.Fence(id); !open {
		return rest.Unavailable(errLaneFenced)
	}
	return nil
}

// factsOf returns the facts of a packet of the calling app. The pool does not check the app.
func (r *request) factsOf(id string) (packetFacts, error) {
	// Facts of an earlier epoch may be stale: Redis lost the packet before MySQL had its row,
	// and the packet was then created again.
	epoch, _ := r.server.cfg.Fence(id)
	fact, ok := r.server.facts.get(id)
	if !ok || fact.epoch != epoch {
		l, err := r.server.locate(r.Ctx, id)
		if err != nil {
			return packetFacts{}, err
		}
		p := l.snapshot().Packet
		return r.server.factsOf(p), r.own(p)
	}
	if fact.app != r.Caller.App.ID {
		return packetFacts{}, rest.Refuse(wire.CodePacketNotFound)
	}
	return fact, nil
}

// sharedSoldOut is the shared refusal for sold-out packets. It must not be modified.
var sharedSoldOut = rest.Refuse(wire.CodeSoldOut)

// answerGrab renders the outcome of a grab.
func (r *request) answerGrab(got packet.GrabAnswer) (rest.Answer, error) {
	r.server.metrics.grab(got.Result)
	switch got.Result {
	case packet.GrabWon:
		claim := renderClaim(got.Claim, pendingPayout(claimRefOf(got.Claim)))
		return rest.Answer{Status: http.StatusCreated, Raw: rest.EncodeClaim(&claim)}, nil
	case packet.GrabReplayed:
		r.server.rememberClaim(got.Claim)
		p, _ := r.server.replays.progress(r.Ctx, claimRefOf(got.Claim), progressTimeout)
		return rest.Answer{Status: http.StatusOK, Raw: r.renderRepeated(got.Claim, p)}, nil
	case packet.GrabNotOpenYet:
		return rest.Answer{}, notOpenYet(got.OpensAt, max(rest.ShortPause, got.OpensAt.Sub(r.server.cfg.Now())))
	case packet.GrabNotEligible:
		refused := rest.Refuse(wire.CodeNotEligible)
		if got.WonBefore {
			refused.Detail = "The user has won in another packet of this campaign, in which a user wins once."
		}
		return rest.Answer{}, refused
	case packet.GrabSoldOut:
		return rest.Answer{}, sharedSoldOut
	case packet.GrabExpired:
		return rest.Answer{}, rest.Refuse(wire.CodeExpired)
	case packet.GrabNotFound:
		return rest.Answer{}, rest.Refuse(wire.CodePacketNotFound)
	}
	return rest.Answer{}, rest.Unavailable(errors.New("the pool cannot decide"))
}

// answerLastShare answers the grab that took the last share. It decides best luck, so only this
// answer to a new claim includes it.
func (r *request) answerLastShare(got packet.GrabAnswer) (rest.Answer, error) {
	r.server.metrics.grab(got.Result)
	ctx, cancel := context.WithTimeout(r.Ctx, progressTimeout)
	defer cancel()
	p := pendingPayout(claimRefOf(got.Claim))
	claim := renderClaim(got.Claim, p)
	claim.BestLuck = isBest(r.knownBestLuck(ctx, got.Claim.PacketID), got.Claim, p)
	return rest.Answer{Status: http.StatusCreated, Raw: rest.EncodeClaim(&claim)}, nil
}

// renderRepeated renders an existing claim, with best luck as far as it is known.
func (r *request) renderRepeated(c packet.Claim, p payout.PayoutProgress) []byte {
	out := renderClaim(c, p)
	out.Replayed = true
	out.BestLuck = isBest(r.knownBestLuck(r.Ctx, c.PacketID), c, p)
	return rest.EncodeClaim(&out)
}

// knownBestLuck returns bestLuck, or nil when it cannot be read: the claim is returned in any
// case.
func (r *request) knownBestLuck(ctx context.Context, id string) *int {
	best, err := r.bestLuck(ctx, id)
	if err != nil {
		slog.WarnContext(r.Named(), "best luck is not known", slog.String("packet_id", id), slog.Any("error", err))
	}
	return best
}

func (r *request) bestLuck(ctx context.Context, id string) (*int, error) {
	epoch, open := r.server.cfg.Fence(id)
	if known, ok := r.server.lucky.get(id); ok && open && known.epoch == epoch {
		return known.share, nil
	}
	l, err := r.server.locate(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.server.luck(l), nil
}

// grabFromRow decides in the same order for a packet that is not in Redis. It refuses only when
// the row has every claim: the user's own claim may otherwise be missing.
func (r *request) grabFromRow(id, user string) (rest.Answer, error) {
	l, err := r.server.locate(r.Ctx, id)
	if err != nil {
		return rest.Answer{}, err
	}
	if l.hasPool { // rebuilt or staged since grab.lua ran
		return rest.Answer{}, rest.Unavailable(errors.New("the pool was rebuilt during the request"))
	}
	if err := r.own(l.rec.Packet); err != nil {
		return rest.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(r.Ctx, rest.ReadTimeout)
	defer cancel()
	recorded, err := r.server.cfg.Store.Claim(ctx, id, user)
	got := packet.GrabAnswer{OpensAt: l.rec.OpensAt}
	switch {
	case err == nil:
		got.Result, got.Claim = packet.GrabReplayed, recorded.Claim
	case !errors.Is(err, packet.ErrNotFound):
		return rest.Answer{}, err
	case !l.complete:
		got.Result = packet.GrabUnavailable
	case r.server.cfg.Now().Before(l.rec.OpensAt):
		got.Result = packet.GrabNotOpenYet
	case l.rec.EligibleCount > 0 && !slices.Contains(l.rec.Eligible, user):
		got.Result = packet.GrabNotEligible
	case l.rec.ClaimedCount == l.rec.ShareCount:
		got.Result = packet.GrabSoldOut
		r.server.soldOut.learn(id, r.server.factsOf(l.rec.Packet))
	default:
		got.Result = packet.GrabExpired
	}
	return r.answerGrab(got)
}
