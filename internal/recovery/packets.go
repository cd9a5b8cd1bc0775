package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
)

// candidates returns the packets that may have changed without MySQL knowing it. These are
// unfinished ones, and those with an unfinished payment or an unbooked movement. Packets and
// claims that only Redis or Temporal has count too.
func (r *Recovery) candidates(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	for id := range r.statementLines {
		found[id] = true
	}
	for _, find := range []func(context.Context, map[string]bool) error{
		r.addUnfinished, r.addWaiting, r.addInRedis, r.addStarted, r.addClaimed,
	} {
		if err := find(ctx, found); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func (r *Recovery) addUnfinished(ctx context.Context, found map[string]bool) error {
	for _, status := range reconcile.UnfinishedStatuses {
		err := reconcile.UnfinishedPackets(r.Store, status, recoverPage).Each(ctx, func(page []packet.UnfinishedPacket) error {
			for _, u := range page {
				found[u.ID] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Recovery) addWaiting(ctx context.Context, found map[string]bool) error {
	lists, err := r.Store.WaitingLists(ctx)
	if err != nil {
		return err
	}
	for _, of := range lists {
		if of.Kind == payout.KindCharge && !of.Status.Open() {
			continue // a declined charge is final
		}
		err := reconcile.WaitingPayments(r.Store, of, recoverPage).Each(ctx, func(page []payout.OpenPayment) error {
			for _, w := range page {
				found[w.PacketID] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addInRedis adds the packets of Redis that MySQL lacks.
func (r *Recovery) addInRedis(ctx context.Context, found map[string]bool) error {
	for lane := range r.Lanes {
		if err := r.eachRemaining(ctx, lane, func(ids []string) error { return r.addUnknown(ctx, ids, found) }); err != nil {
			return err
		}
	}
	return nil
}

// addStarted adds the packets with a run that MySQL lacks.
func (r *Recovery) addStarted(ctx context.Context, found map[string]bool) error {
	ids, err := r.Starter.PacketsSince(ctx, r.since)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, recoverPage) {
		if err := r.addUnknown(ctx, some, found); err != nil {
			return err
		}
	}
	return nil
}

// addClaimed adds the packets with a claim that Temporal got since the backup and MySQL lacks. If
// the packet had ended before, that is a share conflict.
func (r *Recovery) addClaimed(ctx context.Context, found map[string]bool) error {
	winners, err := r.Starter.WinnersSince(ctx, r.since)
	if err != nil {
		return err
	}
	for id, users := range winners {
		for some := range slices.Chunk(users, compareUsers) {
			if found[id] {
				break
			}
			have, err := r.Store.RecordedUsers(ctx, id, some)
			if err != nil {
				return err
			}
			found[id] = slices.ContainsFunc(some, func(user string) bool { return !have[user] })
		}
		if !found[id] {
			delete(found, id)
		}
	}
	return nil
}

func (r *Recovery) addUnknown(ctx context.Context, ids []string, found map[string]bool) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := r.Store.PacketStates(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := rows[id]; !ok {
			found[id] = true
		}
	}
	return nil
}

// ensureRow ensures that MySQL has a packet. It reports false for a packet that no store has.
func (r *Recovery) ensureRow(ctx context.Context, id string) (packet.Record, bool, error) {
	rec, err := r.Store.Packet(ctx, id)
	if !errors.Is(err, packet.ErrNotFound) {
		return rec, err == nil, err
	}
	p, found, err := r.lostPacket(ctx, id)
	if err != nil {
		return rec, false, err
	}
	if !found {
		if _, moved := r.statementLines[id]; moved {
			return rec, false, r.leaveToStaff(ctx, id, payout.ID(payout.KindCharge, id, 0),
				"the provider moved money for it, and neither Redis nor Temporal has the packet")
		}
		return rec, false, nil
	}
	if err := r.recordLost(ctx, p); err != nil {
		return rec, false, err
	}
	r.updateReport(func(v *Report) { v.Made++ })
	rec, err = r.Store.Packet(ctx, id)
	return rec, err == nil, err
}

// recordLost records a packet with its list of eligible users. If Redis does not have the whole
// list, it is lost and the row says so, because without it every user could grab.
func (r *Recovery) recordLost(ctx context.Context, p packet.Packet) error {
	sealed, err := packet.SealedSeed(r.SeedKey, p)
	if err != nil {
		return err
	}
	var eligible []string
	if p.EligibleCount > 0 {
		if eligible, err = r.Pools.EligibleUnfenced(ctx, p.ID); err != nil {
			return err
		}
		if len(eligible) != p.EligibleCount {
			r.Logger.WarnContext(ctx, "List of eligible users lost; closing the packet.", slog.String("packet_id", p.ID),
				slog.Int("eligible_count", p.EligibleCount), slog.Int("found", len(eligible)))
			eligible = nil
		}
	}
	_, err = r.Store.RecordPacket(ctx, p, sealed, eligible)
	return err
}

// lostPacket finds a packet that MySQL lacks, in Redis or as the input of its run.
func (r *Recovery) lostPacket(ctx context.Context, id string) (p packet.Packet, found bool, err error) {
	view, err := r.readPool(ctx, id)
	switch {
	case err == nil && !view.Retired:
		return view.Packet, true, nil
	case err != nil && !errors.Is(err, packet.ErrNotFound):
		return p, false, err
	}
	return r.Starter.PacketOf(ctx, id)
}

// writeShares writes the shares of a packet whose charge was found paid.
func (r *Recovery) writeShares(ctx context.Context, rec packet.Record) error {
	seed, err := packet.OpenSeed(r.SeedKey, rec.ID, rec.SealedSeed)
	if err != nil {
		return err
	}
	shares, err := packet.Split(seed, rec.SplitParams())
	if err != nil {
		return err
	}
	_, err = r.Store.RecoverFund(ctx, rec.ID, shares)
	return err
}

// readPool returns a packet from Redis, whatever the state of its lane's fence.
func (r *Recovery) readPool(ctx context.Context, id string) (packet.PoolView, error) {
	views, err := r.Pools.ViewsUnfenced(ctx, []string{id})
	if err != nil {
		return packet.PoolView{}, err
	}
	v, found := views[id]
	if !found {
		return v, fmt.Errorf("packet %s in Redis: %w", id, packet.ErrNotFound)
	}
	return v, nil
}
