package worker_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/harness"
)

// signed makes a notification about an order, as the holder of a secret would.
func (s *scene) signed(secret, orderNo, status string, at time.Time) notice {
	s.Helper()
	n := notice{EventID: "evt_" + rand.Text(), OrderNo: orderNo, Type: "order." + status,
		header: http.Header{"Content-Type": {"application/json"}}}
	n.body = must(json.Marshal(map[string]string{"event_id": n.EventID, "type": n.Type, "order_no": orderNo, "status": status,
		"created_at": at.UTC().Format(time.RFC3339)}))(s)
	hook := must(standardwebhooks.NewWebhook(secret))(s)
	n.header.Set(standardwebhooks.HeaderWebhookID, n.EventID)
	n.header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	n.header.Set(standardwebhooks.HeaderWebhookSignature, must(hook.Sign(n.EventID, at, n.body))(s))
	return n
}

// stored counts what is kept of notifications about an order number.
func (s *scene) stored(orderNo string) (n int) {
	s.Helper()
	if err := s.r.db.QueryRowContext(s.Context(), "SELECT COUNT(*) FROM notifications WHERE order_no = ?", orderNo).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// deliver delivers a notification and checks how it is answered.
func (s *scene) deliver(n notice, want int) {
	s.Helper()
	if got := s.line.deliver(n); got != want {
		s.Errorf("notification %s of %s was answered %d, want %d", n.Type, n.OrderNo, got, want)
	}
}

// keepNotices holds every notification; the provider gets an acknowledgement.
func keepNotices(s *scene) {
	s.line.notified = func(n notice, _ func() int) int { s.notices <- n; return http.StatusNoContent }
}

// waiting is a payment that stays with the provider until the rules are lifted.
var waiting = []rule{fault("", "pending_forever", 0)}

const (
	otherSecret = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
	polls       = "send processing; ask processing+"
)

// forged delivers a notification that is not the provider's: 401, not stored, not asked for.
func forged(change func(s *scene, n *notice), secret string, age time.Duration) func(s *scene) {
	return func(s *scene) {
		s.awaitCalls(polls)
		n := s.signed(secret, s.orderNo(1), "succeeded", time.Now().Add(-age))
		if change != nil {
			change(s, &n)
		}
		s.deliver(n, http.StatusUnauthorized)
		if s.stored(s.orderNo(1)) != 0 {
			s.Error("the forged notification was stored")
		}
	}
}

func forgedRow(what string, change func(s *scene, n *notice), secret string, age time.Duration) faultRow {
	return faultRow{what: "forged: " + what, ops: transfers, rules: waiting, then: forged(change, secret, age),
		calls: polls, status: payout.StatusSending, money: "once"}
}

// noticeRows: notifications.
var noticeRows = []faultRow{
	{what: "never sent", ops: everyOp, suffix: "~pending", rules: []rule{fault("", "notify_never", 0)},
		calls: "send processing; ask processing*; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "sent twice", ops: everyOp, suffix: "~pending", rules: []rule{fault("", "notify_twice", 0)},
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "sent late", ops: everyOp, suffix: "~pending", rules: []rule{fault("", "notify_late", 0)},
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "delivered five times: stored once", ops: transfers, suffix: "~pending", set: keepNotices,
		then: func(s *scene) {
			n := s.heldNotice()
			for range 5 {
				s.deliver(n, http.StatusNoContent)
			}
			if stored := s.stored(s.orderNo(1)); stored != 1 {
				s.Errorf("stored %d times", stored)
			}
		},
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "refused by us five times, then taken", ops: transfers, suffix: "~pending",
		set: func(s *scene) {
			s.line.notified = func(n notice, deliver func() int) int {
				if s.heldCount(n) < 5 {
					return http.StatusServiceUnavailable
				}
				return deliver()
			}
		},
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "out of order: returned is notified before succeeded", ops: transfers, suffix: "~returned", rules: []rule{fault("", "pending", 1)},
		set: keepNotices,
		then: func(s *scene) {
			first, second := s.heldNotice(), s.heldNotice()
			if first.Type != "order.succeeded" || second.Type != "order.returned" {
				s.Fatalf("notified of %s, then of %s", first.Type, second.Type)
			}
			s.deliver(second, http.StatusNoContent)
			s.await(payout.StatusReturned)
			s.deliver(first, http.StatusNoContent)
		},
		calls: "send processing; ask processing*; ask succeeded*; ask returned+", status: payout.StatusReturned, money: "once, returned",
		code: "returned"},
	{what: "of a return; the query finds nothing three times", ops: transfers, suffix: "~returned",
		rules:  []rule{fault("", "not_found_yet", 3)},
		calls:  "send succeeded; ask order_not_found; ask order_not_found; ask order_not_found; ask returned+",
		status: payout.StatusReturned, money: "once, returned", code: "returned", breaks: "forgotten"},
	{what: "of a return; the query is answered with processing, twice", ops: transfers, suffix: "~returned",
		rules: []rule{fault("query", "pending", 2)},
		calls: "send succeeded; ask processing; ask processing; ask returned+", status: payout.StatusReturned, money: "once, returned",
		code: "returned"},
	{what: "about the refused number, after finance's retry has paid", ops: transfers, suffix: "~frozen",
		rules: []rule{fault("", "pending", 1)}, set: keepNotices,
		then: func(s *scene) {
			n := s.heldNotice()
			s.await(payout.StatusFailed)
			s.unfreeze()
			s.mustRetry()
			s.awaitNumber(payout.StatusPaid, 2)
			s.deliver(n, http.StatusNoContent)
		},
		loose: true, tries: 2,
		calls:  "send processing; ask processing*; ask declined; ask declined; ask declined; #2 send succeeded; ask declined",
		status: payout.StatusPaid, money: "once"},
	{what: "says succeeded of an order that is under way: it is asked about, nothing moves", ops: transfers, rules: waiting,
		then: func(s *scene) {
			s.awaitCalls(polls)
			s.deliver(s.signed(harness.WebhookSecret, s.orderNo(1), "succeeded", time.Now()), http.StatusNoContent)
		},
		calls: polls, status: payout.StatusSending, money: "once"},
	{what: "says declined of an order that is paid: it is asked about, nothing moves", ops: transfers,
		then: func(s *scene) {
			s.await(payout.StatusPaid)
			s.deliver(s.signed(harness.WebhookSecret, s.orderNo(1), "declined", time.Now()), http.StatusNoContent)
		},
		calls: "send succeeded; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "says returned of a charge that is paid: it is asked about, nothing moves", ops: charges,
		then: func(s *scene) {
			s.await(payout.StatusPaid)
			s.deliver(s.signed(harness.WebhookSecret, s.orderNo(1), "returned", time.Now()), http.StatusNoContent)
		},
		calls: "send succeeded; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "says succeeded of an order that failed: it is asked about, nothing moves", ops: transfers, suffix: "~declined",
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.deliver(s.signed(harness.WebhookSecret, s.orderNo(1), "succeeded", time.Now()), http.StatusNoContent)
		},
		calls: "send declined; ask declined; ask declined", status: payout.StatusFailed, money: "never", code: "payee_declined"},
	{what: "about a number of this payout that was never used: stored, nothing changes", ops: transfers,
		then: func(s *scene) {
			s.await(payout.StatusPaid)
			s.deliver(s.signed(harness.WebhookSecret, s.orderNo(7), "succeeded", time.Now()), http.StatusNoContent)
			if s.stored(s.orderNo(7)) != 1 {
				s.Error("not stored")
			}
		},
		calls: "send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "about an order of a packet that does not exist: stored, nothing changes", ops: transfers,
		then: func(s *scene) {
			no := payout.OrderNo(payout.ID(payout.KindPayout, packet.NewID([]byte("salt"), rand.Text()), 0), 1)
			s.deliver(s.signed(harness.WebhookSecret, no, "succeeded", time.Now()), http.StatusNoContent)
			if s.stored(no) != 1 {
				s.Error("not stored")
			}
		},
		calls: "send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "about an order number that is not ours: stored, nothing changes", ops: transfers,
		then: func(s *scene) {
			no := "X" + rand.Text()
			s.deliver(s.signed(harness.WebhookSecret, no, "succeeded", time.Now()), http.StatusNoContent)
			if s.stored(no) != 1 {
				s.Error("not stored")
			}
		},
		calls: "send succeeded", status: payout.StatusPaid, money: "once"},
	forgedRow("signed with another secret", nil, otherSecret, 0),
	forgedRow("signed ten minutes ago", nil, harness.WebhookSecret, 10*time.Minute),
	forgedRow("dated ten minutes ahead", nil, harness.WebhookSecret, -10*time.Minute),
	forgedRow("without a signature", func(_ *scene, n *notice) { n.header.Del(standardwebhooks.HeaderWebhookSignature) },
		harness.WebhookSecret, 0),
	forgedRow("the body was changed", func(s *scene, n *notice) {
		n.body = []byte(strings.Replace(string(n.body), "succeeded", "returned", 1))
	}, harness.WebhookSecret, 0),
	forgedRow("under the id of another event", func(_ *scene, n *notice) { n.header.Set(standardwebhooks.HeaderWebhookID, "evt_other") },
		harness.WebhookSecret, 0),
	forgedRow("a new date on an old signature", func(_ *scene, n *notice) {
		n.header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(time.Now().Unix(), 10))
	}, harness.WebhookSecret, 10*time.Minute),
}

// heldCount counts the deliveries of a notification that were refused so far.
func (s *scene) heldCount(n notice) int {
	select {
	case s.notices <- n:
	default:
	}
	return len(s.notices) - 1
}
