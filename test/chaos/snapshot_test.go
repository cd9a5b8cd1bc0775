package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/provider/wechat/simulator"
)

// snapshot is everything that MySQL and the provider hold after a run.
type snapshot struct {
	packets   map[string]*packetRow
	payments  map[string]*paymentRow // by id
	attempts  map[string]string      // order number -> payment
	postings  []transferRow
	outbox    int
	breaks    map[string]int // by kind
	waiting   int            // quarantined hand-offs
	movements []movement
	transfers map[string]simulator.TransferState // of WeChat Pay; nil: the sandbox pays
}

// transferStates counts the transfers of WeChat Pay.
func (b *snapshot) transferStates() map[string]int {
	n := map[string]int{}
	for _, t := range b.transfers {
		n[strings.TrimSpace(t.State+" "+t.Reason)]++
	}
	return n
}

type packetRow struct {
	id, group, sender, status string
	total                     int64
	shares                    int
	remainder                 sql.NullInt64
	claims                    map[string]*shareRow // by user
	payer                     bool                 // the sender pays in an app
	why                       string               // it closed or was rejected
}

type shareRow struct {
	index     int
	amount    int64
	recipient sql.NullString
}

type paymentRow struct {
	id, kind, packet, user, account, status, orderNo string
	share                                            int
	amount                                           int64
}

type transferRow struct {
	packet, kind, debit, credit string
	amount                      int64
}

// movement is one movement of money at the provider.
type movement struct {
	Seq     int64  `json:"seq"`
	Op      string `json:"op"`
	OrderNo string `json:"order_no"`
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
}

// wrongProvider is the operation of a transfer that the sandbox made while WeChat Pay pays.
const wrongProvider = "transfer of the wrong provider"

// rows reads all rows of a query.
func rows(ctx context.Context, db *sql.DB, query string, each func(scan func(...any) error) error) error {
	r, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer func() { _ = r.Close() }()
	for r.Next() {
		if err := each(r.Scan); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return r.Err()
}

// readSnapshot reads MySQL first and the provider last: money that moves between both reads is then
// seen as too much, never as too little.
func readSnapshot(ctx context.Context, s *stack, db *sql.DB) (*snapshot, error) {
	b, err := readRows(ctx, db)
	if err == nil {
		b.movements, err = readMovements(ctx, s)
	}
	if err != nil || s.wechat == nil {
		return b, err
	}
	for i, m := range b.movements {
		if m.Op == "transfer" {
			b.movements[i].Op = wrongProvider
		}
	}
	b.transfers, err = s.wechat.transfers(ctx)
	for no, t := range b.transfers {
		for range t.Moved {
			b.movements = append(b.movements, movement{Op: "transfer", OrderNo: no, Account: t.OpenID, Amount: t.Amount})
		}
	}
	return b, err
}

// TestSnapshotFitsTheSchema: the queries of the snapshot, which only the night makes, name columns that
// exist.
func TestSnapshotFitsTheSchema(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := readRows(t.Context(), db); err != nil {
		t.Error(err)
	}
}

// readRows reads the rows of MySQL.
func readRows(ctx context.Context, db *sql.DB) (*snapshot, error) {
	b := &snapshot{packets: map[string]*packetRow{}, payments: map[string]*paymentRow{}, attempts: map[string]string{},
		breaks: map[string]int{}}
	for _, part := range []struct {
		query string
		each  func(scan func(...any) error) error
	}{
		{`SELECT id, COALESCE(group_id, ''), sender_id, total_amount, share_count, status, remainder, pay_within > 0,
			COALESCE(close_reason, failure_code, '') FROM packets`,
			func(scan func(...any) error) error {
				p := &packetRow{claims: map[string]*shareRow{}}
				err := scan(&p.id, &p.group, &p.sender, &p.total, &p.shares, &p.status, &p.remainder, &p.payer, &p.why)
				b.packets[p.id] = p
				return err
			}},
		{"SELECT packet_id, share_index, amount, user_id, recipient FROM claims WHERE kind = 'share'", func(scan func(...any) error) error {
			var packet, user string
			r := &shareRow{}
			if err := scan(&packet, &r.index, &r.amount, &user, &r.recipient); err != nil {
				return err
			}
			if b.packets[packet] != nil {
				b.packets[packet].claims[user] = r
			}
			return nil
		}},
		{"SELECT id, kind, packet_id, user_id, share_index, account, amount, status, COALESCE(order_no, '') FROM payments",
			func(scan func(...any) error) error {
				p := &paymentRow{}
				err := scan(&p.id, &p.kind, &p.packet, &p.user, &p.share, &p.account, &p.amount, &p.status, &p.orderNo)
				b.payments[p.id] = p
				return err
			}},
		{"SELECT order_no, payment_id FROM attempts", func(scan func(...any) error) error {
			var no, payment string
			err := scan(&no, &payment)
			b.attempts[no] = payment
			return err
		}},
		{"SELECT packet_id, kind, debit, credit, amount FROM transfers ORDER BY id", func(scan func(...any) error) error {
			var p transferRow
			err := scan(&p.packet, &p.kind, &p.debit, &p.credit, &p.amount)
			b.postings = append(b.postings, p)
			return err
		}},
		{"SELECT kind, COUNT(*) FROM breaks GROUP BY kind", func(scan func(...any) error) error {
			var kind string
			var n int
			err := scan(&kind, &n)
			b.breaks[kind] = n
			return err
		}},
		{"SELECT COUNT(*) FROM outbox", func(scan func(...any) error) error { return scan(&b.outbox) }},
		{"SELECT COUNT(*) FROM quarantine", func(scan func(...any) error) error { return scan(&b.waiting) }},
	} {
		if err := rows(ctx, db, part.query, part.each); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func readMovements(ctx context.Context, s *stack) (all []movement, err error) {
	const page = 1000
	for after := int64(0); ; {
		var got struct {
			Items []movement `json:"items"`
		}
		status, err := s.provider(ctx, http.MethodGet, fmt.Sprintf("/_movements?after=%d&limit=%d", after, page), "", nil, &got)
		if err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("movements after %d: status %d, %w", after, status, err)
		}
		all = append(all, got.Items...)
		if len(got.Items) < page {
			return all, nil
		}
		after = got.Items[page-1].Seq
	}
}

// order holds the parts of an order number: kind, packet, share and attempt.
type order struct {
	kind, packet, payment string
	number                int
}

// readOrder parses an order number by the rule in the contract, not with the product's code: kind,
// 20 characters of the packet, 4 of the share, 2 of the attempt.
func readOrder(no string) (order, error) {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	if len(no) != 27 || !strings.Contains("cprh", no[:1]) {
		return order{}, fmt.Errorf("order number %q is not one of ours", no)
	}
	o := order{kind: no[:1], packet: no[1:21], payment: no[:25]}
	for _, digit := range no[21:25] {
		v := strings.IndexRune(digits, digit)
		if v < 0 {
			return order{}, fmt.Errorf("order number %q is not one of ours", no)
		}
		o.number = 32*o.number + v
	}
	return o, nil
}
