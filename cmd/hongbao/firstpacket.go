package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"hongbao/devstack"
)

// The first packet: more guests than shares, so that some come too late.
const (
	firstShares      = 50
	firstGuests      = 120
	firstAmountFen   = 88_888
	secondShares     = 10
	secondGuests     = 3
	secondAmountFen  = 1_000
	secondExpirySecs = 10
)

// firstPacketLimit bounds the whole show. The second packet alone takes ten
// seconds to expire.
const firstPacketLimit = 3 * time.Minute

// Errors of the first packet.
var (
	errFirstPacket = errors.New("the first packet did not live through; the stack runs on")
	errUnexpected  = errors.New("unexpected")
)

// firstPacket lives two packets through on the running stack, through its HTTP
// API and before the eyes of the person who started it: one that a crowd empties
// and that is paid out, one that expires and is refunded.
func firstPacket(ctx context.Context, env devstack.Env, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, firstPacketLimit)
	defer cancel()
	show := &firstShow{
		client: newShowClient(env),
		out:    out,
		run:    time.Now().UTC().Format("20060102150405"),
	}
	defer show.client.http.CloseIdleConnections()
	if err := show.play(ctx); err != nil {
		return fmt.Errorf("%w: %w", errFirstPacket, err)
	}
	return nil
}

// firstShow is one performance.
type firstShow struct {
	client *showClient
	out    io.Writer
	run    string // makes names and idempotency keys of this performance its own
}

func (s *firstShow) play(ctx context.Context) error {
	s.say("\nThe first packet: %d shares, %d guests\n", firstShares, firstGuests)
	first, err := s.create(ctx, createRequest{
		SenderID: "lin-mei", TotalAmount: firstAmountFen, ShareCount: firstShares, Greeting: "恭喜发财", ExpiresInSeconds: 86400,
	})
	if err != nil {
		return err
	}
	if err := s.crowd(ctx, first.ID, firstGuests, firstShares); err != nil {
		return err
	}
	if err := s.payouts(ctx, first.ID, firstShares); err != nil {
		return err
	}
	if _, err := s.closed(ctx, first.ID); err != nil {
		return err
	}
	if err := s.proof(ctx, first.ID); err != nil {
		return err
	}

	s.say("\nA second packet: %d shares, %d guests, open for %d s; the rest goes back\n", secondShares, secondGuests, secondExpirySecs)
	second, err := s.create(ctx, createRequest{
		SenderID: "lin-mei", TotalAmount: secondAmountFen, ShareCount: secondShares, Greeting: "手慢无", ExpiresInSeconds: secondExpirySecs,
	})
	if err != nil {
		return err
	}
	if err := s.crowd(ctx, second.ID, secondGuests, secondGuests); err != nil {
		return err
	}
	if err := s.payouts(ctx, second.ID, secondGuests); err != nil {
		return err
	}
	last, err := s.closed(ctx, second.ID)
	if err != nil {
		return err
	}
	if want := secondAmountFen - last.ClaimedAmount; last.RefundedAmount != want {
		return fmt.Errorf("%w refund: %s instead of %s", errUnexpected, yuan(last.RefundedAmount), yuan(want))
	}
	s.say("  %s claimed, %s refunded to the sender\n", yuan(last.ClaimedAmount), yuan(last.RefundedAmount))
	return s.proof(ctx, second.ID)
}

// create makes a packet and waits until it can be grabbed.
func (s *firstShow) create(ctx context.Context, request createRequest) (packetAnswer, error) {
	packet, err := s.client.create(ctx, "first-packet-"+s.run+"-"+fmt.Sprint(request.ShareCount), request)
	if err != nil {
		return packetAnswer{}, err
	}
	packet, err = s.until(ctx, packet, "open")
	if err != nil {
		return packetAnswer{}, err
	}
	s.say("  %s sends %s in packet %s\n", request.SenderID, yuan(packet.TotalAmount), packet.ID)
	return packet, nil
}

// showPoll is the pause between two looks at something that is under way.
const showPoll = 150 * time.Millisecond

