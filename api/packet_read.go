package api

import (
	"context"
	"errors"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// location is the authoritative source of a packet at one moment.
type location struct {
	view     packet.PoolView
	hasPool  bool // the pool exists and is not retired; else rec is authoritative
	rec      packet.Record
	complete bool      // without a pool: rec has every claim
	now      time.Time // by the clock of this process
	epoch    int64     // of the pool, read first
}

// snapshot merges pool and row.
func (l location) snapshot() snapshot {
	switch {
	case l.hasPool && l.rec.ID != "":
		return merge(l.view, l.rec)
	case l.hasPool:
		return ofView(l.view)
	}
	return ofRecord(l.rec, l.now)
}

// locate reads Redis, and MySQL when Redis does not have the pool. Errors: CodePacketNotFound,
// CodeUnavailable.
func (s *Server) locate(ctx context.Context, id string) (location, error) {
	epoch, _ := s.cfg.Fence(id)
	view, err := s.cfg.Pool.View(ctx, id)
	if err == nil && !view.Retired {
		return location{view: view, hasPool: true, epoch: epoch}, nil
	}
	away := errors.Is(err, packet.ErrUnavailable)
	unknown := errors.Is(err, packet.ErrNotFound)
	if err != nil && !away && !unknown {
		return location{}, err
	}
	rec, rowErr := s.record(ctx, id)
	switch {
	case errors.Is(rowErr, packet.ErrNotFound) && unknown:
		return location{}, rest.Refuse(wire.CodePacketNotFound)
	case errors.Is(rowErr, packet.ErrNotFound):
		return location{}, rest.Unavailable(errors.Join(err, rowErr)) // Redis has it or may have it
	case rowErr != nil:
		return location{}, rowErr
	}
	complete := err == nil || hasEveryClaim(rec)
	if away && !complete {
		return location{}, rest.Unavailable(err) // Redis may have claims that the row lacks
	}
	return location{rec: rec, complete: complete, now: s.cfg.Now(), epoch: epoch}, nil
}

// hasEveryClaim reports whether the row of a packet without a pool is authoritative: no share can
// be claimed and every claim is recorded.
func hasEveryClaim(rec packet.Record) bool {
	return rec.Stored == packet.StatusClosed || rec.Stored == packet.StatusRejected || !rec.BooksClosedAt.IsZero() ||
		rec.ClaimedCount == rec.ShareCount
}

// find reads a packet: from Redis alone while grabs are decided there, with MySQL from its end
// on. Errors as locate.
func (s *Server) find(ctx context.Context, id string) (snapshot, error) {
	l, err := s.locate(ctx, id)
	if err != nil {
		return snapshot{}, err
	}
	if l.hasPool && l.view.State == packet.PoolClosing {
		rec, err := s.row(ctx, id)
		if err != nil && !errors.Is(err, packet.ErrNotFound) && !errors.Is(err, packet.ErrUnavailable) {
			return snapshot{}, err
		}
		l.rec = rec
	}
	return l.snapshot(), nil
}

// record reads a packet's row within rest.ReadTimeout.
func (s *Server) record(ctx context.Context, id string) (packet.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	return s.cfg.Store.Packet(ctx, id)
}

// row is record for callers that count the claims elsewhere.
func (s *Server) row(ctx context.Context, id string) (packet.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	return s.cfg.Store.PacketRow(ctx, id)
}

// merge merges an ended pool with its row: Redis has every claim, MySQL has refund, seed and
// closing.
func merge(view packet.PoolView, rec packet.Record) snapshot {
	snap := ofView(view)
	snap.counts.RefundedAmount = rec.RefundedAmount
	snap.sealed, snap.stored = rec.SealedSeed, rec.Stored
	if rec.Stored == packet.StatusClosed {
		snap.status, snap.closedAt = packet.StatusClosed, rec.ClosedAt
		if rec.ClaimedCount > snap.counts.ClaimedCount {
			snap.counts = rec.Counts
		}
	}
	return snap
}

// owned is find for the calling app: a packet of another app is not found.
func (r *request) owned(id string) (snapshot, error) {
	snap, err := r.server.find(r.Ctx, id)
	if err != nil {
		return snap, err
	}
	return snap, r.own(snap.Packet)
}

// own checks that a packet belongs to the caller and caches its facts. Staff, whose routes
// differ from those of apps, may read packets of all apps.
func (r *request) own(p packet.Packet) error {
	r.server.rememberFacts(p.ID, r.server.factsOf(p))
	if p.App != r.Caller.App.ID && !r.Caller.Key.Role.Staff() {
		return rest.Refuse(wire.CodePacketNotFound)
	}
	return nil
}

func (s *Server) getPacket(_ context.Context, in *packetIn) (*wire.Packet, error) {
	snap, err := in.owned(in.ID)
	if err != nil {
		return nil, err
	}
	body, err := s.render(snap)
	switch {
	case err != nil:
	case snap.status == packet.StatusRejected:
		err = s.addLatePayment(in.Ctx, &body)
	case snap.reason == packet.CloseUnopened && snap.PayWithin > 0:
		err = s.addRefusedCoupon(in.Ctx, &body)
	}
	return &body, err
}

type closePacketIn struct {
	packetIn
	Body wire.NoMembers `in:"body"`
}

func (s *Server) closePacket(_ context.Context, in *closePacketIn) (*wire.Packet, error) {
	if err := s.admit(in.ID); err != nil {
		return nil, err
	}
	snap, err := in.owned(in.ID)
	if err != nil {
		return nil, err
	}
	if snap, err = in.recall(in.ID, snap); err != nil {
		return nil, err
	}
	body, err := s.render(snap)
	return &body, err
}

// recall ends a packet and returns it; an ended packet does not change. A packet that is about to open, because
// its sender has just paid, is recalled once it is open, at most FundingWait later: what is answered has an effect.
func (r *request) recall(id string, snap snapshot) (snapshot, error) {
	deadline := time.Now().Add(r.server.cfg.FundingWait)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		after, err := r.tryRecall(id, snap)
		left := time.Until(deadline)
		switch {
		case !errors.Is(err, packet.ErrMoved):
			return after, err
		case left <= 0:
			return snap, notOpenYet(snap.OpensAt, rest.ShortPause)
		}
		if sleep(r.Ctx, min(pause, left)); r.Ctx.Err() != nil {
			return snap, rest.Unavailable(r.Ctx.Err())
		}
		if snap, err = r.server.find(r.Ctx, id); err != nil {
			return snap, err
		}
	}
}

