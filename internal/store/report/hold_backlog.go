package report

import (
	"context"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// heldProviders reads since when providers are held, by a hold of their own or one on everything;
// zero for one that was held before.
func (r *HealthReader) heldProviders(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []struct {
		Scope, Name string
		Held        *time.Time
	}
	err := r.source.read(ctx).Raw("SELECT scope, name, MIN(IF(released_at IS NULL, placed_at, NULL)) AS held FROM holds "+
		"WHERE scope IN (?, ?) "+
		"GROUP BY scope, name", string(payout.HoldAll), string(payout.HoldProvider)).Scan(&rows).Error
	var all time.Time
	for _, row := range rows {
		if row.Scope == string(payout.HoldAll) {
			all = mysql.OrZero(row.Held)
		} else {
			v.HeldProviders[row.Name] = mysql.OrZero(row.Held)
		}
	}
	for name, since := range v.HeldProviders {
		v.HeldProviders[name] = observe.Backlog{Oldest: since}.Add(observe.Backlog{Oldest: all}).Oldest
	}
	return err
}

type holdGroup struct {
	Scope payout.HoldScope
	Kind  payout.HoldKind
}

// placedHolds are the holds that are stored, without the derived ones.
var placedHolds = []holdGroup{{payout.HoldAll, payout.HoldStaff}, {payout.HoldProvider, payout.HoldStaff},
	{payout.HoldProvider, payout.HoldRecovery}, {payout.HoldProvider, payout.HoldOtherAccount}, {payout.HoldPacket,
		payout.HoldStaff}, {payout.HoldPacket, payout.HoldRecovery},
	{payout.HoldPacket, payout.HoldChargeReturned}, {payout.HoldPayment, payout.HoldStaff}, {payout.HoldPayment, payout.HoldSecondSuccess}}

// selectHolds counts the releases that were asked for within two times (askedInTime).
const selectHolds = `SELECT scope, kind, COUNT(*) AS n, MIN(placed_at) AS oldest,
	COUNT(IF(release_at > @from AND release_at <= @to, 1, NULL)) AS asked,
	MIN(IF(release_at > @from AND release_at <= @to, release_at, NULL)) AS first_asked
	FROM holds FORCE INDEX (holds_list) WHERE released_at IS NULL GROUP BY scope, kind`

// holds counts the active holds by scope and kind, zeros included, the releases that wait for a
// second person, and the money that is held.
func (r *HealthReader) holds(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []struct {
		Scope              payout.HoldScope
		Kind               payout.HoldKind
		N, Asked           int64
		Oldest, FirstAsked *time.Time
	}
	now, err := r.source.db.Clock(ctx)
	if err != nil {
		return err
	}
	db := r.source.read(ctx)
	asked := map[string]any{"from": now.Add(-mysql.ApprovalLife), "to": now.Add(payout.LongestDelay)}
	if err := db.Raw(selectHolds, asked).Scan(&rows).Error; err != nil {
		return err
	}
	found := map[holdGroup]observe.Backlog{}
	for _, group := range placedHolds {
		found[group] = observe.Backlog{}
	}
	for _, row := range rows {
		found[holdGroup{row.Scope, row.Kind}] = observe.Backlog{Waiting: row.N, Oldest: mysql.OrZero(row.Oldest)}
		v.Releases = v.Releases.Add(observe.Backlog{Waiting: row.Asked, Oldest: mysql.OrZero(row.FirstAsked)})
	}
	for group, b := range found {
		v.Holds = append(v.Holds, observe.HoldBacklog{Scope: string(group.Scope), Kind: string(group.Kind), Backlog: b})
	}
	fen, err := heldFen(db)
	v.HeldFen = int64(fen)
	return err
}

// holdsSummed bounds how many holds of packets and payments, oldest first, are added up.
const holdsSummed = 1000

const selectItemHolds = `SELECT scope, name FROM holds FORCE INDEX (holds_list) WHERE released_at IS NULL AND scope IN ('packet', 'payment')
	ORDER BY placed_at LIMIT ?`

// heldFen is the money that the oldest holds of packets and payments stop. A payment of a held packet
// is part of the packet.
func heldFen(db *gorm.DB) (money.Fen, error) {
	var rows []mysql.HoldRow
	if err := db.Raw(selectItemHolds, holdsSummed).Scan(&rows).Error; err != nil || len(rows) == 0 {
		return 0, err
	}
	held, packets, payments := map[string]bool{}, []string{}, []string{}
	for _, r := range rows {
		if payout.HoldScope(r.Scope) == payout.HoldPayment {
			payments = append(payments, r.Name)
		} else if !held[r.Name] {
			held[r.Name], packets, payments = true, append(packets, r.Name), append(payments, payout.ID(payout.KindCharge, r.Name, 0))
		}
	}
	sum, err := packetsFen(db, packets)
	if err != nil {
		return 0, err
	}
	var due []mysql.PaymentRow
	err = db.Select("kind", "packet_id", "amount").Where("id IN ? AND "+unfinished, payments).Find(&due).Error
	for _, p := range due {
		if !held[p.PacketID] || payout.Kind(p.Kind[0]) == payout.KindCharge {
			sum = sum.Plus(money.Fen(p.Amount))
		}
	}
	return sum, err
}

// selectInPackets adds up what is in packets: not claimed, owed, or being refunded.
const selectInPackets = `SELECT LEAST(COALESCE(SUM(IF(credit IN @in, amount, 0) - CAST(IF(debit IN @in, amount, 0) AS DECIMAL(20))), 0),
	@most) FROM transfers FORCE INDEX (transfers_packet) WHERE packet_id IN @packets`

// packetsFen is the money in packets. What exceeds healthMaxShares shares, the largest packets,
// counts with their totals.
func packetsFen(db *gorm.DB, ids []string) (money.Fen, error) {
	var rows []mysql.PacketRow
	err := db.Select("id", "share_count", "total_amount").Where("id IN ?", ids).Order("share_count").Find(&rows).Error
	if err != nil {
		return 0, err
	}
	var small []string
	var large money.Fen
	shares := 0
	for _, p := range rows {
		if shares += p.ShareCount; shares <= healthMaxShares {
			small = append(small, p.ID)
		} else {
			large = large.Plus(money.Fen(p.TotalAmount))
		}
	}
	var sum int64
	err = db.Raw(selectInPackets, map[string]any{"packets": small, "most": int64(money.Saturated),
		"in": []string{string(payout.AccountHolding), string(payout.AccountOwed), string(payout.AccountRefunding)}}).Scan(&sum).Error
	return large.Plus(money.Fen(sum)), err
}
