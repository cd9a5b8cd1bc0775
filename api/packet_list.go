package api

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// A status such as scheduled is in no column. Candidates are read in steps, with a limit per
// request; then the page ends early and its cursor continues.
const (
	lookStep = 250
	lookMost = 2_000
)

// packetFilter selects packets; zero members select all.
type packetFilter struct {
	app      string // "": all apps, for staff
	sender   string
	status   packet.Status
	from, to time.Time // created in [from, to); zero: no bound
	overdue  time.Time // expired before this time and not closed; zero: no filter
	// books: while Redis is unavailable or a lane is closed, packets are listed as stored in
	// MySQL. Staff only: staff needs the list most at such times, while an app must not miss a
	// claim just won.
	books bool
}

// stored returns the stored statuses that a packet of the filter may have, in the order of the
// state machine; nil: any.
func (f packetFilter) stored() []packet.Status {
	switch f.status {
	case "":
		if !f.overdue.IsZero() {
			return []packet.Status{packet.StatusFunding, packet.StatusOpen, packet.StatusClosing}
		}
		return nil
	case packet.StatusScheduled, packet.StatusOpen, packet.StatusSoldOut, packet.StatusClosing:
		return []packet.Status{packet.StatusOpen, packet.StatusClosing} // Redis decides which, and may be ahead
	}
	return []packet.Status{f.status}
}

// records returns the filter of the rows: up to n, after a position.
func (f packetFilter) records(after packet.Cursor, n int) packet.RecordFilter {
	return packet.RecordFilter{App: f.app, SenderID: f.sender, Stored: f.stored(), From: f.from, To: f.to, ExpiresBefore: f.overdue,
		AfterTime: after.At, AfterID: after.ID, Limit: n}
}

// derived reports whether rows alone cannot decide the filter's status.
func (f packetFilter) derived() bool { return len(f.stored()) > 1 }

// staged reports whether packets that are only in Redis can match the filter.
func (f packetFilter) staged() bool {
	return f.overdue.IsZero() && (f.status == "" || f.status == packet.StatusFunding)
}

func (f packetFilter) passes(s packet.Status) bool {
	return (f.status == "" || f.status == s) && (f.overdue.IsZero() || !final(s))
}

// packets is the list of the packets of the calling app.
func (s *Server) packets() rest.Listing[wire.PacketFilter, wire.Packet] {
	return rest.Listing[wire.PacketFilter, wire.Packet]{Name: "packets", ID: "packet",
		Read: func(ctx context.Context, a rest.Selection[wire.PacketFilter]) ([]wire.Packet, *rest.Position, error) {
			return pageOfPackets(s, ctx, a, packetFilter{app: a.Caller.App.ID, sender: a.Filter.SenderID, status: packet.Status(a.Filter.Status)},
				s.render)
		}}
}

// sentPackets is the list of the packets that a user sent.
func (s *Server) sentPackets() rest.Listing[wire.UserPacketFilter, wire.Packet] {
	return rest.Listing[wire.UserPacketFilter, wire.Packet]{Name: "sent packets", ID: "packet",
		Read: func(ctx context.Context, a rest.Selection[wire.UserPacketFilter]) ([]wire.Packet, *rest.Position, error) {
			return pageOfPackets(s, ctx, a, packetFilter{app: a.Caller.App.ID, sender: a.Within, status: packet.Status(a.Filter.Status)}, s.render)
		}}
}

// pageOfPackets reads a page of packets and renders them.
func pageOfPackets[F, I any](s *Server, ctx context.Context, a rest.Selection[F], f packetFilter, render func(snapshot) (I,
	error)) (items []I,
	next *rest.Position, err error) {
	found, next, err := s.packetsAfter(ctx, f, a.After.Cursor(), a.Limit)
	if err != nil {
		return nil, nil, err
	}
	items = make([]I, len(found))
	for i, snap := range found {
		if items[i], err = render(snap); err != nil {
			return nil, nil, err
		}
	}
	return items, next, nil
}

// packetsAfter returns a page of packets and the position of the next page; nil: no more.
func (s *Server) packetsAfter(ctx context.Context, f packetFilter, after packet.Cursor, limit int) (page []snapshot, next *rest.Position,
	err error) {
	if !f.overdue.IsZero() && final(f.status) {
		return nil, nil, nil // closed packets are never overdue
	}
	step := limit + 1
	if f.derived() {
		step = max(step, lookStep)
	}
	for looked := 0; looked < lookMost; looked += step {
		some, end, err := s.packetStep(ctx, f, after, step)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range some {
			if c.known && f.passes(c.status) {
				if len(page) == limit {
					return page, &rest.Position{At: after.At, ID: after.ID}, nil
				}
				page = append(page, c.snapshot)
			}
			after = c.at
		}
		if end {
			return page, nil, nil
		}
	}
	return page, &rest.Position{At: after.At, ID: after.ID}, nil
}