// tryRecall recalls a packet, or withdraws its charge while the sender has to pay. Errors: packet.ErrMoved when
// the charge is paid and the packet is not open yet, refusals.
func (r *request) tryRecall(id string, snap snapshot) (snapshot, error) {
	_, err := r.server.cfg.Pool.Recall(r.Ctx, id)
	switch {
	case snap.PayWithin > 0 && (errors.Is(err, packet.ErrNotOpenYet) ||
		errors.Is(err, packet.ErrNotFound) && snap.status == packet.StatusFunding):
		return r.withdraw(id, snap)
	case errors.Is(err, packet.ErrNotOpenYet), errors.Is(err, packet.ErrNotFound) && snap.status == packet.StatusFunding:
		return snap, notOpenYet(snap.OpensAt, rest.ShortPause)
	case errors.Is(err, packet.ErrNotFound) && !ended(snap.status):
		return snap, rest.Unavailable(err) // the pool is lost and has to be rebuilt first
	case err != nil && !errors.Is(err, packet.ErrNotFound):
		return snap, err
	}
	return r.server.find(r.Ctx, id)
}

// withdraw closes the unpaid charge of a packet at its provider. Unpaid, the packet is rejected; paid before
// the close, it is refunded in full. A packet that MySQL does not have yet is not open yet. Errors: as tryRecall.
func (r *request) withdraw(id string, snap snapshot) (snapshot, error) {
	ctx, cancel := context.WithTimeout(r.Ctx, rest.ReadTimeout)
	defer cancel()
	err := r.server.cfg.Store.WithdrawCharge(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return snap, notOpenYet(snap.OpensAt, rest.ShortPause)
	}
	if err != nil {
		return snap, err
	}
	return r.server.find(r.Ctx, id)
}

// ended reports whether no share of a packet can be grabbed any more.
func ended(s packet.Status) bool {
	return s == packet.StatusRejected || s == packet.StatusSoldOut || s == packet.StatusClosing || s == packet.StatusClosed
}

func notOpenYet(opensAt time.Time, pause time.Duration) *rest.Refusal {
	return &rest.Refusal{Code: wire.CodeNotOpenYet, OpensAt: opensAt, RetryAfter: pause}
}
