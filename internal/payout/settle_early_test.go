package payout

import (
	"testing"
	"time"
)

// TestR12_EarlierQuery: a notification causes a query even while an earlier one is in transit. The
// answer to the earlier one, settled later, does not cover the notification, here of a return.
func TestR12_EarlierQuery(t *testing.T) {
	b := newPaymentStore(KindPayout)
	no, err := b.send()
	if err != nil {
		t.Fatal(err)
	}
	settle := func(source Source, kind ObservationKind, put time.Time) {
		t.Helper()
		if err := b.settle(1, Observation{Source: source, Kind: kind, OrderNo: no, StartedAt: put, EndedAt: put}); err != nil {
			t.Fatal(err)
		}
	}
	settle(SourceSend, ObsPending, b.now)
	put := b.now.Add(2 * time.Second)
	noted := put.Add(300 * time.Millisecond)
	b.attempt(1).QueryWantedAt, b.attempt(1).NextAt = noted, noted // as the store does
	b.now = noted.Add(4 * time.Second)

	settle(SourceQuery, ObsRetryAfter, put)
	if at := b.step().At; !at.After(b.now) {
		t.Errorf("an unanswered question is put again at %v, without a pause", at)
	}
	b.attempt(1).NextAt = noted
	settle(SourceQuery, ObsSucceeded, put)
	if want := (Step{Do: ActionQuery, OrderNo: no, At: noted}); b.p.Status != StatusPaid || b.step() != want {
		t.Fatalf("%s, then %+v, want %+v", b.p.Status, b.step(), want)
	}
	settle(SourceQuery, ObsReturned, b.now)
	if b.p.Status != StatusReturned || b.step().Do != ActionEnd {
		t.Errorf("%s, then %+v", b.p.Status, b.step())
	}
}
