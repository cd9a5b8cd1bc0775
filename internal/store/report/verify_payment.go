package report

import (
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

type ledgerPaymentRow struct {
	ID          string
	PacketID    string
	Kind        string
	Provider    string
	UserID      string
	ShareIndex  int
	Amount      int64
	Status      string
	SettledAt   *time.Time
	ShareUser   *string
	ShareAmount *int64
	cancelled   money.Fen // its refund
}

func (r ledgerPaymentRow) payment() staff.LedgerPayment {
	p := staff.LedgerPayment{ID: r.ID, PacketID: r.PacketID, Kind: payout.Kind(r.Kind[0]), Provider: r.Provider, UserID: r.UserID,
		Amount: money.Fen(r.Amount),
		Status: payout.Status(r.Status), SettledAt: mysql.OrZero(r.SettledAt), ShareUser: mysql.OrEmpty(r.ShareUser), CancelRefund: r.cancelled}
	if r.ShareAmount != nil {
		p.ShareAmount = money.Fen(*r.ShareAmount)
	}
	return p
}

func (c *ledgerCheck) payments() *pages[ledgerPaymentRow] {
	return &pages[ledgerPaymentRow]{size: verifyPayments, read: func(last *ledgerPaymentRow) (rows []ledgerPaymentRow, err error) {
		after := ""
		if last != nil {
			after = last.ID
		}
		err = c.db.Raw(`SELECT p.id, p.packet_id, p.kind, p.provider, p.user_id, p.share_index, p.amount, p.status, p.settled_at,
			s.user_id AS share_user, s.amount AS share_amount FROM payments p
			LEFT JOIN shares s ON s.packet_id = p.packet_id AND s.share_index = p.share_index AND p.kind = 'p'
			WHERE p.id > ? ORDER BY p.id LIMIT ?`, after, verifyPayments).Scan(&rows).Error
		if err != nil {
			return rows, err
		}
		return rows, c.refundsOf(rows)
	}}
}

// refundsOf fills in the refunds of cancelled payouts.
func (c *ledgerCheck) refundsOf(rows []ledgerPaymentRow) error {
	of := map[string]*ledgerPaymentRow{}
	var ids []string
	for i, r := range rows {
		if r.Kind == string(payout.KindPayout) {
			id := payout.ID(payout.KindRefund, r.PacketID, r.ShareIndex+1)
			of[id] = &rows[i]
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var refunds []struct {
		ID     string
		Amount int64
	}
	err := c.db.Model(&mysql.PaymentRow{}).Select("id", "amount").Where("id IN ?", ids).Find(&refunds).Error
	for _, r := range refunds {
		of[r.ID].cancelled = money.Fen(r.Amount)
	}
	return err
}

type ledgerAttemptRow struct {
	OrderNo      string
	PaymentID    string
	No           int
	Booked       bool
	ReturnBooked bool
}

func (c *ledgerCheck) attempts() *pages[ledgerAttemptRow] {
	return &pages[ledgerAttemptRow]{size: verifyRows, read: func(last *ledgerAttemptRow) (rows []ledgerAttemptRow, err error) {
		q := c.db.Model(&mysql.AttemptRow{}).Select("order_no", "payment_id", "no", "booked", "return_booked")
		if last != nil {
			q = q.Where("order_no > ?", last.OrderNo)
		}
		err = q.Order("order_no").Limit(verifyRows).Find(&rows).Error
		return rows, err
	}}
}

// byPayment merges the payments with attempts and ledger in their order: an order number begins with
// its payment's id.
func (c *ledgerCheck) byPayment() error {
	payments, attempts := c.payments(), c.attempts()
	transfers := c.transfersBy("order_no", "transfers_order", func(r mysql.TransferRow) string { return r.OrderNo })
	for {
		row, err := payments.peek()
		if err != nil {
			return err
		}
		if err := c.orphans(transfers, func(r mysql.TransferRow) bool { return row == nil || beforePayment(r.OrderNo, row.ID) },
			"it has no payment"); err != nil {
			return err
		}
		if err := c.orphanedAttempts(attempts, row); err != nil || row == nil {
			return err
		}
		p := row.payment()
		for {
			a, err := attempts.peek()
			if err != nil {
				return err
			}
			if a == nil || a.PaymentID != p.ID {
				break
			}
			p.Attempts = append(p.Attempts, staff.LedgerAttempt{OrderNo: a.OrderNo, Booked: a.Booked, ReturnBooked: a.ReturnBooked})
			c.out.Attempts++
			attempts.skip()
		}
		for {
			t, err := transfers.peek()
			if err != nil {
				return err
			}
			if t == nil || !strings.HasPrefix(t.OrderNo, p.ID) {
				break
			}
			p.Transfers = append(p.Transfers, t.Transfer())
			transfers.skip()
		}
		if err := c.report(staff.VerifyPayment(p)); err != nil {
			return err
		}
		c.out.Payments++
		payments.skip()
	}
}

// beforePayment reports whether an order number sorts before all those of a payment.
func beforePayment(orderNo, paymentID string) bool {
	return orderNo < paymentID && !strings.HasPrefix(orderNo, paymentID)
}

// orphanedAttempts reports attempts without a payment, up to the next payment.
func (c *ledgerCheck) orphanedAttempts(attempts *pages[ledgerAttemptRow], next *ledgerPaymentRow) error {
	for {
		a, err := attempts.peek()
		if err != nil || a == nil || next != nil && a.PaymentID >= next.ID {
			return err
		}
		parts, _ := payout.Parse(a.OrderNo) // for a foreign number the packet stays empty
		v := staff.Violation{Rule: staff.RuleUnknown, PacketID: parts.PacketID, Subject: a.OrderNo,
			Detail: "an attempt without a payment"}
		if err := c.report([]staff.Violation{v}); err != nil {
			return err
		}
		attempts.skip()
	}
}
