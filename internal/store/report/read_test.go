package report

import (
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

func TestPayments(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 1500, 5) // 300 each
	q := funded(t, s, 40, 2)   // 20 each
	for i := range 5 {
		claim(t, s, p, i, fmt.Sprint("u", i))
	}
	claim(t, s, q, 0, "u0")
	claim(t, s, q, 1, "u9")
	pay(t, s, payoutID(p, 0))
	failed := fail(t, s, payoutID(p, 1))
	decide(t, s, payoutID(p, 1))
	settle(t, s, payout.SourceQuery, failed.OrderNo, payout.ObsDeclined)
	second := fail(t, s, payoutID(p, 1))
	never := begin(t, s, payoutID(p, 2))
	settle(t, s, payout.SourceSend, never.OrderNo, payout.ObsDeclined)
	settle(t, s, payout.SourceQuery, never.OrderNo, payout.ObsNeverReceived)
	mid := s.Now()
	c.Pass(time.Second)
	r := funded(t, s, 7, 1)
	claim(t, s, r, 0, "u0")

	ids := func(f staff.PaymentFilter) []string {
		t.Helper()
		if f.Kind == 0 {
			f.Kind = payout.KindPayout
		}
		if f.Limit == 0 {
			f.Limit = 100
		}
		rows, err := s.Payments(ctx, f)
		must(t, err)
		var out []string
		for i, r := range rows {
			out = append(out, r.ID)
			if i > 0 && (r.CreatedAt.After(rows[i-1].CreatedAt) || r.CreatedAt.Equal(rows[i-1].CreatedAt) && r.ID > rows[i-1].ID) {
				t.Errorf("%+v: not newest first", f)
			}
		}
		return out
	}
	id := func(p packet.Packet, shares ...int) []string {
		var out []string
		for _, n := range shares {
			out = append(out, payoutID(p, n))
		}
		return out
	}
	for name, tc := range map[string]struct {
		filter staff.PaymentFilter
		want   []string
	}{
		"packet":        {staff.PaymentFilter{PacketID: q.ID}, id(q, 1, 0)},
		"user":          {staff.PaymentFilter{UserID: "u0"}, slices.Concat(id(r, 0), id(q, 0), id(p, 0))},
		"status":        {staff.PaymentFilter{Status: payout.StatusPaid}, id(p, 0)},
		"code":          {staff.PaymentFilter{FailureCode: "never_received"}, id(p, 2)},
		"unlisted code": {staff.PaymentFilter{FailureCode: "declined"}, id(p, 1)},
		"older":         {staff.PaymentFilter{CreatedTo: mid, UserID: "u0"}, slices.Concat(id(q, 0), id(p, 0))},
		"smallest":      {staff.PaymentFilter{AmountMin: 301}, nil},
		"amounts":       {staff.PaymentFilter{AmountMin: 20, AmountMax: 299}, id(q, 1, 0)},
		"number":        {staff.PaymentFilter{OrderNo: second.OrderNo}, id(p, 1)},
		"older number":  {staff.PaymentFilter{OrderNo: failed.OrderNo}, id(p, 1)},
		"no number":     {staff.PaymentFilter{OrderNo: payout.OrderNo(payoutID(p, 1), 3)}, nil},
		"not ours":      {staff.PaymentFilter{OrderNo: "' OR 1=1"}, nil},
		"together":      {staff.PaymentFilter{PacketID: p.ID, Status: payout.StatusFailed, UserID: "u1"}, id(p, 1)},
		"none":          {staff.PaymentFilter{PacketID: p.ID, UserID: "u9"}, nil},
		"all":           {staff.PaymentFilter{}, slices.Concat(id(r, 0), id(q, 1, 0), id(p, 4, 3, 2, 1, 0))},
		"charges":       {staff.PaymentFilter{Kind: payout.KindCharge}, []string{chargeID(r), chargeID(q), chargeID(p)}},
	} {
		if got := ids(tc.filter); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	// Page by page, also over rows of the same instant.
	_, err := s.db.SQL.ExecContext(ctx, "UPDATE payments SET created_at = ? WHERE packet_id = ?", mid, p.ID)
	must(t, err)
	whole := ids(staff.PaymentFilter{})
	for _, limit := range []int{1, 2, 3, 7} {
		f := staff.PaymentFilter{Kind: payout.KindPayout, Limit: limit}
		var got []string
		for page := range 100 {
			rows, err := s.Payments(ctx, f)
			must(t, err)
			for _, r := range rows {
				got = append(got, r.ID)
				f.AfterTime, f.AfterID = r.CreatedAt, r.ID
			}
			if len(rows) < limit {
				break
			}
			if page == 99 {
				t.Fatal("the list has no end")
			}
		}
		if !slices.Equal(got, whole) {
			t.Errorf("in pages of %d: %v, want %v", limit, got, whole)
		}
	}
}

// TestReferenceOfTheCurrentNumber: an older order number has succeeded after all. List and detail
// show its reference, not that of the last one.
func TestReferenceOfTheCurrentNumber(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := owing(t, s)
	answer := func(source payout.Source, no int, kind payout.ObservationKind) {
		t.Helper()
		o := observation(source, payout.OrderNo(id, no), kind)
		o.ProviderRef = fmt.Sprint("ref", no)
		_, err := s.Settle(t.Context(), o, o.OrderNo)
		must(t, err)
	}
	begin(t, s, id)
	answer(payout.SourceSend, 1, payout.ObsDeclined)
	answer(payout.SourceQuery, 1, payout.ObsDeclined)
	decide(t, s, id)
	answer(payout.SourceQuery, 1, payout.ObsDeclined)
	begin(t, s, id)
	answer(payout.SourceSend, 2, payout.ObsDeclined)
	answer(payout.SourceQuery, 2, payout.ObsDeclined)
	answer(payout.SourceQuery, 1, payout.ObsSucceeded)
	answer(payout.SourceQuery, 1, payout.ObsSucceeded)
	d, err := s.Payment(t.Context(), id)
	must(t, err)
	list, err := s.Payments(t.Context(), staff.PaymentFilter{Kind: payout.KindPayout, Limit: 5})
	must(t, err)
	if d.Status != payout.StatusPaid || d.OrderNo != payout.OrderNo(id, 1) || d.ProviderRef != "ref1" ||
		!reflect.DeepEqual(list[0], d.PaymentRow) {
		t.Errorf("detail %+v\nlist %+v", d.PaymentRow, list[0])
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	token, keyID := access.NewToken(access.RoleApp)
	app := access.App{ID: "app", Name: "应用", Salt: []byte{0, 1, 0xff}}
	key := access.Key{ID: keyID, Role: access.RoleApp, AppID: "app", Owner: "应用", SecretHash: access.HashToken(token)}
	staffKey := access.Key{ID: "f", Role: access.RoleFinance, Owner: "finance", SecretHash: access.HashToken("x")}
	for range 2 {
		must(t, s.EnsureApp(ctx, app))
		must(t, s.EnsureKey(ctx, key))
		must(t, s.EnsureKey(ctx, staffKey))
	}
	must(t, s.EnsureApp(ctx, access.App{ID: "app", Name: "new name", Salt: []byte("new salt")})) // R1: the salt never changes
	must(t, s.EnsureKey(ctx, access.Key{ID: keyID, Role: access.RoleOps, Owner: "thief", SecretHash: access.HashToken("mine")}))
	apps, keys, err := s.AppsAndKeys(ctx)
	must(t, err)
	if len(apps) != 1 || !reflect.DeepEqual(apps[0], app) {
		t.Errorf("apps %+v", apps)
	}
	if i := slices.IndexFunc(keys, func(k access.Key) bool { return k.ID == keyID }); len(keys) != 2 || i < 0 ||
		!reflect.DeepEqual(keys[i], key) || !keys[i].Matches([]byte(token)) {
		t.Errorf("keys %+v", keys)
	}
	_, err = s.db.SQL.ExecContext(ctx, "UPDATE api_keys SET revoked_at = NOW(3) WHERE id = ?", keyID)
	must(t, err)
	if _, keys, err = s.AppsAndKeys(ctx); err != nil || len(keys) != 1 || !reflect.DeepEqual(keys[0], staffKey) {
		t.Errorf("after one was revoked: %+v, %v", keys, err)
	}
	if at, err := s.InstalledAt(ctx); err != nil || at.After(time.Now().Add(time.Minute)) || time.Since(at) > 24*time.Hour {
		t.Errorf("installed %v: %v", at, err)
	}
}

// crowd fills the tables of the money path with some thousand rows, so that the optimizer uses an
// index.
const crowd = `
INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, metadata, body_hash,
commitment, sealed_seed, charge_provider, payout_provider, status, created_at, opens_at, expires_at, updated_at)
	SELECT CONCAT('k', LPAD(seq, 19, '0')), 'app', CONCAT('s', seq MOD 500), 'CNY', 100, 1, 'equal', 1, 0, '', '{}', 'h', 'c', 's',
		'sandbox', 'sandbox', 'open',
	NOW(3) - INTERVAL seq SECOND, NOW(3), NOW(3) + INTERVAL 1 DAY, NOW(3) FROM seq_1_to_4000;
INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at) SELECT CONCAT('k', LPAD(seq, 19, '0')), 0, 100,
CONCAT('u', seq MOD 500), NOW(3) FROM seq_1_to_4000;
INSERT INTO claims (packet_id, user_id, kind, share_index, amount, payment_id, app_id, claimed_at) SELECT packet_id, user_id, 'share',
share_index, amount, CONCAT('p', packet_id, LPAD(share_index, 4, '0')), 'app', claimed_at
FROM shares WHERE user_id IS NOT NULL;
INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status, attempt,
order_no, created_at, updated_at, settled_at)
	SELECT CONCAT('pk', LPAD(seq, 19, '0'), '0000'), 'p', CONCAT('k', LPAD(seq, 19, '0')), 'app', CONCAT('u', seq MOD 500), 0, 'a', 100, 'CNY',
	'', 'sandbox', 'paid', 1, CONCAT('pk', LPAD(seq, 19, '0'), '000001'), NOW(3) - INTERVAL seq SECOND, NOW(3), NOW(3) FROM seq_1_to_4000;
INSERT INTO attempts (order_no, payment_id, no, op, account, request, sends, asks, statement, refused, booked, return_booked, next_action,
observed, code, message, provider_ref, started_at, ask_until, ended_at)
	SELECT CONCAT('pk', LPAD(seq, 19, '0'), '000001'), CONCAT('pk', LPAD(seq, 19, '0'), '0000'), 1, 'transfer', 'a', '', 1, 0, 'succeeded', 0, 1, 0,
	'ask', '', '', '', '', NOW(3), NOW(3), NOW(3) FROM seq_1_to_4000;
INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider) SELECT CONCAT('k', LPAD(seq, 19, '0')),
'paid', 'owed', 'provider', 100, CONCAT('pk', LPAD(seq, 19, '0'), '000001'), CONCAT('pk', LPAD(seq, 19, '0'), '000001:paid'), NOW(3), 'sandbox'
FROM seq_1_to_4000;
INSERT INTO payment_events (payment_id, at, source, op, order_no, outcome, code, event, args) SELECT CONCAT('pk', LPAD(seq, 19, '0'),
	'0000'),
NOW(3), 'provider', 'send', '', 'succeeded', '', 'sent', '{}' FROM seq_1_to_4000;
INSERT INTO outbox (payment_id, kind, due_at, created_at) SELECT CONCAT('pk', LPAD(seq, 19, '0'), '0000'), 'begin', NOW(3) + INTERVAL 1 DAY,
NOW(3) FROM seq_1_to_4000;
INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, created_at, ended_at) SELECT CONCAT('d', seq), CONCAT('pk',
LPAD(seq, 19, '0'), '0000'), 'retry', '', '', '', 'carried_out', NOW(3), NOW(3) FROM seq_1_to_4000;
INSERT INTO staff_idempotency (owner, route, idem_key, body_hash, status, body, created_at) SELECT 'finance', 'r', seq, '', 200, '', NOW(3)
FROM seq_1_to_4000;
INSERT INTO notifications (provider, event_id, order_no, known, body, received_at) SELECT 'sandbox', seq, '', 0, '', NOW(3)
FROM seq_1_to_4000;
INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen) SELECT 'mismatch', CONCAT('k', LPAD(seq, 19,
'0')), CONCAT('pk', LPAD(seq, 19, '0'), '0000'), '', '', NOW(3), NOW(3) FROM seq_1_to_4000;
ANALYZE TABLE breaks, packets, shares, claims, payments, attempts, transfers, payment_events, outbox, decisions, staff_idempotency,
notifications;`

// TestStatementsUseAnIndex drives payments through every path on full tables and explains each
// statement: none may scan a table.
func TestStatementsUseAnIndex(t *testing.T) {
	t.Parallel()
	s, c, raw := newStoreAt(t, stacktest.MariaDB(t))
	ctx := t.Context()
	_, err := raw.ExecContext(ctx, crowd)
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})

	p := funded(t, s, 300, 3)
	claim(t, s, p, 0, "u1")
	claim(t, s, p, 1, "u2")
	fail(t, s, payoutID(p, 0))
	decide(t, s, payoutID(p, 0))
	due(t, s, 10)
	settle(t, s, payout.SourceQuery, payout.OrderNo(payoutID(p, 0), 1), payout.ObsDeclined)
	o := begin(t, s, payoutID(p, 0))
	must(t, s.RecordNotification(ctx, adapter, "event", o.OrderNo, nil))
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	c.Pass(time.Hour)
	due(t, s, 10)
	for name, read := range map[string]func() error{
		"waiting lists": func() error { _, err := s.WaitingLists(ctx); return err },
		"waiting": func() error {
			_, err := s.WaitingPayments(ctx, payout.KindPayout, payout.StatusPending, packet.Cursor{}, 10)
			return err
		},
		"packet":   func() error { _, err := s.Packet(ctx, p.ID); return err },
		"claims":   func() error { _, err := s.ClaimsBefore(ctx, p.ID, -1, 10); return err },
		"claim":    func() error { _, err := s.Claim(ctx, p.ID, "u1"); return err },
		"payment":  func() error { _, err := s.Payment(ctx, payoutID(p, 0)); return err },
		"balances": func() error { _, err := s.Balances(ctx, p.ID); return err },
		"recorded": func() error { _, err := s.RecordedUsers(ctx, p.ID, []string{"u1", "u9"}); return err },
		"recorded claims": func() error {
			_, err := s.RecordedClaims(ctx, p.ID, []packet.Claim{claimOf(p, 0, "u1"), claimOf(p, 1, "u9")})
			return err
		},
		"count": func() error { _, _, err := s.CountClaims(ctx, p.ID); return err },
		"statuses": func() error {
			_, err := s.PayoutProgress(ctx, []payout.ClaimRef{claimed(claimOf(p, 0, "u1")), claimed(claimOf(p, 1, "u2"))})
			return err
		},
		"states":  func() error { _, err := s.PacketStates(ctx, []string{p.ID}); return err },
		"closing": func() error { _, err := s.BeginClosing(ctx, p.ID, packet.CloseExpired); return err },
	} {
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	_, err = s.CloseBooks(ctx, p.ID, "")
	must(t, err)
	pay(t, s, refundID(p))
	_, err = s.FinishPacket(ctx, p.ID, nil)
	must(t, err)
	after := time.Now().Add(-time.Minute)
	for _, f := range []staff.PaymentFilter{{}, {PacketID: p.ID}, {UserID: "u7"}, {Status: payout.StatusFailed}, {FailureCode: "declined"},
		{OrderNo: o.OrderNo},
		{AfterTime: after, AfterID: "p"}, {AmountMin: money.Fen(5), Status: payout.StatusPaid, AfterTime: after, AfterID: "p"}} {
		f.Kind, f.Limit = payout.KindPayout, 50
		_, err := s.Payments(ctx, f)
		must(t, err)
	}
	for _, f := range []packet.RecordFilter{{}, {App: "app"}, {App: "app", SenderID: "s7"},
		{App: "app", SenderID: "s7", AfterTime: after, AfterID: "k"}} {
		f.Limit = 50
		_, err := s.Packets(ctx, f)
		must(t, err)
	}

	explained := 0
	for _, text := range rec.Texts {
		word, _, _ := strings.Cut(text, " ")
		if word == "INSERT" || strings.Contains(text, "audit_head") { // one row
			continue
		}
		explain(t, raw, text)
		explained++
	}
	if explained < 60 {
		t.Errorf("only %d statements were explained", explained)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in    string
		n     int
		runes string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"长长长", 2, "长长"}, {"长长长", 3, "长长长"}, {"", 0, ""}, {"a长", 3, "a长"}, {"\xff\xff", 1, "?"},
		{"🧧🧧", 1, "🧧"},
	} {
		if got := mysql.Clip(tc.in, tc.n); got != tc.runes {
			t.Errorf("mysql.Clip(%q, %d) = %q", tc.in, tc.n, got)
		}
	}
	if got := mysql.ClipCode("A_1 余额\n" + rand.Text() + strings.Repeat("x", 99)); len(got) != mysql.CodeLen || !strings.HasPrefix(got,
		"A_1 ???") {
		t.Errorf("code %q", got)
	}
}
