package store

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

func parse(t testing.TB, no string) payout.Parts {
	t.Helper()
	parts, err := payout.Parse(no)
	must(t, err)
	return parts
}

func TestPaymentThroughTheRows(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	st, err := s.PaymentState(ctx, id)
	must(t, err)
	if st.Status != payout.StatusPending || st.Step != (payout.Step{Do: payout.ActionSend}) {
		t.Errorf("%+v", st)
	}
	o := begin(t, s, id)
	if want := "transfer " + payout.OrderNo(id, 1) + " u 100 CNY "; string(o.Request) != want || o.Send != 1 || o.Op != payout.OpTransfer {
		t.Errorf("%+v, want %q", o, want)
	}
	st, err = s.PaymentState(ctx, id)
	must(t, err)
	if st.Status != payout.StatusSending || st.Step.Do != payout.ActionQuery || st.Step.OrderNo != o.OrderNo {
		t.Errorf("recorded: %+v", st)
	}
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived)
	again := begin(t, s, id)
	if again.OrderNo != o.OrderNo || again.Send != 2 || string(again.Request) != string(o.Request) {
		t.Errorf("sent again as %+v", again)
	}
	obs := observation(payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	obs.Account, obs.Amount, obs.ProviderRef, obs.Message = "u", 100, "ref", "ok"
	obs.StartedAt, obs.EndedAt = s.Now(), s.Now()
	st, err = s.Settle(ctx, obs, o.OrderNo)
	must(t, err)
	if st.Status != payout.StatusPaid || st.Step.Do != payout.ActionEnd || st.Failure != nil {
		t.Errorf("%+v", st)
	}
	d, err := s.Payment(ctx, id)
	must(t, err)
	if d.OrderNo != o.OrderNo || d.ProviderRef != "ref" || d.AttemptCount != 1 || len(d.Attempts) != 1 || len(d.Events) != 3 {
		t.Errorf("%+v", d)
	}
	if a := d.Attempts[0]; !a.Booked || a.Sends != 2 || a.Queries != 1 || a.Statement != payout.ObsSucceeded || a.EndedAt.IsZero() ||
		a.Message != "ok" {
		t.Errorf("%+v", a)
	}
	if e := d.Events[2]; e.Outcome != "succeeded" || e.Op != "send" || e.OrderNo != o.OrderNo || e.StartedAt.IsZero() ||
		e.Source != "provider" {
		t.Errorf("%+v", e)
	}
	if b, err := s.Payments(ctx, staff.PaymentFilter{Kind: payout.KindPayout, OrderNo: o.OrderNo, Limit: 5}); err != nil || len(b) != 1 ||
		b[0].ProviderRef != "ref" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestAttemptSurvivesItsRow: every field of an attempt is read as it was written: a missing one
// would corrupt the program counter.
func TestAttemptSurvivesItsRow(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	want := payout.Attempt{}
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			at = at.Add(time.Microsecond)
			f.Set(reflect.ValueOf(at))
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(int64(i + 1))
		case []byte:
			f.SetBytes([]byte{0, 255, byte(i)})
		default:
			f.SetString(fmt.Sprint("f", i))
		}
	}
	// The table checks that the order number is its payment's and that the operation is known.
	want.PaymentID = payoutID(samplePacket(100, 1), 0)
	want.OrderNo, want.Op = payout.OrderNo(want.PaymentID, want.No), payout.OpTransfer
	row := mysql.NewAttemptRow(want)
	must(t, s.db.Gorm.Create(&row).Error)
	var back mysql.AttemptRow
	must(t, s.db.Gorm.Raw("SELECT * FROM attempts WHERE order_no = ?", want.OrderNo).Scan(&back).Error)
	if got := back.Attempt(); !reflect.DeepEqual(got, want) {
		t.Errorf("read   %+v\nwrote %+v", got, want)
	}
	zero := payoutID(samplePacket(100, 1), 0)
	want = payout.Attempt{OrderNo: payout.OrderNo(zero, 1), PaymentID: zero, No: 1, Op: payout.OpTransfer, Sends: 1, Request: []byte{},
		StartedAt: at, QueryUntil: at}
	row = mysql.NewAttemptRow(want)
	must(t, s.db.Gorm.Create(&row).Error)
	back = mysql.AttemptRow{}
	must(t, s.db.Gorm.Raw("SELECT * FROM attempts WHERE order_no = ?", want.OrderNo).Scan(&back).Error)
	if got := back.Attempt(); !reflect.DeepEqual(got, want) {
		t.Errorf("read   %+v\nwrote %+v", got, want)
	}
}

func TestBeginSendRefusesWhatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := owing(t, s)
	bad := errors.New("cannot be encoded")
	_, err := s.BeginSend(t.Context(), id, limits, func(payout.Instruction) ([]byte, error) { return nil, bad })
	wantErr(t, err, bad)
	if st, err := s.PaymentState(t.Context(), id); err != nil || st.Status != payout.StatusPending {
		t.Errorf("%+v, %v", st, err)
	}
	_, err = s.BeginSend(t.Context(), payout.ID('p', newID(), 0), limits, encode)
	wantErr(t, err, ErrNotFound)
}

// TestPayoutTexts: only an adapter that needs them gets the greeting of the packet and the name of its campaign, whether
// the payout is sent with its claim or later.
func TestPayoutTexts(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 300, 3)
	plain := funded(t, s, 100, 1)
	must(t, s.db.Gorm.Exec(`INSERT INTO campaigns (id, app_id, name, salt, zone, opens_minute, starts_on, template, body_hash, status,
		ended_at, created_at, updated_at) VALUES ('c', 'app', '新年', '', '', 0, '', '', '', 'ended', NOW(3), NOW(3), NOW(3))`).Error)
	must(t, s.db.Gorm.Exec(`INSERT INTO campaign_days (campaign_id, day, status, packet_id, opens_at, decided_at)
		VALUES ('c', '2026-02-17', 'made', ?, NOW(3), NOW(3))`, p.ID).Error)
	needs := limits
	needs.PayoutTexts = true
	var got payout.Instruction
	note := func(in payout.Instruction) ([]byte, error) { got = in; return encode(in) }
	expect := func(greeting, campaign string, err error) {
		t.Helper()
		if err != nil || got.Greeting != greeting || got.Campaign != campaign {
			t.Errorf("%q of %q, %v; want %q of %q", got.Greeting, got.Campaign, err, greeting, campaign)
		}
	}
	_, err := s.BeginClaim(t.Context(), claimOf(p, 0, "u0"), needs, note)
	expect(p.Greeting, "新年", err)
	claim(t, s, p, 1, "u1")
	_, err = s.BeginSend(t.Context(), payoutID(p, 1), needs, note)
	expect(p.Greeting, "新年", err)
	claim(t, s, plain, 0, "u2")
	_, err = s.BeginSend(t.Context(), payoutID(plain, 0), needs, note)
	expect(plain.Greeting, "", err)
	_, err = s.BeginClaim(t.Context(), claimOf(p, 2, "u3"), limits, note)
	expect("", "", err)
}

// TestR3_OneOrderAtOnce: many runs begin concurrently; one of them gets the order, the others query.
func TestR3_OneOrderAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := owing(t, s)
	orders := make([]*payout.Order, 16)
	for _, err := range together(len(orders), func(i int) error {
		b, err := s.BeginSend(t.Context(), id, limits, encode)
		if err == nil && b.Order == nil && b.State.Step.Do != payout.ActionQuery {
			err = fmt.Errorf("no order, and next %+v", b.State.Step)
		}
		orders[i] = b.Order
		return err
	}) {
		must(t, err)
	}
	n := 0
	for _, o := range orders {
		if o != nil {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d orders to send", n)
	}
}

