package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// judgedPacket holds the members of a packet that are verified. Required members are pointers, to distinguish a missing one
// from 0.
type judgedPacket struct {
	ID              string           `json:"id"`
	Status          packet.Status    `json:"status"`
	Currency        string           `json:"currency"`
	TotalAmount     *money.Fen       `json:"total_amount"`
	ShareCount      *int             `json:"share_count"`
	Split           packet.SplitMode `json:"split"`
	MinShare        *money.Fen       `json:"min_share"`
	MaxShare        *money.Fen       `json:"max_share"` // null: no cap
	ClaimedCount    *int             `json:"claimed_count"`
	ClaimedAmount   *money.Fen       `json:"claimed_amount"`
	RemainingCount  *int             `json:"remaining_count"`
	RemainingAmount *money.Fen       `json:"remaining_amount"`
	RefundedAmount  *money.Fen       `json:"refunded_amount"`
	Fairness        struct {
		Algorithm  string  `json:"algorithm"`
		Commitment string  `json:"commitment"`
		Seed       *string `json:"seed"`
	} `json:"fairness"`
}

// judgedClaim holds the members of a claim that are verified.
type judgedClaim struct {
	PacketID   string    `json:"packet_id"`
	UserID     string    `json:"user_id"`
	ShareIndex *int      `json:"share_index"`
	Amount     money.Fen `json:"amount"`
	Currency   string    `json:"currency"`
	ClaimedAt  time.Time `json:"claimed_at"`
	BestLuck   bool      `json:"best_luck"`
	Payout     struct {
		Status payout.Status `json:"status"`
	} `json:"payout"`
}

// Errors of input that cannot be judged.
var (
	errNoPacket  = errors.New("is not a packet as GET /v1/packets/{id} answers")
	errNoClaims  = errors.New("is not a list of claims as GET /v1/packets/{id}/grabs answers")
	errNotClosed = errors.New("the seed is not published yet: verify the packet after it is closed")
	errAlgorithm = errors.New("unknown algorithm")
)

// verdict is the result, and the output of --json.
type verdict struct {
	Valid     bool         `json:"valid"`
	PacketID  string       `json:"packet_id"`
	Algorithm string       `json:"algorithm"`
	Checks    []check      `json:"checks"`
	Shares    []money.Fen  `json:"shares"` // computed; the index is the share's
	Claims    []shareClaim `json:"claims"` // null without --claims
}

// check is the result of one comparison.
type check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Checked bool   `json:"checked"` // false: the input is not sufficient
	Says    string `json:"says"`
}

// shareClaim is a claim of a share.
type shareClaim struct {
	ShareIndex int       `json:"share_index"`
	UserID     string    `json:"user_id"`
	Amount     money.Fen `json:"amount"`
	Problem    string    `json:"problem"` // "": none
}

func (v *verdict) check(name string, ok bool, format string, args ...any) {
	v.Checks = append(v.Checks, check{Name: name, OK: ok, Checked: true, Says: fmt.Sprintf(format, args...)})
	v.Valid = v.Valid && ok
}

// unchecked records a check for which the input is not sufficient.
func (v *verdict) unchecked(name, format string, args ...any) {
	v.Checks = append(v.Checks, check{Name: name, Says: fmt.Sprintf(format, args...)})
	v.Valid = false
}

// judge computes the shares and compares them with the packet and its claims. commitment is the one noted at creation, or
// "". An error means that the packet cannot be judged.
func judge(p judgedPacket, claims []judgedClaim, commitment string) (verdict, error) {
	seed, err := p.seed()
	if err != nil {
		return verdict{}, err
	}
	v := verdict{Valid: true, PacketID: p.ID, Algorithm: p.Fairness.Algorithm}
	own := packet.Commitment(seed)
	if own == p.Fairness.Commitment {
		v.check("commitment", true, "the seed is the one that was committed to, %s", own)
	} else {
		v.check("commitment", false, "SHA-256 of the seed is %s, but the commitment is %s", own, p.Fairness.Commitment)
	}
	if commitment != "" {
		v.check("noted", strings.EqualFold(commitment, p.Fairness.Commitment), "the commitment that was noted at creation is %s",
			strings.ToLower(commitment))
	}
	params := packet.SplitParams{PacketID: p.ID, Mode: p.Split, Total: *p.TotalAmount, Count: *p.ShareCount, Min: *p.MinShare}
	if p.MaxShare != nil {
		params.Max = *p.MaxShare
	}
	if v.Shares, err = packet.Split(seed, params); err != nil {
		return verdict{}, fmt.Errorf("cannot be split: %w", err)
	}
	v.check("sum", true, "%d shares were computed again, %s in all", len(v.Shares), formatYuan(*p.TotalAmount)) // Split guarantees the sum
	v.judgeCounts(p)
	if claims != nil {
		v.judgeClaims(p, claims)
	}
	return v, nil
}

// seed returns the seed of a packet that can be judged.
func (p judgedPacket) seed() (seed [32]byte, err error) {
	switch {
	case p.ID == "" || p.Status == "" || p.TotalAmount == nil || p.ShareCount == nil || p.MinShare == nil || p.Fairness.Commitment == "":
		return seed, fmt.Errorf("it %w: members are missing", errNoPacket)
	case p.ClaimedCount == nil || p.ClaimedAmount == nil || p.RemainingCount == nil || p.RemainingAmount == nil || p.RefundedAmount == nil:
		return seed, fmt.Errorf("it %w: a claimed_, remaining_ or refunded_ member is missing", errNoPacket)
	case p.Fairness.Algorithm != packet.Algorithm:
		return seed, fmt.Errorf("%w %q; this version knows %s", errAlgorithm, p.Fairness.Algorithm, packet.Algorithm)
	case p.Fairness.Seed == nil || p.Status != packet.StatusClosed:
		return seed, errNotClosed
	}
	if len(*p.Fairness.Seed) != 2*len(seed) {
		return seed, fmt.Errorf("the seed has %d characters instead of %d", len(*p.Fairness.Seed), 2*len(seed))
	}
	if _, err := hex.Decode(seed[:], []byte(*p.Fairness.Seed)); err != nil {
		return seed, fmt.Errorf("the seed is not hex: %w", err)
	}
	return seed, nil
}

