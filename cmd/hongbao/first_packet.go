package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"hongbao/client"
	"hongbao/internal/devstack"
	"hongbao/internal/money"
	"hongbao/wire"
)

// The demonstration: the first packet has more guests than shares, so that some find it sold out.
const (
	firstShares      = 50
	firstGuests      = 120
	firstAmount      = money.Fen(88_888)
	secondShares     = 10
	secondGuests     = 3
	secondAmount     = money.Fen(1_000)
	secondExpirySecs = 10
)

// firstPacketLimit bounds the demonstration. The second packet takes ten seconds to expire.
const firstPacketLimit = 3 * time.Minute

// Errors of the first packet.
var (
	errFirstPacket = errors.New("the demonstration failed; the stack keeps running")
	errUnexpected  = errors.New("unexpected")
)

// firstPacket demonstrates two packets on the running stack through its HTTP API and prints the steps: a crowd grabs the
// whole first packet and is paid; the second packet expires and its remainder is refunded.
func firstPacket(ctx context.Context, env devstack.Env, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, firstPacketLimit)
	defer cancel()
	retry := client.WithRetry(client.Retry{Tries: int(firstPacketLimit / demoPoll), MinPause: demoPoll, MaxPause: demoPoll})
	app, err := client.New(env.URL, env.Keys.App, retry)
	if err != nil {
		return err
	}
	defer app.Close()
	finance, err := client.NewStaff(env.StaffURL, env.Keys.Finance, retry)
	if err != nil {
		return err
	}
	defer finance.Close()
	show := &demo{app: app, finance: finance, out: out, id: time.Now().UTC().Format("20060102150405")}
	if err := show.run(ctx); err != nil {
		return fmt.Errorf("%w: %w", errFirstPacket, err)
	}
	return nil
}

// demo is one demonstration.
type demo struct {
	app     *client.Client
	finance *client.Staff
	out     io.Writer
	id      string // part of the idempotency keys
}

func (s *demo) run(ctx context.Context) error {
	s.printf("\nThe first packet: %d shares, %d guests\n", firstShares, firstGuests)
	_, err := s.packet(ctx, wire.CreatePacket{TotalAmount: firstAmount, ShareCount: firstShares, Greeting: "恭喜发财", ExpiresInSeconds: 86400},
		firstGuests, firstShares)
	if err != nil {
		return err
	}
	s.printf("\nA second packet: %d shares, %d guests, open for %d s; the remainder is refunded\n", secondShares, secondGuests,
		secondExpirySecs)
	second, err := s.packet(ctx, wire.CreatePacket{TotalAmount: secondAmount, ShareCount: secondShares, Greeting: "手慢无",
		ExpiresInSeconds: secondExpirySecs},
		secondGuests, secondGuests)
	if err != nil {
		return err
	}
	if want := secondAmount - second.ClaimedAmount; second.RefundedAmount != want {
		return fmt.Errorf("%w refund: ¥%v instead of ¥%v", errUnexpected, second.RefundedAmount, want)
	}
	s.printf("  ¥%v claimed, ¥%v refunded to the sender\n", second.ClaimedAmount, second.RefundedAmount)
	return nil
}

// packet creates a packet and waits until it is closed and its proof balances.
func (s *demo) packet(ctx context.Context, r wire.CreatePacket, guests, winners int) (*wire.Packet, error) {
	r.SenderID = "lin-mei"
	p, err := s.app.CreateAndWait(ctx, r, client.Key(fmt.Sprintf("first-packet-%s-%d", s.id, r.ShareCount)))
	if err != nil {
		return nil, err
	}
	if p.Status != wire.PacketOpen {
		return nil, fmt.Errorf("%w status of packet %s: %s instead of open", errUnexpected, p.ID, p.Status)
	}
	s.printf("  %s sends ¥%v in packet %s\n", r.SenderID, p.TotalAmount, p.ID)
	if err := s.grabAll(ctx, p.ID, guests, winners); err != nil {
		return nil, err
	}
	if err := s.payouts(ctx, p.ID, winners); err != nil {
		return nil, err
	}
	if guests < r.ShareCount {
		s.printf("  open until %s\n", p.ExpiresAt.Local().Format(time.TimeOnly))
	}
	if p, err = s.app.AwaitPacket(ctx, p.ID, (*wire.Packet).Ended); err != nil {
		return nil, err
	}
	if p.Status != wire.PacketClosed {
		return nil, fmt.Errorf("%w status of packet %s: %s instead of closed", errUnexpected, p.ID, p.Status)
	}
	return p, s.checkProof(ctx, p.ID)
}

