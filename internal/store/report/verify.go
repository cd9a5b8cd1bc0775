package report

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// Pages of a verification: a few megabytes each, whatever the tables hold.
const (
	verifyPackets  = 500
	verifyRows     = 5000
	verifyPayments = 2000
)

// VerifyLedger checks every packet and payment against the ledger and passes each violation to
// found. It reads one snapshot in two passes of pages in index order: by packet and by payment. It
// locks and changes nothing, and holds the snapshot until it ends. Errors: ErrUnavailable, what
// found returns.
func (s *Source) VerifyLedger(ctx context.Context, found func(staff.Violation) error) (staff.VerifyReport, error) {
	tx := s.read(ctx).Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if tx.Error != nil {
		return staff.VerifyReport{}, mysql.Classify(tx.Error)
	}
	defer tx.Rollback()
	v := ledgerCheck{db: tx, found: found, out: staff.VerifyReport{Violations: map[staff.Rule]int64{},
		OpenBreaks: map[payout.BreakKind]int64{}}}
	for _, rule := range staff.Rules {
		v.out.Violations[rule] = 0
	}
	for _, pass := range []func() error{v.byPacket, v.byPayment, v.balances, v.breaks} {
		if err := pass(); err != nil {
			return v.out, mysql.Classify(err)
		}
	}
	return v.out, nil
}

type ledgerCheck struct {
	db    *gorm.DB
	found func(staff.Violation) error
	out   staff.VerifyReport
}

func (c *ledgerCheck) report(violations []staff.Violation) error {
	for _, v := range violations {
		c.out.Violations[v.Rule]++
		if err := c.found(v); err != nil {
			return err
		}
	}
	return nil
}

// pages reads rows in index order, one page at a time.
type pages[T any] struct {
	read func(last *T) ([]T, error)
	size int
	buf  []T
	last *T
	end  bool
}

// peek returns the next row, nil after the last one.
func (p *pages[T]) peek() (*T, error) {
	if len(p.buf) == 0 && !p.end {
		buf, err := p.read(p.last)
		if err != nil {
			return nil, err
		}
		p.buf, p.end = buf, len(buf) < p.size
		if len(buf) > 0 {
			p.last = &buf[len(buf)-1]
		}
	}
	if len(p.buf) == 0 {
		return nil, nil //nolint:nilnil // the end
	}
	return &p.buf[0], nil
}

func (p *pages[T]) skip() { p.buf = p.buf[1:] }

const transferColumns = "id, packet_id, kind, debit, credit, amount, order_no, reference"

// transfersBy reads the ledger by packet or by order number, without credits and debits, which have no
// packet.
func (c *ledgerCheck) transfersBy(column, index string, of func(mysql.TransferRow) string) *pages[mysql.TransferRow] {
	return &pages[mysql.TransferRow]{size: verifyRows, read: func(last *mysql.TransferRow) (rows []mysql.TransferRow, err error) {
		q := c.db.Table("transfers FORCE INDEX (" + index + ")").Select(transferColumns).Where("packet_id > ''")
		if last != nil {
			q = q.Where("(("+column+" = ? AND id > ?) OR "+column+" > ?)", of(*last), last.ID, of(*last))
		}
		err = q.Order(column + ", id").Limit(verifyRows).Find(&rows).Error
		return rows, err
	}}
}

type ledgerPacketRow struct {
	ID            string
	TotalAmount   int64
	ShareCount    int
	Status        string
	BooksClosedAt *time.Time
	ClosedAt      *time.Time
	Remainder     *int64
	ClaimedCount  *int
	// of the shares
	Count, Claimed         int
	ShareSum, ClaimedShare int64
	ClaimRows, ClaimStrays int
}

func (r ledgerPacketRow) packet() staff.LedgerPacket {
	p := staff.LedgerPacket{ID: r.ID, Total: money.Fen(r.TotalAmount), Shares: r.ShareCount, Status: r.Status,
		BooksClosedAt: mysql.OrZero(r.BooksClosedAt),
		ClosedAt:      mysql.OrZero(r.ClosedAt), ShareRows: r.Count, ShareSum: money.Fen(r.ShareSum), ClaimedCount: r.Claimed,
		ClaimedAmount: money.Fen(r.ClaimedShare), ClaimRows: r.ClaimRows, WrongClaims: r.ClaimStrays}
	if r.Remainder != nil {
		p.Remainder = money.Fen(*r.Remainder)
	}
	if r.ClaimedCount != nil {
		p.RecordedClaims = *r.ClaimedCount
	}
	return p
}