// TestR3_RowIsTheProgramCounter: several runs drive the same payment concurrently, each only by its
// row, against a provider that loses requests and answers. Every send but the first follows an
// answered query, the money is booked once, and all runs end alike.
func TestR3_RowIsTheProgramCounter(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	for round := range 8 {
		id := owing(t, s)
		var mu sync.Mutex
		moved := map[string]bool{}
		sends := 0
		run := func(i int) error {
			for n := range 200 {
				st, err := s.PaymentState(ctx, id)
				if err != nil {
					return err
				}
				c.Pass(time.Second) // what is due later becomes due
				switch st.Step.Do {
				case payout.ActionEnd:
					return nil
				case payout.ActionSend:
					noted := c.Now()
					b, err := s.BeginSend(ctx, id, limits, encode)
					if err != nil {
						return err
					}
					if b.Order == nil || c.Now().Sub(noted) >= payout.LeaveWithin {
						continue // nothing is recorded, or it is too late to leave
					}
					mu.Lock()
					sends++
					kind := payout.ObsNoAnswer
					if fate := (round + sends) % 3; fate > 0 { // lost on the way there, or on the way back, or not
						moved[b.Order.OrderNo] = true
						if fate == 2 {
							kind = payout.ObsSucceeded
						}
					}
					mu.Unlock()
					o := observation(payout.SourceSend, b.Order.OrderNo, kind)
					if _, err := s.Settle(ctx, o, b.Order.OrderNo); err != nil {
						return err
					}
				default:
					mu.Lock()
					kind := payout.ObsNeverReceived
					if moved[st.Step.OrderNo] {
						kind = payout.ObsSucceeded
					}
					mu.Unlock()
					o := observation(payout.SourceQuery, st.Step.OrderNo, kind)
					o.ID = fmt.Sprintf("run-%d/%d", i, n)
					if _, err := s.Settle(ctx, o, st.Step.OrderNo); err != nil {
						return err
					}
				}
			}
			return errors.New("no end")
		}
		for _, err := range together(4, run) {
			must(t, err)
		}
		if len(moved) != 1 {
			t.Errorf("moved under %v", moved)
		}
		noted := storetest.Query[int](t, s, "SELECT SUM(sends) FROM attempts WHERE payment_id = ?", id)
		asked := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND outcome = 'never_received'", id)
		if noted > 1+asked || sends > noted {
			t.Errorf("%d sends recorded and %d made after %d never-received answers", noted, sends, asked)
		}
		if st, err := s.PaymentState(ctx, id); err != nil || st.Status != payout.StatusPaid {
			t.Errorf("%+v, %v", st, err)
		}
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM transfers WHERE kind = 'paid' AND order_no LIKE CONCAT(?, '%')", id); n != 1 {
			t.Errorf("%d payments in the ledger", n)
		}
	}
}

