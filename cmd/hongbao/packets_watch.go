package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

func packetsWatch() command {
	return command{
		use:   "watch <packet id>",
		short: "Follow a packet until it is closed",
		long: `Follow a packet until it is closed: a live bar on a terminal, otherwise one line (with
--json the packet) per change. The command retries while the API is unreachable.

Exit code: 0 closed with every share claimed; 3 closed with shares left, which were
refunded to the sender; 1 the charge was declined, or watching failed; 2 wrong
arguments.`,
		args: packetID.arg, complete: ownPackets, as: callerApp, timeout: noTimeout, retry: client.Retry{Tries: watchTries},
		run: func(ctx context.Context, t *call) error { return t.watch(ctx, t.args[0]) },
	}
}

const (
	// watchTries is the number of tries of one read: about an hour at the longest pauses.
	watchTries = 1200
	// Pauses between two reads; the short one while the packet changes.
	watchSoon  = 200 * time.Millisecond
	watchLater = time.Second
)

// packetView displays the changes of a packet.
type packetView interface {
	show(p *wire.Packet) error
	end()
}

func (t *call) newView(p *wire.Packet) packetView {
	switch {
	case t.json:
		return jsonView{t.out, t.answer}
	case onTerminal(t.out):
		return barView{newBarMeter(t.out, string(p.Status), p.ShareCount)}
	}
	return lineView{t.out}
}

func (t *call) watch(ctx context.Context, id string) error {
	p, err := t.app.Packet(ctx, id)
	if err != nil {
		return err
	}
	view := t.newView(p)
	defer func() { view.end() }()
	if err := view.show(p); err != nil {
		return err
	}
	for pause := watchSoon; !p.Ended(); pause = min(pause+watchSoon, watchLater) {
		next, ended, err := readLater(ctx, pause, func() (*wire.Packet, error) { return t.app.Packet(ctx, id) })
		if ended != nil {
			return fmt.Errorf("packet %s is still %s: %w", p.ID, p.Status, ended)
		}
		if err != nil {
			return err
		}
		if next.Status == p.Status && next.ClaimedCount == p.ClaimedCount && next.RefundedAmount == p.RefundedAmount {
			continue
		}
		p, pause = next, 0
		if err := view.show(p); err != nil {
			return err
		}
	}
	view.end()
	view = noView{}
	return t.printOutcome(p)
}

// printOutcome prints how a packet ended and returns the error of its exit code.
func (t *call) printOutcome(p *wire.Packet) error {
	if p.Status == wire.PacketRejected {
		if p.Failure != nil {
			return fmt.Errorf("packet %s was rejected: %s: %s", p.ID, p.Failure.Code, p.Failure.Message)
		}
		return fmt.Errorf("packet %s was rejected", p.ID)
	}
	if !t.json {
		err := printf(t.out, "closed: %d of %d shares claimed, %s; %s refunded\n", p.ClaimedCount, p.ShareCount, formatYuan(p.ClaimedAmount),
			formatYuan(p.RefundedAmount))
		if err != nil {
			return err
		}
	}
	if p.ClaimedCount < p.ShareCount {
		return errSharesLeft
	}
	return nil
}

// lineView prints one line per change.
type lineView struct{ out io.Writer }

func (o lineView) show(p *wire.Packet) error {
	return printf(o.out, "%s  %-9s  %d / %d claimed, %s; %s refunded\n",
		time.Now().Format(time.TimeOnly), p.Status, p.ClaimedCount, p.ShareCount, formatYuan(p.ClaimedAmount), formatYuan(p.RefundedAmount))
}

func (lineView) end() {}

// jsonView prints the packet on one line per change.
type jsonView struct {
	out    io.Writer
	answer func() []byte
}

func (o jsonView) show(*wire.Packet) error {
	var line bytes.Buffer
	if err := json.Compact(&line, o.answer()); err != nil {
		return err
	}
	return printJSON(o.out, line.Bytes())
}

func (jsonView) end() {}

// barView is a live bar of the claimed shares.
type barView struct{ bar *barMeter }

func (o barView) show(p *wire.Packet) error {
	o.bar.tracker.UpdateMessage(fmt.Sprintf("%s, %s claimed", p.Status, formatYuan(p.ClaimedAmount)))
	o.bar.set(p.ClaimedCount)
	switch p.Status {
	case wire.PacketClosed:
		o.bar.tracker.MarkAsDone() // also when not every share was claimed
	case wire.PacketRejected:
		o.bar.tracker.MarkAsErrored()
	}
	return nil
}

func (o barView) end() { o.bar.end() }

// noView displays nothing; it replaces a view that has ended.
type noView struct{}

func (noView) show(*wire.Packet) error { return nil }
func (noView) end()                    {}
