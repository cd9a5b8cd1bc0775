package payout

import (
	"errors"
	"testing"

	"hongbao/internal/money"
)

// TestWriteOff: what the ledger has decides which transfer a write-off is, or that it is none.
func TestWriteOff(t *testing.T) {
	second, off, back := PostSecondSuccess, PostWrittenOff, PostRecovered
	for name, c := range map[string]struct {
		transfers []TransferKind
		balance   int64
		refund    Status
		kind      TransferKind
		err       error
	}{
		"paid twice":                      {[]TransferKind{second}, -7, "", off, nil},
		"with another number":             {[]TransferKind{second}, -9, StatusPaid, off, nil},
		"its refund was dropped":          {[]TransferKind{second}, 0, StatusCancelled, "", ErrNotInSuspense},
		"its refund waits":                {[]TransferKind{second}, -7, StatusPending, "", ErrRefundFirst},
		"its refund has failed":           {[]TransferKind{second}, -7, StatusFailed, "", ErrRefundFirst},
		"paid once":                       {[]TransferKind{PostPaid}, -7, "", "", ErrNotInSuspense},
		"returned":                        {[]TransferKind{second, PostSecondReturned}, 0, "", "", ErrNotInSuspense},
		"written off":                     {[]TransferKind{second, off}, 0, "", "", ErrNotInSuspense},
		"another is lost":                 {[]TransferKind{second, off}, -7, "", "", ErrNotInSuspense},
		"written off, returned":           {[]TransferKind{second, off, PostSecondReturned}, 7, "", back, nil},
		"written off, returned, recorded": {[]TransferKind{second, off, PostSecondReturned, back}, 7, "", "", ErrNotInSuspense},
	} {
		s := Suspended{OrderNo: "n", Amount: 7, Transfers: c.transfers, Balance: money.Fen(c.balance), Refund: c.refund}
		got, err := s.WriteOff()
		if got.Kind != c.kind || !errors.Is(err, c.err) || err != nil && !errors.Is(err, ErrNotRetryable) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err == nil && got != NewTransfer(c.kind, "n", 7) {
			t.Errorf("%s: %+v", name, got)
		}
		if _, refused := PreviewDecision(Payment{ID: "p"}, nil, DecisionRequest{Kind: DecisionWrittenOff, Suspended: &s}, t0); !errors.Is(refused,
			c.err) {
			t.Errorf("%s: previewed: %v", name, refused)
		}
	}
	if v, err := PreviewDecision(Payment{ID: "p"}, nil, DecisionRequest{Kind: DecisionWrittenOff}, t0); err != nil || !v.NeedsApproval {
		t.Errorf("%+v, %v", v, err)
	}
}
