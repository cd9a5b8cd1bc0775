package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

const (
	// createBusy is how long a concurrent request with the same key has to wait. It exceeds the
	// duration of a create, so two never run at the same time.
	createBusy = 5 * time.Second
	// rowTimeout bounds the check whether MySQL has a packet that Redis does not have. Creates
	// must work without MySQL, so it is short.
	rowTimeout = 300 * time.Millisecond
	// Pauses between polls of a packet that is being funded.
	firstLook = 5 * time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// creation is one create request.
type creation struct {
	*request
	createRequest
	packet  packet.Packet
	charges payout.Provider // charges a new packet
}

func createPacket(r *request) (rest.Answer, error) {
	q, err := readCreate(r.Payload)
	if err != nil {
		return rest.Answer{}, err
	}
	key, err := r.IdempotencyKey()
	if err != nil {
		return rest.Answer{}, err
	}
	hash, err := rest.BodyHash(q)
	if err != nil {
		return rest.Answer{}, err
	}
	app := r.Caller.App
	c := &creation{request: r, createRequest: q, packet: q.packet(app.ID, packet.NewID(app.Salt, key), hash, r.server.cfg.SeedKey)}
	c.charges = r.server.cfg.Providers.Charges()
	if q.Funding.ofMerchant() {
		if c.charges, err = r.server.cfg.Providers.Of(payout.BalanceProvider); err != nil {
			return rest.Answer{}, err
		}
	}
	c.packet.ChargeProvider, c.packet.PayoutProvider = c.charges.Name(), r.server.cfg.Providers.Payouts().Name()
	return c.run()
}

// run answers from Redis. A packet unknown to Redis is looked up in MySQL before it is staged,
// because its pool may be lost.
func (c *creation) run() (rest.Answer, error) {
	if err := c.server.admit(c.packet.ID); err != nil {
		return rest.Answer{}, err
	}
	view, err := c.server.cfg.Pool.View(c.Ctx, c.packet.ID)
	switch {
	case errors.Is(err, packet.ErrNotFound):
		ctx, cancel := context.WithTimeout(c.Ctx, rowTimeout)
		defer cancel()
		rec, err := c.server.cfg.Store.Packet(ctx, c.packet.ID)
		if err == nil {
			return c.fromRow(rec)
		}
		if !errors.Is(err, packet.ErrNotFound) && !errors.Is(err, packet.ErrUnavailable) {
			return rest.Answer{}, err
		}
		if err := c.refundable(time.Now()); err != nil {
			return rest.Answer{}, err
		}
		if err := c.chooseMethod(c.charges.Limits(), time.Now()); err != nil {
			return rest.Answer{}, err
		}
		if err := c.boundAmounts(); err != nil {
			return rest.Answer{}, err
		}
		if err := c.boundUnpaid(); err != nil {
			return rest.Answer{}, err
		}
	case err != nil:
		return rest.Answer{}, err
	case view.Packet.BodyHash != c.packet.BodyHash:
		return rest.Answer{}, rest.Refuse(wire.CodeKeyReused)
	case view.First != nil:
		return c.again(*view.First, ofView(view), view.Retired)
	case view.Retired:
		return c.answerCurrent()
	case view.Now.Before(view.BusyUntil):
		return rest.Answer{}, c.inProgress()
	}
	return c.stage()
}

// refundable refuses a packet that may expire when the provider will soon no longer refund its
// charge. The process clock suffices: the margin is 60 days.
func (c *creation) refundable(now time.Time) error {
	limits := c.charges.Limits()
	most := limits.MaxOpensAhead(time.Duration(c.Life) * time.Second)
	const day = 24 * time.Hour
	switch {
	case c.OpensAt == nil && most < 0:
		return rest.InvalidField("expires_in_seconds", rest.FaultRange,
			fmt.Sprintf("must end %d days before the provider's refund window of %d days",
				payout.RefundMargin/day, limits.RefundWindow/day))
	case c.OpensAt != nil && c.OpensAt.Sub(now) > most:
		return rest.InvalidField("opens_at", rest.FaultRange, fmt.Sprintf("must be at most %d days ahead with this life: the provider refunds a "+
			"charge for %d days, and %d of them are kept for refunds", most/day, limits.RefundWindow/day, payout.RefundMargin/day))
	}
	return nil
}

func (c *creation) inProgress() error {
	r := rest.Refuse(wire.CodeRequestInProgress)
	r.RetryAfter = rest.ShortPause
	return r
}

// stage stages the packet, or takes over from a request that did not end, and waits for the
// charge.
func (c *creation) stage() (rest.Answer, error) {
	life := time.Duration(c.Life) * time.Second
	staged, err := c.server.cfg.Pool.Create(c.Ctx, c.packet, c.Eligible, c.OpensAt, life, createBusy)
	switch {
	case errors.Is(err, packet.ErrExpiresInPast):
		return rest.Answer{}, rest.InvalidField("opens_at", rest.FaultRange, "the packet would have expired already")
	case errors.Is(err, packet.ErrOpensTooFar):
		return rest.Answer{}, rest.InvalidField("opens_at", rest.FaultRange, "must be at most 366 days ahead")
	case err != nil:
		return rest.Answer{}, err
	case staged.Existed && !staged.SameBody:
		return rest.Answer{}, rest.Refuse(wire.CodeKeyReused)
	case staged.View.First != nil:
		return c.again(*staged.View.First, ofView(staged.View), staged.View.Retired)
	case staged.View.Retired:
		return c.answerCurrent()
	case staged.Existed && staged.View.Now.Before(staged.View.BusyUntil):
		return rest.Answer{}, c.inProgress()
	}
	fact := c.server.factsOf(c.packet)
	fact.opensAt = staged.View.Packet.OpensAt
	c.server.rememberFacts(c.packet.ID, fact)
	view, err := c.await(staged.View)
	if err != nil {
		return rest.Answer{}, err
	}
	return c.first(view)
}

// await polls the packet until the charge is final, the sender has to pay, or the time is over.
func (c *creation) await(view packet.PoolView) (packet.PoolView, error) {
	deadline := time.Now().Add(c.server.cfg.FundingWait)
	for pause := firstLook; view.Status() == packet.StatusFunding && len(view.Action) == 0 && !view.Retired; pause = min(2*pause, lastLook) {
		left := time.Until(deadline)
		if left <= 0 {
			return view, nil
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-c.Ctx.Done():
			timer.Stop()
			return view, rest.Unavailable(c.Ctx.Err())
		case <-timer.C:
		}
		next, err := c.server.cfg.Pool.View(c.Ctx, c.packet.ID)
		if err != nil {
			return view, rest.Unavailable(err)
		}
		next.Packet = view.Packet // a tombstone does not have it
		view = next
	}
	return view, nil
}

// first determines, stores and returns the first answer; if a concurrent request stored one
// first, that answer is returned.
func (c *creation) first(view packet.PoolView) (rest.Answer, error) {
	mine := packet.FirstAnswer{HTTPStatus: http.StatusCreated, RequestID: c.ID}
	switch {
	case view.Status() == packet.StatusRejected:
		mine.HTTPStatus = http.StatusPaymentRequired
	case view.Status() == packet.StatusFunding, view.Reason == packet.CloseUnopened:
		mine.HTTPStatus = http.StatusAccepted
	}
	stored, err := c.server.cfg.Pool.StoreFirstAnswer(c.Ctx, c.packet.ID, mine)
	if err != nil {
		return rest.Answer{}, rest.Unavailable(err)
	}
	if stored != mine {
		return replayedAnswer(c.firstAnswer(stored, ofView(view)))
	}
	return c.firstAnswer(stored, ofView(view))
}

// replayedAnswer marks an answer, or a stored refusal, as a repeat.
func replayedAnswer(a rest.Answer, err error) (rest.Answer, error) {
	a.Replayed = true
	if r, ok := errors.AsType[*rest.Refusal](err); ok && r.PacketID != "" { // of declined
		r.Replayed = true
	}
	return a, err
}

// again returns the first answer again. For a retired packet the rest comes from MySQL.
func (c *creation) again(first packet.FirstAnswer, snap snapshot, retired bool) (rest.Answer, error) {
	if retired {
		rec, err := c.row()
		if err != nil {
			return rest.Answer{}, err
		}
		snap = ofRecord(rec, c.server.cfg.Now())
	}
	return replayedAnswer(c.firstAnswer(first, snap))
}

// firstAnswer renders a first answer from immutable members.
func (c *creation) firstAnswer(first packet.FirstAnswer, snap snapshot) (rest.Answer, error) {
	status := packet.StatusOpen
	switch {
	case first.HTTPStatus == http.StatusPaymentRequired:
		return c.declined(first, snap)
	case first.HTTPStatus == http.StatusAccepted:
		status = packet.StatusFunding
	case snap.OpensAt.After(snap.CreatedAt):
		status = packet.StatusScheduled
	}
	body := c.server.staticPacket(snap.Packet, status)
	var err error
	body.Funding, err = c.server.funding(snap)
	return rest.Answer{Status: first.HTTPStatus, Body: body}, err
}

func (c *creation) declined(first packet.FirstAnswer, snap snapshot) (rest.Answer, error) {
	if snap.failure == nil { // the packet was read before it was rejected, or as a tombstone
		fresh, err := c.server.find(c.Ctx, c.packet.ID)
		if err != nil {
			return rest.Answer{}, err
		}
		snap.failure = fresh.failure
	}
	code := wire.CodeFundingDeclined
	if snap.failure != nil && snap.failure.Code == payout.FailureInsufficientBalance {
		code = wire.CodeInsufficientBalance
	}
	return rest.Answer{}, &rest.Refusal{Code: code, PacketID: c.packet.ID, Failure: snap.failure, RequestID: first.RequestID}
}

// fromRow answers for a packet that only MySQL has. An unfunded one is staged again, so that
// its funding continues.
func (c *creation) fromRow(rec packet.Record) (rest.Answer, error) {
	switch {
	case rec.BodyHash != c.packet.BodyHash:
		return rest.Answer{}, rest.Refuse(wire.CodeKeyReused)
	case rec.First != nil:
		return c.again(*rec.First, ofRecord(rec, c.server.cfg.Now()), false)
	case rec.Stored != packet.StatusFunding:
		return c.renderCurrent(rec)
	}
	opensAt := rec.OpensAt
	c.packet.CreatedAt = rec.CreatedAt // a repeat returns the same time
	c.packet.ChargeProvider, c.packet.PayoutProvider = rec.ChargeProvider, rec.PayoutProvider
	c.packet.MinShare, c.packet.MaxShare = rec.MinShare, rec.MaxShare
	c.packet.ChargeMethod, c.packet.PayWithin, c.packet.SealedPayer = rec.ChargeMethod, rec.PayWithin, rec.SealedPayer
	c.OpensAt, c.Life = &opensAt, int64(rec.ExpiresAt.Sub(rec.OpensAt).Seconds())
	a, err := c.stage()
	if r, ok := errors.AsType[*rest.Refusal](err); ok && r.Code == wire.CodeInvalidRequest {
		return c.renderCurrent(rec) // expired before it was funded
	}
	return a, err
}

func (c *creation) answerCurrent() (rest.Answer, error) {
	rec, err := c.row()
	if err != nil {
		return rest.Answer{}, err
	}
	return c.renderCurrent(rec)
}

// renderCurrent answers with the current packet if no first answer is stored.
func (c *creation) renderCurrent(rec packet.Record) (rest.Answer, error) {
	snap := ofRecord(rec, c.server.cfg.Now())
	switch rec.Stored {
	case packet.StatusRejected:
		return c.declined(packet.FirstAnswer{RequestID: c.ID}, snap)
	case packet.StatusFunding:
		body := c.server.staticPacket(snap.Packet, packet.StatusFunding)
		var err error
		body.Funding, err = c.server.funding(snap)
		return rest.Answer{Status: http.StatusAccepted, Body: body}, err
	}
	body, err := c.server.render(snap)
	return rest.Answer{Status: http.StatusCreated, Body: body}, err
}

// row reads the packet's row. A missing row is an error here, like an unavailable MySQL.
func (c *creation) row() (packet.Record, error) {
	ctx, cancel := context.WithTimeout(c.Ctx, rest.ReadTimeout)
	defer cancel()
	rec, err := c.server.cfg.Store.Packet(ctx, c.packet.ID)
	if errors.Is(err, packet.ErrNotFound) {
		return rec, rest.Unavailable(err)
	}
	return rec, err
}
