package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// holdNames are the names that an action is about; empty ones do not count.
type holdNames struct{ provider, packet, payment string }

// aboutCharge are the names of an action that needs the packet's charge.
func aboutCharge(packetID string) holdNames {
	return holdNames{packet: packetID, payment: payout.ID(payout.KindCharge, packetID, 0)}
}

func (n holdNames) of(scope payout.HoldScope) string {
	switch scope {
	case payout.HoldProvider:
		return n.provider
	case payout.HoldPacket:
		return n.packet
	case payout.HoldPayment:
		return n.payment
	}
	return ""
}

// stopsRow is a row of selectStops: MySQL's state and time, and one active hold, if any.
type stopsRow struct {
	Books mysql.StateRow `gorm:"embedded;embeddedPrefix:b_"`
	Hold  mysql.HoldRow  `gorm:"embedded;embeddedPrefix:h_"`
	// Account is the one of the provider in question; nil before its first start.
	Account *string   `gorm:"column:a_account"`
	Now     time.Time `gorm:"column:read_at"`
}

// selectStops reads everything that may stop an action about holdNames.all.
const selectStops = `SELECT UTC_TIMESTAMP(6) AS read_at,
	b.id AS b_id, b.number AS b_number, b.state AS b_state, b.beat_at AS b_beat_at, b.known AS b_known,
	b.restored_at AS b_restored_at, a.provider_account AS a_account,
	h.id AS h_id, h.scope AS h_scope, h.name AS h_name, h.kind AS h_kind, h.cause AS h_cause, h.reason AS h_reason,
	h.placed_by AS h_placed_by, h.placed_role AS h_placed_role, h.placed_at AS h_placed_at
	FROM books b LEFT JOIN provider_accounts a ON a.provider = ? LEFT JOIN holds h ON h.name IN ? AND h.released_at IS NULL WHERE b.id = 1`