// judgeCounts compares the packet's counts and sums with each other and with the shares.
func (v *verdict) judgeCounts(p judgedPacket) {
	claimed, remaining, total := *p.ClaimedAmount, *p.RemainingAmount, *p.TotalAmount
	v.check("counts", *p.ClaimedCount >= 0 && *p.ClaimedCount <= *p.ShareCount && *p.RemainingCount == *p.ShareCount-*p.ClaimedCount,
		"%d shares were claimed and %d remained, of %d", *p.ClaimedCount, *p.RemainingCount, *p.ShareCount)
	v.check("amounts", claimed >= 0 && claimed <= total && remaining == total-claimed, "%s were claimed and %s remained, of %s",
		formatYuan(claimed), formatYuan(remaining), formatYuan(total))
	// A cancelled payout goes back to the sender as well.
	v.check("refunded", *p.RefundedAmount >= remaining && *p.RefundedAmount <= total, "%s refunded to the sender, %s remained",
		formatYuan(*p.RefundedAmount), formatYuan(remaining))
	least, most := money.Fen(0), money.Fen(0)
	sorted := slices.Sorted(slices.Values(v.Shares))
	for i := range min(max(*p.ClaimedCount, 0), len(sorted)) {
		least, most = least+sorted[i], most+sorted[len(sorted)-1-i]
	}
	v.check("reach", least <= claimed && claimed <= most, "%d of the shares are %s at least and %s at most; %s were claimed",
		*p.ClaimedCount, formatYuan(least), formatYuan(most), formatYuan(claimed))
}

// judgeClaims compares each claim with its share, and all of them with the packet.
func (v *verdict) judgeClaims(p judgedPacket, claims []judgedClaim) {
	v.Claims = []shareClaim{}
	shares, users := map[int]bool{}, map[string]bool{}
	sum, cancelled, wrong := money.Fen(0), money.Fen(0), 0
	for _, c := range claims {
		s := shareClaim{ShareIndex: -1, UserID: c.UserID, Amount: c.Amount}
		if c.ShareIndex != nil {
			s.ShareIndex = *c.ShareIndex
		}
		switch i := s.ShareIndex; {
		case i < 0 || i >= len(v.Shares):
			s.Problem = "no such share"
		case c.PacketID != p.ID:
			s.Problem = "of another packet"
		case c.UserID == "" || c.ClaimedAt.IsZero():
			s.Problem = "user or time is missing"
		case c.Currency != p.Currency:
			s.Problem = "another currency"
		case shares[i]:
			s.Problem = "share claimed twice"
		case users[c.UserID]:
			s.Problem = "user has two claims"
		case c.Amount != v.Shares[i]:
			s.Problem = "another amount"
		}
		if s.Problem != "" {
			wrong++
		}
		shares[s.ShareIndex], users[c.UserID] = true, true
		sum += c.Amount
		if c.Payout.Status == payout.StatusCancelled {
			cancelled += c.Amount
		}
		v.Claims = append(v.Claims, s)
	}
	v.check("claims", wrong == 0, "%d of %d claims have the amount of their share", len(claims)-wrong, len(claims))
	missing := *p.ClaimedCount - len(claims)
	switch {
	case missing > 0: // a page, or one's own claim
		v.unchecked("complete", "%d of the packet's %d claims are not in the file: their sum, refunds and best luck cannot be checked", missing,
			*p.ClaimedCount)
		return
	case missing < 0 || sum != *p.ClaimedAmount:
		v.check("complete", false, "the packet has %d claims of %s, the file %d of %s", *p.ClaimedCount, formatYuan(*p.ClaimedAmount),
			len(claims),
			formatYuan(sum))
		return
	}
	v.check("complete", true, "they are all claims of the packet, %s in all", formatYuan(sum))
	v.check("cancelled", *p.RefundedAmount <= *p.RemainingAmount+cancelled, "besides the remainder, at most %s of cancelled payouts went back",
		formatYuan(cancelled))
	v.judgeLuck(claims)
}

// judgeLuck checks which claim has best luck.
func (v *verdict) judgeLuck(claims []judgedClaim) {
	if len(claims) == 0 {
		return
	}
	best := slices.MinFunc(claims, func(a, b judgedClaim) int {
		switch x, y := a.claim(), b.claim(); {
		case packet.Luckier(x, y):
			return -1
		case packet.Luckier(y, x):
			return 1
		}
		return 0
	})
	right := true
	for _, c := range claims {
		right = right && c.BestLuck == (c.UserID == best.UserID)
	}
	v.check("best_luck", right, "best luck has %s with %s", best.UserID, formatYuan(best.Amount))
}

func (c judgedClaim) claim() packet.Claim {
	index := -1
	if c.ShareIndex != nil {
		index = *c.ShareIndex
	}
	return packet.Claim{ShareIndex: index, Amount: c.Amount, ClaimedAt: c.ClaimedAt}
}