// TestR5_NothingIsSentPastAskUntil: an order number that the provider may have forgotten is not sent
// again, whatever was answered before.
func TestR5_NothingIsSentPastAskUntil(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		later time.Duration
		sent  bool
	}{"in time": {time.Hour - time.Minute, true}, "past it": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			s, c := newStore(t)
			id := owing(t, s)
			forgetful := payout.Limits{Adapter: adapter, LandingWindow: time.Second, Remembers: 25 * time.Hour}
			one, err := s.BeginSend(t.Context(), id, forgetful, encode)
			must(t, err)
			if st := settle(t, s, payout.SourceQuery, one.Order.OrderNo, payout.ObsNeverReceived); st.Step.Do != payout.ActionSend {
				t.Fatalf("%+v", st)
			}
			c.Pass(tc.later)
			b, err := s.BeginSend(t.Context(), id, forgetful, encode)
			if err != nil || (b.Order != nil) != tc.sent || !tc.sent && b.State.Step.Do != payout.ActionQuery {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
}

func TestSettleIsRepeatable(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	o := begin(t, s, id)
	obs := observation(payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	for _, err := range together(10, func(int) error {
		st, err := s.Settle(ctx, obs, o.OrderNo)
		if err == nil && st.Status != payout.StatusPaid {
			err = fmt.Errorf("%+v", st)
		}
		return err
	}) {
		must(t, err)
	}
	if d, err := s.Payment(ctx, id); err != nil || len(d.Events) != 1 {
		t.Errorf("%d events, %v", len(d.Events), err)
	}
	for _, no := range []string{"", "nonsense", id, payout.OrderNo(id, 2), payout.OrderNo(payout.ID('p', newID(), 0), 1)} {
		_, err := s.Settle(ctx, observation(payout.SourceQuery, no, payout.ObsSucceeded), no)
		wantErr(t, err, ErrNotFound)
	}
}

// TestSettleTakesAnyText: every text of a provider fits, or its payment would be stuck.
func TestSettleTakesAnyText(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for i, text := range []string{"余额不足", strings.Repeat("长", 600), "\xff\xfe", "a\x00b", "🧧", strings.Repeat("x", 70_000), "' OR 1=1 --",
		"\u2028\u202e"} {
		id := owing(t, s)
		o := begin(t, s, id)
		obs := observation(payout.SourceSend, o.OrderNo, payout.ObsDeclined)
		obs.Code, obs.Message, obs.ProviderRef, obs.SealedAction = text, text, text, []byte(text)
		if _, err := s.Settle(t.Context(), obs, o.OrderNo); err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		obs.ID, obs.Source = "again", payout.SourceQuery
		st, err := s.Settle(t.Context(), obs, o.OrderNo)
		if err != nil || st.Status != payout.StatusFailed {
			t.Errorf("%d: %+v, %v", i, st, err)
		}
		if kept, err := s.PaymentState(t.Context(), id); err != nil || *st.Failure != *kept.Failure {
			t.Errorf("%d: the run gets code %.80q and message %.80q, the row has %+v, %v", i, st.Failure.Code, st.Failure.Message, kept.Failure,
				err)
		}
		obs.ID, obs.OrderNo = "mismatch", text
		if _, err := s.Settle(t.Context(), obs, o.OrderNo); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if err := s.RecordNotification(t.Context(), adapter, text, text, []byte(text[:min(len(text), 60_000)])); err != nil {
			t.Errorf("%d: notification: %v", i, err)
		}
	}
}

// TestCasRefusesMovedRows: a change based on a stale row is not written.
func TestCasRefusesMovedRows(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	old, _, _, err := mysql.LoadPayment(s.read(ctx), id, false)
	must(t, err)
	o := begin(t, s, id)
	p := old.Payment()
	p.Status = payout.StatusSending
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.casPayment(old, p) })
	wantErr(t, err, ErrMoved)
	// The same status, but another version.
	old, _, _, err = mysql.LoadPayment(s.read(ctx), id, false)
	must(t, err)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsPending)
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.casPayment(old, old.Payment()) })
	wantErr(t, err, ErrMoved)
	_, attempts, _, err := mysql.LoadPayment(s.read(ctx), id, false)
	must(t, err)
	stale := attempts[0]
	stale.Statement = payout.ObsSucceeded
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.casBoth(old, old.Payment(), stale) })
	wantErr(t, err, ErrMoved)
	_, after, _, err := mysql.LoadPayment(s.read(ctx), id, false)
	must(t, err)
	if after[0].Statement != payout.ObsPending {
		t.Errorf("the attempt was written: %s", after[0].Statement)
	}
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.movePacket(parse(t, id).PacketID, "funding", "open", nil) })
	wantErr(t, err, ErrMoved)
}

// TestR4_UnansweredRepeatIsNotRefused: a send in flight has no answer, even when the one before was
// refused.
func TestR4_UnansweredRepeatIsNotRefused(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 100, 1)
	id := claim(t, s, p, 0, "u").PaymentID
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsDeclined)
	if st := settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived); st.Status != payout.StatusFailed {
		t.Fatalf("%+v", st)
	}
	decide(t, s, id)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived)
	const refused = "SELECT refused FROM attempts WHERE order_no = ?"
	if !storetest.Query[bool](t, s, refused, o.OrderNo) {
		t.Fatal("the first send was not refused")
	}
	if again := begin(t, s, id); again.OrderNo != o.OrderNo || again.Send != 2 || storetest.Query[bool](t, s, refused, o.OrderNo) {
		t.Errorf("sent %+v, the row is refused", again)
	}
	if st := settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNeverReceived); st.Status != payout.StatusUnknown ||
		st.Step.Do != payout.ActionSend {
		t.Errorf("%+v", st)
	}
}