func (c *ledgerCheck) packets() *pages[ledgerPacketRow] {
	return &pages[ledgerPacketRow]{size: verifyPackets, read: func(last *ledgerPacketRow) (rows []ledgerPacketRow, err error) {
		after := ""
		if last != nil {
			after = last.ID
		}
		err = c.db.Model(&mysql.PacketRow{}).Select("id", "total_amount", "share_count", "status", "books_closed_at", "closed_at", "remainder",
			"claimed_count").Where("id > ?", after).Order("id").Limit(verifyPackets).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return rows, err
		}
		at, ids := make(map[string]*ledgerPacketRow, len(rows)), make([]string, len(rows))
		for i := range rows {
			at[rows[i].ID], ids[i] = &rows[i], rows[i].ID
		}
		var shares []struct {
			PacketID           string
			N, Claimed         int
			Total, ClaimedPart int64
		}
		err = c.db.Raw(`SELECT packet_id, COUNT(*) AS n, COUNT(user_id) AS claimed, SUM(amount) AS total,
			SUM(CASE WHEN user_id IS NULL THEN 0 ELSE amount END) AS claimed_part FROM shares WHERE packet_id IN ?
			GROUP BY packet_id`, ids).Scan(&shares).Error
		for _, s := range shares {
			r := at[s.PacketID]
			r.Count, r.Claimed, r.ShareSum, r.ClaimedShare = s.N, s.Claimed, s.Total, s.ClaimedPart
		}
		if err != nil {
			return rows, err
		}
		var claims []struct {
			PacketID string
			N, Fit   int
		}
		err = c.db.Raw(`SELECT c.packet_id, COUNT(*) AS n, COALESCE(SUM(s.user_id = c.user_id AND p.app_id = c.app_id
			AND s.amount = c.amount AND s.claimed_at = c.claimed_at), 0) AS fit
			FROM claims c LEFT JOIN shares s ON s.packet_id = c.packet_id AND s.share_index = c.share_index
			LEFT JOIN packets p ON p.id = c.packet_id WHERE c.packet_id IN ? AND c.kind = 'share' GROUP BY c.packet_id`, ids).Scan(&claims).Error
		for _, n := range claims {
			at[n.PacketID].ClaimRows, at[n.PacketID].ClaimStrays = n.N, n.N-n.Fit
		}
		return rows, err
	}}
}

// byPacket merges the packets with the ledger in packet order.
func (c *ledgerCheck) byPacket() error {
	packets := c.packets()
	transfers := c.transfersBy("packet_id", "transfers_packet", func(r mysql.TransferRow) string { return r.PacketID })
	for {
		p, err := packets.peek()
		if err != nil {
			return err
		}
		if err := c.orphans(transfers, func(r mysql.TransferRow) bool { return p == nil || r.PacketID < p.ID },
			"its packet is not there"); err != nil {
			return err
		}
		if p == nil {
			return nil
		}
		v := staff.NewPacketVerifier(p.packet())
		for {
			t, err := transfers.peek()
			if err != nil {
				return err
			}
			if t == nil || t.PacketID != p.ID {
				break
			}
			v.Add(t.Transfer())
			c.out.Transfers++
			transfers.skip()
		}
		if err := c.report(v.End()); err != nil {
			return err
		}
		c.out.Packets++
		c.out.Suspense += v.Suspense()
		packets.skip()
	}
}

// orphans reports transfers while they belong to nothing.
func (c *ledgerCheck) orphans(transfers *pages[mysql.TransferRow], stranger func(mysql.TransferRow) bool, what string) error {
	for {
		t, err := transfers.peek()
		if err != nil || t == nil || !stranger(*t) {
			return err
		}
		v := staff.Violation{Rule: staff.RuleUnknown, PacketID: t.PacketID, Subject: t.OrderNo, Detail: t.Kind + ": " + what}
		if err := c.report([]staff.Violation{v}); err != nil {
			return err
		}
		transfers.skip()
	}
}

func (c *ledgerCheck) breaks() error {
	var rows []struct {
		Kind string
		N    int64
	}
	err := c.db.Raw("SELECT kind, COUNT(*) AS n FROM breaks WHERE resolved_at IS NULL GROUP BY kind").Scan(&rows).Error
	for _, r := range rows {
		c.out.OpenBreaks[payout.BreakKind(r.Kind)] = r.N
	}
	return err
}
