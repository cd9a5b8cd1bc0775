package pool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
)

// Create stages a packet: state funding, with its guest list and the hand-off that starts
// its workflow. Redis TIME fixes its times: created_at = now, opens_at = opensAt or now,
// expires_at = opens_at + life. It fills in the times and EligibleCount. A packet with a
// CreatedAt keeps it: it was staged before, and its pool was lost.
//
// An existing packet or tombstone is returned unchanged (Existed, SameBody).
// View.BusyUntil is the time until which another request with that id is busy. The first
// request with the same body after that time takes over, unless a first answer is stored,
// and sees the old BusyUntil.
//
// Errors: ErrPast, ErrTooFar, ErrUnavailable, ErrMalformed. After ErrUnavailable the packet
// may be staged; the call may be repeated.
func (p *Pool) Create(ctx context.Context, pk packet.Packet, eligible []string, opensAt *time.Time, life,
	busy time.Duration) (packet.StageResult, error) {
	keys, err := p.keysOf(pk.ID)
	if err != nil {
		return packet.StageResult{}, err
	}
	guests := slices.Compact(slices.Sorted(slices.Values(eligible)))
	pk.EligibleCount = len(guests)
	created := ""
	if !pk.CreatedAt.IsZero() {
		created = fmt.Sprint(pk.CreatedAt.UnixMilli())
	}
	pk.CreatedAt, pk.OpensAt, pk.ExpiresAt = time.Time{}, time.Time{}, time.Time{}
	static, err := json.Marshal(pk)
	if err != nil {
		return packet.StageResult{}, fmt.Errorf("encode packet %s: %w", pk.ID, err)
	}
	opens := ""
	if opensAt != nil {
		opens = fmt.Sprint(opensAt.UnixMilli())
	}
	token := rand.Text()
	args := append(make([]any, 0, 13+len(guests)), pk.ID, static, pk.BodyHash, pk.ShareCount, opens,
		life.Milliseconds(), packet.MaxOpensAhead.Milliseconds(), busy.Milliseconds(), token, pk.App, pk.SenderID, created,
		winsKept(pk))
	for _, user := range guests {
		args = append(args, user)
	}
	reply, err := p.runWrite(ctx, failpoint.CreateStage, createScript, pk.ID, []string{keys.packet, keys.eligible, keys.live, keys.handoff,
		keys.staged, keys.wins}, args...)
	if err != nil {
		return packet.StageResult{}, redisError("stage packet "+pk.ID, err)
	}
	return decodeStaged(pk, token, reply)
}

// winsKept returns packet.WinsKept in ms for a packet whose campaign allows one win a user,
// else 0.
func winsKept(pk packet.Packet) int64 {
	if !pk.OneWin {
		return 0
	}
	return packet.WinsKept.Milliseconds()
}

func decodeStaged(pk packet.Packet, token string, reply []any) (packet.StageResult, error) {
	outcome, err := text(reply, 0)
	if err != nil {
		return packet.StageResult{}, err
	}
	h, err := readHash(reply, 1)
	if err != nil {
		return packet.StageResult{}, fmt.Errorf("stage packet %s: %w", pk.ID, err)
	}
	switch outcome {
	case "past":
		return packet.StageResult{}, fmt.Errorf("stage packet %s: %w", pk.ID, ErrPast)
	case "far":
		return packet.StageResult{}, fmt.Errorf("stage packet %s: %w", pk.ID, ErrTooFar)
	}
	view, err := h.view(pk.ID)
	if err != nil {
		return packet.StageResult{}, err
	}
	if _, ok := h.fields["busy_before"]; ok && h.fields["holder"] == token {
		view.BusyUntil = h.time("busy_before")
	}
	return packet.StageResult{View: view, Existed: outcome == "existed", SameBody: view.Packet.BodyHash == pk.BodyHash}, h.failed(pk.ID)
}

// StoreFirstAnswer stores the first answer of the create request, and returns the answer of
// every repeat: first, or the one stored before.
//
// Errors: ErrGone when there is no packet, ErrUnavailable, ErrMalformed.
func (p *Pool) StoreFirstAnswer(ctx context.Context, id string, first packet.FirstAnswer) (packet.FirstAnswer, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return packet.FirstAnswer{}, err
	}
	encoded, err := json.Marshal(first)
	if err != nil {
		return packet.FirstAnswer{}, fmt.Errorf("encode first answer of packet %s: %w", id, err)
	}
	reply, err := p.runWrite(ctx, failpoint.CreateAnswer, answerScript, id, []string{keys.packet}, encoded)
	if err != nil {
		return packet.FirstAnswer{}, redisError("store the first answer of packet "+id, err)
	}
	stored, err := text(reply, 0)
	if err != nil {
		return packet.FirstAnswer{}, fmt.Errorf("store the first answer of packet %s: %w", id, ErrGone)
	}
	var winner packet.FirstAnswer
	if err := json.Unmarshal([]byte(stored), &winner); err != nil {
		return packet.FirstAnswer{}, fmt.Errorf("first answer of packet %s: %w: %w", id, ErrMalformed, err)
	}
	return winner, nil
}