// until asks for a packet until it has a status.
func (s *firstShow) until(ctx context.Context, packet packetAnswer, status string) (packetAnswer, error) {
	for packet.Status != status {
		switch packet.Status {
		case "rejected", "closed": // nothing follows these
			return packetAnswer{}, fmt.Errorf("%w status of packet %s: %s instead of %s", errUnexpected, packet.ID, packet.Status, status)
		}
		if err := sleep(ctx, showPoll); err != nil {
			return packetAnswer{}, fmt.Errorf("packet %s is still %s: %w", packet.ID, packet.Status, err)
		}
		var err error
		if packet, err = s.client.packet(ctx, packet.ID); err != nil {
			return packetAnswer{}, err
		}
	}
	return packet, nil
}

// crowd lets all guests grab at the same instant.
func (s *firstShow) crowd(ctx context.Context, packetID string, guests, winners int) error {
	bar := newMeter(s.out, "shares grabbed", winners)
	defer bar.end()
	results := make(chan grabResult, guests)
	start := make(chan struct{})
	var wait sync.WaitGroup
	var took atomic.Int64
	for i := range guests {
		wait.Go(func() {
			<-start
			began := time.Now()
			results <- s.client.grab(ctx, packetID, fmt.Sprintf("guest-%03d", i+1))
			took.Add(int64(time.Since(began)))
		})
	}
	close(start)
	won, late := 0, 0
	var fen int64
	for range guests {
		switch result := <-results; {
		case result.err != nil:
			wait.Wait()
			return result.err
		case result.won:
			won++
			fen += result.amount
			bar.set(won)
		default:
			late++
		}
	}
	wait.Wait()
	if won != winners {
		return fmt.Errorf("%w number of winners: %d instead of %d", errUnexpected, won, winners)
	}
	bar.end()
	s.say("  %d won %s, %d came too late; an answer took %v on average\n",
		won, yuan(fen), late, (time.Duration(took.Load()) / time.Duration(guests)).Round(100*time.Microsecond))
	return nil
}

// payouts counts the payouts of a packet until all are paid.
func (s *firstShow) payouts(ctx context.Context, packetID string, want int) error {
	bar := newMeter(s.out, "paid out", want)
	defer bar.end()
	for {
		statuses, err := s.client.payoutStatuses(ctx, packetID)
		if err != nil {
			return err
		}
		bar.set(statuses["paid"])
		if statuses["paid"] == want {
			return nil
		}
		if statuses["failed"] > 0 {
			return fmt.Errorf("%w payouts of packet %s: %v", errUnexpected, packetID, statuses)
		}
		if err := sleep(ctx, showPoll); err != nil {
			return fmt.Errorf("payouts of packet %s: %v: %w", packetID, statuses, err)
		}
	}
}

// closed waits until the books of a packet are closed.
func (s *firstShow) closed(ctx context.Context, packetID string) (packetAnswer, error) {
	packet, err := s.client.packet(ctx, packetID)
	if err != nil {
		return packetAnswer{}, err
	}
	if packet.Status == "open" {
		s.say("  open until %s\n", packet.ExpiresAt.Local().Format(time.TimeOnly))
	}
	return s.until(ctx, packet, "closed")
}

// proof shows that every fen of a packet is accounted for.
func (s *firstShow) proof(ctx context.Context, packetID string) error {
	for {
		proof, err := s.client.proof(ctx, packetID)
		if err != nil {
			return err
		}
		if proof.Balanced {
			s.say("  closed; proof: %s = paid %s + refunded %s + owed %s + remaining %s: balanced\n",
				yuan(proof.Total), yuan(proof.Paid), yuan(proof.Refunded), yuan(proof.Owed), yuan(proof.Remaining+proof.Refunding))
			return nil
		}
		if err := sleep(ctx, showPoll); err != nil {
			return fmt.Errorf("the proof of packet %s does not balance: %w", packetID, err)
		}
	}
}

func (s *firstShow) say(format string, args ...any) { _ = printf(s.out, format, args...) }

// yuan formats an amount in fen for people.
func yuan(fen int64) string { return fmt.Sprintf("¥%d.%02d", fen/100, fen%100) }

// sleep waits for d, or less when ctx ends, which is its error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