// all are the names of the holds that may stop the action, with that of the holds on everything.
func (n holdNames) all() []string {
	names := []string{""}
	for _, scope := range payout.HoldScopes {
		if name := n.of(scope); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// stops is what one statement shows of everything that may stop an action: the state of MySQL, and
// the first active hold of the widest scope, nil without one. account is that of the provider.
func (tx tx) stops(action payout.HoldAction, on holdNames) (hold *payout.Hold, account string, err error) {
	seen := tx.seen()
	var rows []stopsRow
	if err := tx.Raw(selectStops, on.provider, on.all()).Scan(&rows).Error; err != nil {
		return nil, "", err
	}
	return tx.firstStop(rows, seen, action, on)
}

// firstStop is stops for rows that were read after seen.
func (tx tx) firstStop(rows []stopsRow, seen int64, action payout.HoldAction, on holdNames) (
	hold *payout.Hold, account string, err error) {
	if len(rows) == 0 {
		return nil, "", fmt.Errorf("%w: the row of table books is missing", ErrUnavailable)
	}
	account = mysql.OrEmpty(rows[0].Account)
	state, err := tx.compareRow(rows[0].Books, seen)
	if err != nil {
		return nil, account, err
	}
	if hold = state.Hold(); hold != nil && hold.Stops(action) {
		return hold, account, nil
	}
	slices.SortFunc(rows, func(a, b stopsRow) int { return cmp.Compare(a.Hold.ID, b.Hold.ID) })
	for _, scope := range payout.HoldScopes {
		for _, r := range rows {
			if h := r.Hold.Hold(); h.ID != 0 && h.Scope == scope && h.Name == on.of(scope) && h.Stops(action) {
				return &h, account, nil
			}
		}
	}
	return nil, account, nil
}

// allow refuses an action that a hold stops, with a payout.HeldError, inside the transaction that
// does it.
func (tx tx) allow(action payout.HoldAction, on holdNames) error {
	hold, _, err := tx.stops(action, on)
	if err == nil && hold != nil {
		err = &payout.HeldError{Hold: *hold}
	}
	return err
}

// sendHold returns the hold that stops a send of a payment through an adapter, nil without one. charge is
// that of a refund's packet. The refund of a cancelled payout is held too while the payout's money may
// still move (rule R5: a share is queried with all its order numbers).
func (tx tx) sendHold(p payout.Payment, charge mysql.PaymentRow, by payout.Adapter) (*payout.Hold, error) {
	hold, account, err := tx.stops(payout.ActionSendPayment, holdNames{provider: by.Provider, packet: p.PacketID, payment: p.ID})
	if err == nil {
		err = checkAccount(account, by)
	}
	if hold != nil || err != nil || p.Kind != payout.KindRefund {
		return hold, err
	}
	return tx.refundHold(p.ID, charge)
}

// placeHold stores a hold unless the same cause has placed it before.
func (tx tx) placeHold(h payout.Hold) error {
	return tx.Exec(`INSERT INTO holds (scope, name, kind, cause, reason, placed_by, placed_role, placed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE id = id`, string(h.Scope), h.Name, string(h.Kind), h.Cause, mysql.Clip(h.Reason, 500), h.By, h.Role, tx.now).Error
}

// activeHolds reads the active holds of a name and of everything; lock locks them.
func (tx tx) activeHolds(scope payout.HoldScope, name string, lock bool) ([]payout.Hold, error) {
	var rows []mysql.HoldRow
	err := tx.locking(lock).Where("name IN ? AND released_at IS NULL AND scope IN ?", []string{name, ""},
		[]string{string(scope), string(payout.HoldAll)}).Order("id").Find(&rows).Error
	out := make([]payout.Hold, len(rows))
	for i, r := range rows {
		out[i] = r.Hold()
	}
	return out, err
}

// ProviderState reads whether a hold stops sends to a provider: the first one, but one that needs two
// persons before others. Errors: ErrUnavailable.
func (s *Store) ProviderState(ctx context.Context, name string) (staff.ProviderState, error) {
	state, err := tx{DB: s.read(ctx)}.provider(name, false)
	return state, mysql.Classify(err)
}

func (tx tx) provider(name string, lock bool) (staff.ProviderState, error) {
	state := staff.ProviderState{Name: name}
	held, err := tx.activeHolds(payout.HoldProvider, name, lock)
	if err != nil {
		return state, err
	}
	for i := range held {
		if state.Hold == nil || held[i].OfBalances() {
			state.Hold = &held[i]
		}
	}
	var last struct{ At *time.Time }
	err = tx.Raw("SELECT MAX(released_at) AS at FROM holds WHERE name IN ? AND scope IN ?", []string{name, ""},
		[]string{string(payout.HoldProvider), string(payout.HoldAll)}).Scan(&last).Error
	state.ReleasedAt = mysql.OrZero(last.At)
	return state, err
}

// HoldProvider places or releases the holds of a provider; queries continue. State, audit entry and
// stored answer are one transaction. After its commit no send is recorded; a send recorded before
// may still leave within payout.LeaveWithin. An existing hold keeps its author; both cases are
// audited. The same key and body return the first answer. A hold that two persons have to release
// (ReleaseHold) stays. Errors: payout.HeldError with such a hold, staff.ErrKeyReused, ErrUnavailable.
func (s *Store) HoldProvider(ctx context.Context, w staff.Write, name string, hold bool,
	render staff.ProviderAnswer) (staff.Answer, error) {
	return s.writeHold(ctx, w, func(tx tx) (staff.Answer, error) {
		before, err := tx.provider(name, true)
		if err != nil {
			return staff.Answer{}, err
		}
		action := "release"
		switch {
		case hold:
			action = "hold"
			err = tx.placeHold(staffHold(w, payout.HoldProvider, name))
		case before.Hold != nil && before.Hold.OfBalances():
			err = &payout.HeldError{Hold: *before.Hold}
		case before.Hold != nil:
			err = tx.endHolds(w, "scope = ? AND name = ?", string(payout.HoldProvider), name)
		}
		if err != nil {
			return staff.Answer{}, err
		}
		after, err := tx.provider(name, true)
		if err != nil {
			return staff.Answer{}, err
		}
		if err := tx.audit(w, action, "provider/"+name, holdNote(before.Hold), holdNote(after.Hold)); err != nil {
			return staff.Answer{}, err
		}
		status, body := render(after)
		return staff.Answer{Status: status, Body: body}, nil
	})
}

// writeHold is a staff write about a hold.
func (s *Store) writeHold(ctx context.Context, w staff.Write, fn func(tx tx) (staff.Answer, error)) (staff.Answer,
	error) {
	return s.staffWrite(ctx, failpoint.ProviderHold, w, fn)
}

// staffHold is a hold that a person places. Its cause is empty while it is active: one at a time.
func staffHold(w staff.Write, scope payout.HoldScope, name string) payout.Hold {
	return payout.Hold{Scope: scope, Name: name, Kind: payout.HoldStaff, Reason: w.Reason, By: w.Owner, Role: w.Role}
}

// endHolds releases the active holds of a condition. A hold of staff gets its id as cause, so that
// another one can be placed.
func (tx tx) endHolds(w staff.Write, where string, args ...any) error {
	return tx.Exec("UPDATE holds SET released_by = ?, released_at = ?, cause = IF(kind = ?, id, cause) WHERE released_at IS NULL AND "+where,
		append([]any{w.Owner, tx.now, string(payout.HoldStaff)}, args...)...).Error
}

// holdNote is the audit's copy of a hold; nil: not held.
func holdNote(h *payout.Hold) map[string]any {
	note := map[string]any{"held": h != nil && h.ReleasedAt.IsZero()}
	if h != nil {
		note["by"], note["reason"], note["since"], note["kind"] = h.By, h.Reason, h.Since, string(h.Kind)
		if h.Release != nil {
			note["release_by"] = h.Release.By
		}
	}
	return note
}

// Holds lists holds, newest first. Errors: ErrUnavailable.
func (s *Store) Holds(ctx context.Context, f staff.HoldFilter) ([]payout.Hold, error) {
	index := "PRIMARY" // the list's order; most holds are released
	switch {
	case f.Name != "":
		index = "holds_active" // a name has few
	case f.Active != nil && *f.Active:
		index = "holds_list"
	}
	q := s.read(ctx).Table("holds FORCE INDEX (" + index + ")")
	if f.Active != nil && *f.Active {
		q = q.Where("released_at IS NULL")
	} else if f.Active != nil {
		q = q.Where("released_at IS NOT NULL")
	}
	if f.Scope != "" {
		q = q.Where("scope = ?", string(f.Scope))
	}
	if f.Name != "" {
		q = q.Where("name = ?", f.Name)
	}
	if f.Kind != "" {
		q = q.Where("kind = ?", string(f.Kind))
	}
	if f.NotBy != "" {
		names, err := mysql.NamesOf(s.read(ctx), f.NotBy)
		if err != nil {
			return nil, err
		}
		now, err := s.Clock(ctx)
		if err != nil {
			return nil, err
		}
		q = q.Where("(release_at IS NULL OR release_at <= ? OR release_at > ? OR release_by NOT IN ?)", now.Add(-mysql.ApprovalLife),
			now.Add(payout.LongestDelay), names)
	}
	if f.AfterID != 0 {
		q = q.Where("id < ?", f.AfterID)
	}
	var rows []mysql.HoldRow
	err := q.Order("id DESC").Limit(f.Limit).Find(&rows).Error
	out := make([]payout.Hold, len(rows))
	for i, r := range rows {
		out[i] = r.Hold()
	}
	return out, mysql.Classify(err)
}

// PlaceHold places a hold of staff. An active one of the same name stays with its author. Audited;
// the same key and body return the first answer. Errors: payout.ErrMySQLRestored,
// staff.ErrKeyReused, ErrUnavailable.
func (s *Store) PlaceHold(ctx context.Context, w staff.Write, scope payout.HoldScope, name string, render staff.HoldAnswer) (
	staff.Answer, error) {
	return s.writeHold(ctx, w, func(tx tx) (out staff.Answer, err error) {
		before, err := tx.staffHoldOn(scope, name)
		if err != nil {
			return out, err
		}
		if err := tx.placeHold(staffHold(w, scope, name)); err != nil {
			return out, err
		}
		found, err := tx.staffHoldOn(scope, name)
		if err != nil {
			return out, err
		}
		placed := *found
		if err := tx.audit(w, "hold", holdSubject(placed), holdNote(before), holdNote(&placed)); err != nil {
			return out, err
		}
		releases, err := tx.releases(placed)
		if err != nil {
			return out, err
		}
		out.Status, out.Body = render(placed, releases)
		return out, nil
	})
}

// staffHoldOn locks and reads the active hold of staff on a name; nil without one.
func (tx tx) staffHoldOn(scope payout.HoldScope, name string) (*payout.Hold, error) {
	var row mysql.HoldRow
	err := tx.locking(true).Where("scope = ? AND name = ? AND kind = ? AND cause = ''", string(scope), name, string(payout.HoldStaff)).
		Limit(1).Find(&row).Error
	if err != nil || row.ID == 0 {
		return nil, err
	}
	h := row.Hold()
	return &h, nil
}

func holdSubject(h payout.Hold) string { return "hold/" + strconv.FormatInt(h.ID, 10) }

// Hold returns a hold and what its release lets go. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Hold(ctx context.Context, id int64) (payout.Hold, staff.Releases, error) {
	t := tx{DB: s.read(ctx)}
	h, err := t.hold(id, false)
	if err != nil {
		return h, staff.Releases{}, mysql.Classify(err)
	}
	releases, err := t.releases(h)
	return h, releases, mysql.Classify(err)
}

func (tx tx) hold(id int64, lock bool) (payout.Hold, error) {
	var row mysql.HoldRow
	err := tx.locking(lock).Where("id = ?", id).Limit(1).Find(&row).Error
	if err == nil && row.ID == 0 {
		err = fmt.Errorf("hold %d: %w", id, ErrNotFound)
	}
	return row.Hold(), err
}

// PacketsToEnd lists open packets whose grabs have to end: their charge was returned, whether their hold is still
// active or not, or a recovery holds them. Errors: ErrUnavailable.
func (s *Store) PacketsToEnd(ctx context.Context) ([]string, error) {
	var ids []string
	// raw: UNION
	err := s.read(ctx).Raw(`SELECT k.id FROM payments p JOIN packets k ON k.id = p.packet_id AND k.status = 'open'
		WHERE p.kind = 'c' AND p.status = 'returned' UNION SELECT k.id FROM holds h JOIN packets k ON k.id = h.name AND k.status = 'open'
		WHERE h.released_at IS NULL AND h.scope = ? AND h.kind = ? LIMIT ?`, string(payout.HoldPacket), string(payout.HoldRecovery),
		endedAtOnce).Scan(&ids).Error
	return ids, mysql.Classify(err)
}

// endedAtOnce bounds the packets that one round of the watch closes for grabs.
const endedAtOnce = 1000

// heldByRecovery returns those of the packets that a recovery holds. Their pools are rebuilt without knowing who has won: no
// grab may be decided by it.
func (s *Store) heldByRecovery(ctx context.Context, packets []string) (map[string]bool, error) {
	var held []string
	err := s.read(ctx).Model(&mysql.HoldRow{}).Where("name IN ? AND released_at IS NULL AND scope = ? AND kind = ?", packets,
		string(payout.HoldPacket), string(payout.HoldRecovery)).Pluck("name", &held).Error
	out := map[string]bool{}
	for _, id := range held {
		out[id] = true
	}
	return out, mysql.Classify(err)
}

// WaitingToSend returns open payments of a provider whose next step is a send, oldest first: those
// that an ended hold deferred. Errors: ErrUnavailable.
func (s *Store) WaitingToSend(ctx context.Context, provider string, limit int) ([]payout.Payment, error) {
	var rows []mysql.PaymentRow
	err := s.read(ctx).Raw(`SELECT p.* FROM payments p LEFT JOIN attempts a ON a.order_no = p.order_no
		WHERE p.kind IN ('c', 'p', 'r', 'h') AND p.status IN ('pending', 'sending', 'unknown') AND p.provider = ?
		AND (p.status = 'pending' OR a.next_action = 'send') ORDER BY p.created_at LIMIT ?`, provider, limit).Scan(&rows).Error
	out := make([]payout.Payment, len(rows))
	for i, r := range rows {
		out[i] = r.Payment()
	}
	return out, mysql.Classify(err)
}
