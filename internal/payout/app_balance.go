package payout

import (
	"context"
	"errors"
	"time"

	"hongbao/internal/money"
)

// BalanceProvider is the provider of charges and refunds that are entries of an app's balance: the store
// carries them out, and nothing is sent.
const BalanceProvider = "balance"

// balance stands for BalanceProvider in a Registry.
type balance struct{}

// Name implements Provider.
func (balance) Name() string { return BalanceProvider }

// Limits implements Provider. A balance takes a refund at any time.
func (balance) Limits() Limits {
	return Limits{Adapter: Adapter{Provider: BalanceProvider}, RefundWindow: maxDuration}
}

const maxDuration = time.Duration(1<<63 - 1)

// EncodeRequest implements Provider.
func (balance) EncodeRequest(Instruction) ([]byte, error) { return nil, errNothingSent }

// Send implements Provider.
func (b balance) Send(_ context.Context, o Order) Observation {
	return Observation{Adapter: b.Limits().Adapter, Source: SourceSend, Kind: ObsNotSent, OrderNo: o.OrderNo, Message: errNothingSent.Error()}
}

// Query implements Provider.
func (b balance) Query(_ context.Context, _ Op, orderNo string) Observation {
	return Observation{Adapter: b.Limits().Adapter, Source: SourceQuery, Kind: ObsNeverReceived, OrderNo: orderNo}
}

var errNothingSent = errors.New("nothing is sent for an app's balance")

// FailureInsufficientBalance is the failure code of a charge that the app's balance does not cover.
const FailureInsufficientBalance = "insufficient_balance"

// Errors of movements of an app's balance.
var (
	// ErrInsufficientBalance means that the available balance is smaller than the amount.
	ErrInsufficientBalance = errors.New("the balance does not suffice")
	// ErrReferenceUsed means that another credit or debit of the app has the reference.
	ErrReferenceUsed = errors.New("the reference was used")
)

// AppBalance is the money that an app has paid in and that is not spent.
type AppBalance struct {
	App  string
	Name string // of the app
	// Available pays new packets. It is below zero only after a recovery that found more packets than the
	// restored balance covers.
	Available money.Fen
	// Reserved is the money of packets whose books are open.
	Reserved money.Fen
	Currency string
}

// InsufficientBalance is why a charge from the balance fails.
func InsufficientBalance() *Failure {
	return NewFailure(FailureInsufficientBalance, "the app's balance does not cover the packet")
}