// demoPoll is the pause between two polls and between two tries of a call.
const demoPoll = 150 * time.Millisecond

// grabResult is the result of one grab; amount is zero when the packet was sold out.
type grabResult struct {
	amount money.Fen
	err    error
}

// grabAll sends the grabs of all guests at once.
func (s *demo) grabAll(ctx context.Context, packetID string, guests, winners int) error {
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
			results <- s.grab(ctx, packetID, fmt.Sprintf("guest-%03d", i+1))
			took.Add(int64(time.Since(began)))
		})
	}
	close(start)
	won, late := 0, 0
	var sum money.Fen
	for range guests {
		switch result := <-results; {
		case result.err != nil:
			wait.Wait()
			return result.err
		case result.amount > 0:
			won++
			sum += result.amount
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
	s.printf("  %d won ¥%v, %d came too late; an answer took %v on average\n",
		won, sum, late, (time.Duration(took.Load()) / time.Duration(guests)).Round(100*time.Microsecond))
	return nil
}

func (s *demo) grab(ctx context.Context, packetID, userID string) grabResult {
	claim, err := s.app.Grab(ctx, packetID, wire.Grab{UserID: userID})
	switch {
	case client.IsCode(err, wire.CodeSoldOut):
		return grabResult{}
	case err != nil:
		return grabResult{err: err}
	}
	return grabResult{amount: claim.Amount}
}

// payouts counts the payouts of a packet until all are paid.
func (s *demo) payouts(ctx context.Context, packetID string, want int) error {
	bar := newMeter(s.out, "paid out", want)
	defer bar.end()
	for {
		paid := 0
		for p, err := range s.finance.Payouts(ctx, wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{PacketID: packetID}}) {
			switch {
			case err != nil:
				return err
			case p.Status == wire.PayoutFailed:
				return fmt.Errorf("%w status of payout %s: failed", errUnexpected, p.ID)
			case p.Status == wire.PayoutPaid:
				paid++
			}
		}
		bar.set(paid)
		if paid == want {
			return nil
		}
		if err := sleep(ctx, demoPoll); err != nil {
			return fmt.Errorf("packet %s: %d of %d payouts are paid: %w", packetID, paid, want, err)
		}
	}
}

// proof waits until the proof of a packet balances, and prints it.
func (s *demo) checkProof(ctx context.Context, packetID string) error {
	for {
		proof, err := s.app.Proof(ctx, packetID)
		if err != nil {
			return err
		}
		if proof.Balanced {
			s.printf("  closed; proof: ¥%v = paid ¥%v + refunded ¥%v + owed ¥%v + remaining ¥%v: balanced\n",
				proof.Total, proof.Paid, proof.Refunded, proof.Owed, proof.Remaining+proof.Refunding)
			return nil
		}
		if err := sleep(ctx, demoPoll); err != nil {
			return fmt.Errorf("the proof of packet %s does not balance: %w", packetID, err)
		}
	}
}

func (s *demo) printf(format string, args ...any) { _ = printf(s.out, format, args...) }

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

// readLater reads after a pause. ended is the error of ctx, when it ends before the answer, in the middle of the
// read too; err is another error of the read.
func readLater[T any](ctx context.Context, pause time.Duration, read func() (T, error)) (next T, ended, err error) {
	if err = sleep(ctx, pause); err == nil {
		next, err = read()
	}
	if err != nil && ctx.Err() != nil {
		return next, ctx.Err(), nil
	}
	return next, nil, err
}
