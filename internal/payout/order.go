// Package payout holds the state machine that moves money once: one obligation (charge, payout or
// refund), its attempts at the provider, the transitions of its status and the ledger transfers of
// each transition. It is pure: it decides, its callers read, write and send. It imports only money.
package payout

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/money"
)

// Kind is the first letter of every order number.
type Kind byte

// The kinds.
const (
	KindCharge  Kind = 'c' // sender -> us
	KindPayout  Kind = 'p' // us -> recipient of a claim
	KindRefund  Kind = 'r' // us -> sender
	KindHonour  Kind = 'h' // us -> recipient of an honoured share conflict
	digits           = "0123456789abcdefghijklmnopqrstuv"
	packetIDLen      = 20
	numberLen        = 4
	attemptLen       = 2
)

// IDLen and OrderNoLen are the fixed widths of payment ids and order numbers.
const (
	IDLen      = 1 + packetIDLen + numberLen
	OrderNoLen = IDLen + attemptLen
)

// MaxAttempts is the number of order numbers one payment can ever use: two base32 digits.
const MaxAttempts = 32*32 - 1

// ErrBadOrderNo is wrapped by errors about order numbers and payment ids that are not ours.
var ErrBadOrderNo = errors.New("not one of our order numbers")

// honourNumbers is how many numbers four base32 digits have.
const honourNumbers = 1 << (5 * numberLen)

// HonourNumber is the number of a user's share conflict in a packet: bits of an HMAC, so that a restored
// MySQL gives it to no other user.
func HonourNumber(packetID, userID string) int {
	mac := hmac.New(sha256.New, []byte(packetID))
	mac.Write([]byte(userID))
	return int(binary.BigEndian.Uint32(mac.Sum(nil)) % honourNumbers)
}

// NextHonourNumber follows a number that another user of the packet has.
func NextHonourNumber(n int) int { return (n + 1) % honourNumbers }

// ID derives the id of a payment (rule R1): kind, packet id and four base32 digits. n is the share
// index of a payout, 0 of a charge and of the refund of the remainder, share + 1 of the refund of a
// cancelled payout, HonourNumber of a share conflict.
func ID(kind Kind, packetID string, n int) string {
	return string(kind) + packetID + base32(n, numberLen)
}

// OrderNo derives the order number (商户单号) of an attempt: payment id and two
// base32 digits. Attempts count from 1.
func OrderNo(paymentID string, attempt int) string {
	return paymentID + base32(attempt, attemptLen)
}

// Parts are the parsed parts of an order number or payment id.
type Parts struct {
	Kind      Kind
	PacketID  string
	Number    int
	PaymentID string
	Attempt   int // 0 in a payment id
}

// Parse reads an order number or a payment id. Errors wrap ErrBadOrderNo.
func Parse(s string) (Parts, error) {
	if len(s) != IDLen && len(s) != OrderNoLen {
		return Parts{}, fmt.Errorf("%w: length %d", ErrBadOrderNo, len(s))
	}
	kind := Kind(s[0])
	switch kind {
	case KindCharge, KindPayout, KindRefund, KindHonour:
	default:
		return Parts{}, fmt.Errorf("%w: unknown kind", ErrBadOrderNo)
	}
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(digits, s[i]) < 0 {
			return Parts{}, fmt.Errorf("%w: character %d", ErrBadOrderNo, i)
		}
	}
	return Parts{
		Kind:      kind,
		PacketID:  s[1 : 1+packetIDLen],
		Number:    unbase32(s[1+packetIDLen : IDLen]),
		PaymentID: s[:IDLen],
		Attempt:   unbase32(s[IDLen:]),
	}, nil
}

func base32(n, width int) string {
	out := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		out[i] = digits[n&31]
		n >>= 5
	}
	return string(out)
}

func unbase32(s string) int {
	n := 0
	for i := range len(s) {
		n = n<<5 | strings.IndexByte(digits, s[i])
	}
	return n
}

// Op is an operation of the provider.
type Op string

// The operations of a provider.
const (
	OpCharge   Op = "charge"
	OpTransfer Op = "transfer"
	OpRefund   Op = "refund"
)

// OpOf returns the provider's operation for a kind of payment.
func OpOf(k Kind) Op {
	switch k {
	case KindCharge:
		return OpCharge
	case KindRefund:
		return OpRefund
	default:
		return OpTransfer
	}
}

// Instruction is the content of a request to a provider under one order number. The adapter encodes
// it once; the bytes are stored before the first send and are the same at every repeat.
type Instruction struct {
	Op            Op
	OrderNo       string
	Account       string
	Amount        money.Fen
	Currency      string
	Remark        string
	ChargeOrderNo string    // of a refund: the order number of the packet's charge, "" if unknown
	ChargeTotal   money.Fen // of a refund: the amount of that charge
	// Of a charge whose sender pays in an app (Method.NeedsPayer).
	Method    string
	Payer     map[string]string // the members that the method needs
	ReturnURL string
	PayUntil  time.Time // the sender may begin to pay until then
	// SealedPayer holds Payer and ReturnURL sealed; the caller of the encoder opens it.
	SealedPayer []byte
	// Of a payout, where the recipient has stated them. The caller of the encoder opens SealedName.
	RecipientName, SealedName, Authorization string
	// Of a payout, with Limits.PayoutTexts: the packet's greeting, and the name of its campaign, "" without one.
	Greeting, Campaign string
}

// Order is a stored request, ready to be sent: the exact bytes under its order number.
type Order struct {
	Op      Op     `json:"op"`
	OrderNo string `json:"order_no"`
	Request []byte `json:"request"`
	// Send counts the recorded sends of this number, this one included.
	Send int `json:"send"`
}
