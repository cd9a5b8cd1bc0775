// Package bulk fills an empty MySQL database with many closed packets by SQL, for
// benchmarks and for tests that need large tables. Only tests import it.
//
// The rows agree with each other: the ledger of a filled database verifies. They
// were never created by the product's own steps, and two things are missing: the
// hashes of the audit chain, and the orders at the provider.
package bulk

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// Config describes the rows. Every member is required.
type Config struct {
	Payouts  int       // minimum; the last packet may add some
	Days     int       // the packets were created over so many days, evenly
	Until    time.Time // end of the last day
	App      string
	SeedKey  [32]byte // seals the seeds of the packets
	Provider string
}

const (
	// life is the time between creation and expiry of a packet; every later step of its
	// payments is over after twice that time.
	life = time.Hour
	// largest is the number of shares of the largest packet.
	largest = 400
	// packetsAtOnce is the number of packets of one INSERT.
	packetsAtOnce = 500
)

//go:embed fill.sql
var statements string

// Fill inserts the rows. The same Config inserts the same rows, apart from the
// nonces of sealed seeds.
func Fill(ctx context.Context, db *sql.DB, cfg Config) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	packets := draw(cfg.Payouts)
	start := cfg.Until.AddDate(0, 0, -cfg.Days).UTC().Truncate(time.Millisecond)
	span := cfg.Until.Sub(start) - 2*life
	for begin := 0; begin < len(packets); begin += packetsAtOnce {
		some := packets[begin:min(begin+packetsAtOnce, len(packets))]
		for i := range some {
			some[i].created = start.Add(span / time.Duration(len(packets)) * time.Duration(begin+i)).Truncate(time.Millisecond)
		}
		if err := insertPackets(ctx, conn, cfg, begin, some); err != nil {
			return err
		}
	}
	if _, err := conn.ExecContext(ctx, "SET @provider = ?", cfg.Provider); err != nil {
		return err
	}
	for statement := range strings.SplitSeq(statements, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// row is one packet as drawn.
type row struct {
	shares, claimed int
	share           money.Fen // of each share
	rejected        bool
	created         time.Time
}

// Amounts of shares, and numbers of shares of a packet.
var (
	amounts = []money.Fen{66, 88, 100, 188, 200, 520, 666, 888, 1000, 1888, 5200, 8888}
	counts  = []int{1, 1, 2, 3, 5, 5, 8, 10, 10, 10, 15, 20, 30, 50}
)

// draw returns packets until their claims are the wanted number of payouts.
func draw(payouts int) (packets []row) {
	dice := rand.New(rand.NewPCG(1, 0))
	perMille := func(n int) bool { return dice.IntN(1000) < n }
	for left := payouts; left > 0; {
		r := row{shares: counts[dice.IntN(len(counts))], share: amounts[dice.IntN(len(amounts))]}
		switch {
		case perMille(4):
			r.shares = 100 + dice.IntN(largest-100)
		case r.shares == 1 && perMille(30):
			r.share = money.Fen(50_000 + 100*dice.IntN(1500)) // an amount that few payouts have
		}
		switch r.claimed = r.shares; {
		case perMille(8):
			r.claimed, r.rejected = 0, true
		case perMille(220):
			r.claimed = dice.IntN(r.shares)
		}
		left -= r.claimed
		packets = append(packets, r)
	}
	return packets
}

// insertPackets inserts packets; the first of them has the number first.
func insertPackets(ctx context.Context, conn *sql.Conn, cfg Config, first int, rows []row) error {
	var args []any
	for i, r := range rows {
		id := packet.NewID([]byte(cfg.App), "bulk-"+strconv.Itoa(first+i))
		seed := packet.DeriveSeed(cfg.SeedKey, id)
		sealed, err := packet.SealSeed(cfg.SeedKey, id, seed)
		if err != nil {
			return err
		}
		total := int64(r.share) * int64(r.shares)
		status, ended := packet.StatusClosed, r.created.Add(life+time.Second)
		var reason, failure, closed, remainder, claimed, best, last any
		if r.rejected {
			status, failure = packet.StatusRejected, "insufficient_sender_balance"
		} else {
			reason = string(packet.CloseExpired)
			if r.claimed == r.shares {
				reason, ended = string(packet.CloseSoldOut), r.created.Add(life/2)
			}
			closed, remainder, claimed = ended, total-int64(r.share)*int64(r.claimed), r.claimed
		}
		if r.claimed > 0 {
			best, last = 0, r.claimed-1
		}
		sender := fmt.Sprintf("user%06d", (first+i)*7919%200_000)
		args = append(args, id, cfg.App, sender, total, r.shares, packet.Commitment(seed), sealed, string(status), reason, failure,
			r.created, r.created, r.created.Add(life), closed, remainder, claimed, best, last, closed, ended)
	}
	values := ", (?, ?, ?, 'CNY', ?, ?, 'equal', 1, 0, '恭喜发财', '{}', 'body', ?, ?, 'sandbox', 'sandbox'" + strings.Repeat(", ?", 13) + ")"
	_, err := conn.ExecContext(ctx, `INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share,
		max_share,
		greeting, metadata, body_hash, commitment, sealed_seed, charge_provider, payout_provider, status, close_reason, failure_code,
		created_at, opens_at, expires_at, books_closed_at, remainder, claimed_count, best_share,
		last_share, closed_at, updated_at) VALUES `+strings.Repeat(values, len(rows))[2:], args...)
	if err != nil {
		return fmt.Errorf("insert packets: %w", err)
	}
	return nil
}
