package recovery

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// silent is a provider that gives no usable answer.
type silent struct{ payout.Provider }

func (silent) Name() string          { return "silent" }
func (silent) Limits() payout.Limits { return payout.Limits{} }
func (silent) Query(context.Context, payout.Op, string) payout.Observation {
	return payout.Observation{Kind: payout.ObsNoAnswer}
}

// failedStore has one failed payment, and keeps which of its order numbers was restored.
type failedStore struct {
	Store
	payment  payout.Payment
	restored int
}

func (*failedStore) Clock(context.Context) (time.Time, error) { return time.Now(), nil }

func (s *failedStore) PaymentRow(context.Context, string) (payout.Payment, error) {
	return s.payment, nil
}

func (s *failedStore) Packet(_ context.Context, id string) (packet.Record, error) {
	rec := packet.Record{Packet: packet.Packet{ID: id}}
	rec.ChargeProvider, rec.PayoutProvider = "silent", "silent"
	return rec, nil
}

func (s *failedStore) RecoverAttempt(_ context.Context, _ payout.Payment, no int, _ time.Time, _ payout.Limits,
	_ func(payout.Instruction) ([]byte, error)) (bool, error) {
	s.restored = no
	return true, nil
}

// TestR13_SilenceIsUnknown: a payment that had failed by the backup may have been sent again since. The
// provider does not say: its order is left to staff, and restored as unknown, not kept as failed.
func TestR13_SilenceIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		packetID := packet.NewID([]byte("salt"), "key")
		p := payout.Payment{ID: payout.ID(payout.KindPayout, packetID, 0), PacketID: packetID, Provider: "silent",
			Status: payout.StatusFailed, Attempt: 1}
		store := &failedStore{payment: p}
		r := &Recovery{Store: store, Providers: payout.OnlyProvider(silent{})}
		_, err := r.restorePayment(t.Context(), p.ID)
		var about unansweredOrder
		if !errors.As(err, &about) || about.no != payout.OrderNo(p.ID, 1) || store.restored != 1 {
			t.Errorf("number %d restored, %v", store.restored, err)
		}
	})
}

// naming encodes a request as the name of its recipient.
type naming struct{ payout.Provider }

func (naming) Name() string          { return "silent" }
func (naming) Limits() payout.Limits { return payout.Limits{} }
func (naming) EncodeRequest(in payout.Instruction) ([]byte, error) {
	return []byte(in.RecipientName), nil
}

// encodingStore encodes the request of a restored order, of a recipient with a sealed name.
type encodingStore struct {
	Store
	sealed  string
	request []byte
}

func (s *encodingStore) RecoverAttempt(_ context.Context, _ payout.Payment, _ int, _ time.Time, _ payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (put bool, err error) {
	s.request, err = encode(payout.Instruction{SealedName: s.sealed})
	return true, err
}

// TestR13_NameIsRestored: the request of a restored payout has the name of its recipient, which MySQL has sealed.
func TestR13_NameIsRestored(t *testing.T) {
	key, packetID := [32]byte{7}, packet.NewID([]byte("salt"), "key")
	sealed, err := packet.SealText(key, packetID, "张三")
	if err != nil {
		t.Fatal(err)
	}
	store := &encodingStore{sealed: sealed}
	r := &Recovery{Store: store, Providers: payout.OnlyProvider(naming{}), SeedKey: key}
	p := payout.Payment{ID: payout.ID(payout.KindPayout, packetID, 0), PacketID: packetID, Provider: "silent"}
	if put, err := r.restoreAttempt(t.Context(), p, 1); err != nil || !put || string(store.request) != "张三" {
		t.Errorf("restored %q, %t, %v", store.request, put, err)
	}
}