// candidate is a packet that may belong to a list.
type candidate struct {
	snapshot
	at    packet.Cursor
	known bool // snapshot is set; false: the packet does not exist
}

// packetStep reads up to n candidates of a filter. They are in MySQL, staged in Redis, or
// both. Staged ones are read first, because a packet leaves that list only after its row was
// written. end: there are no more.
func (s *Server) packetStep(ctx context.Context, f packetFilter, after packet.Cursor, n int) (some []candidate, end bool, err error) {
	var staged []packet.Cursor
	if f.staged() {
		if staged, err = s.staged(ctx, f, after, n); err != nil && !(f.books && errors.Is(err, packet.ErrUnavailable)) {
			return nil, false, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	rows, err := s.cfg.Store.Packets(limited, f.records(after, n))
	if err != nil {
		return nil, false, err
	}
	byID := make(map[string]packet.Record, len(rows))
	places := staged
	for _, rec := range rows {
		byID[rec.ID] = rec
		places = append(places, packet.Cursor{At: rec.CreatedAt, ID: rec.ID})
	}
	slices.SortFunc(places, packet.Cursor.Compare)
	places = slices.CompactFunc(places, func(a, b packet.Cursor) bool { return a.ID == b.ID })
	end = len(staged) < n && len(rows) < n && len(places) <= n
	some, err = s.candidates(ctx, places[:min(n, len(places))], byID, f.books)
	return some, end, err
}

// staged lists packets of a filter that are only in Redis, of one app or of all. A packet
// created before the filter's range ends the list.
func (s *Server) staged(ctx context.Context, f packetFilter, after packet.Cursor, n int) ([]packet.Cursor, error) {
	apps := []string{f.app}
	if f.app == "" {
		apps = s.dir.apps()
	}
	all, err := s.cfg.Pool.Staged(ctx, apps, f.sender, after, n)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(at packet.Cursor) bool { return at.At.Before(f.from) }); i >= 0 {
		all = all[:i]
	}
	return all, nil
}

// candidates reads the current state of packets. A final row is authoritative; for others
// Redis is, or MySQL where Redis is unavailable (books).
func (s *Server) candidates(ctx context.Context, places []packet.Cursor, rows map[string]packet.Record, books bool) ([]candidate, error) {
	var recorded, staged []string
	for _, at := range places {
		_, open := s.cfg.Fence(at.ID)
		switch rec, ok := rows[at.ID]; {
		case final(rec.Stored), !open && books:
		case ok:
			recorded = append(recorded, at.ID)
		default:
			staged = append(staged, at.ID)
		}
	}
	views, err := s.pools(ctx, recorded, staged, rows)
	if books && errors.Is(err, packet.ErrUnavailable) {
		recorded, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]candidate, len(places))
	for i, at := range places {
		rec, known := rows[at.ID]
		view, pooled := views[at.ID]
		c := candidate{at: at, known: true}
		switch {
		case final(rec.Stored), books && known && !slices.Contains(recorded, at.ID):
			c.snapshot = ofRecord(rec, s.cfg.Now())
		case pooled && !view.Retired && view.State == packet.PoolClosing && known:
			c.snapshot = merge(view, rec)
		case pooled && !view.Retired && !(known && view.State == packet.PoolRejected):
			c.snapshot = ofView(view)
		default: // its status changed since, or its pool is lost
			c.snapshot, err = s.find(ctx, at.ID)
			if refused, ok := errors.AsType[*rest.Refusal](err); ok && refused.Code == wire.CodePacketNotFound {
				c.known, err = false, nil
			}
			if err != nil {
				return nil, err
			}
		}
		if known {
			c.stored = rec.Stored
		}
		out[i] = c
	}
	return out, nil
}

// pools reads packets in Redis: of recorded ones only what changes there.
func (s *Server) pools(ctx context.Context, recorded, staged []string, rows map[string]packet.Record) (map[string]packet.PoolView, error) {
	views, err := s.cfg.Pool.Progress(ctx, recorded)
	if err != nil {
		return nil, err
	}
	for id, view := range views {
		view.Now, view.Packet, view.First = s.cfg.Now(), rows[id].Packet, rows[id].First
		views[id] = view
	}
	full, err := s.cfg.Pool.Views(ctx, staged)
	maps.Copy(views, full)
	return views, err
}

// final reports whether a row in this status is complete for its packet.
func final(stored packet.Status) bool {
	return stored == packet.StatusClosed || stored == packet.StatusRejected
}
