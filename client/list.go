package client

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"hongbao/wire"
)

// maxPage is the largest page of the API, used by iterators.
const maxPage = 200

// Page selects one page of a list. The zero value is the first page with the default size.
type Page struct {
	Limit  int    // 1 to 200; 0: 50
	Cursor string // NextCursor of the previous page
}

// page fetches one page.
func page[T any](ctx context.Context, c *caller, path string, filter any, p Page) (*wire.List[T], error) {
	query := queryOf(filter)
	if p.Limit != 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		query.Set("cursor", p.Cursor)
	}
	return get[wire.List[T]](ctx, c, path, query)
}

// each iterates over a list and fetches pages as needed. An error is yielded last, with a nil
// item.
func each[T any](ctx context.Context, c *caller, path string, filter any) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for p := (Page{Limit: maxPage}); ; {
			list, err := page[T](ctx, c, path, filter, p)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range list.Items {
				if !yield(&list.Items[i], nil) {
					return
				}
			}
			switch {
			case list.NextCursor == nil:
				return
			case *list.NextCursor == p.Cursor || *list.NextCursor == "":
				yield(nil, fmt.Errorf("%w: %s returned the same cursor %q again", ErrAnswer, path, p.Cursor))
				return
			}
			p.Cursor = *list.NextCursor
		}
	}
}

// ListPackets returns one page of the app's packets.
func (c *Client) ListPackets(ctx context.Context, f wire.PacketFilter, p Page) (*wire.List[wire.Packet], error) {
	return page[wire.Packet](ctx, c.caller, wire.PathPackets, f, p)
}

// Packets iterates over the app's packets, newest first.
func (c *Client) Packets(ctx context.Context, f wire.PacketFilter) iter.Seq2[*wire.Packet, error] {
	return each[wire.Packet](ctx, c.caller, wire.PathPackets, f)
}

// ListGrabs returns one page of the claims of a packet.
func (c *Client) ListGrabs(ctx context.Context, packetID string, p Page) (*wire.List[wire.Claim], error) {
	return page[wire.Claim](ctx, c.caller, grabs(packetID), nil, p)
}

// Grabs iterates over the claims of a packet, newest first.
func (c *Client) Grabs(ctx context.Context, packetID string) iter.Seq2[*wire.Claim, error] {
	return each[wire.Claim](ctx, c.caller, grabs(packetID), nil)
}

func user(id, what string) string { return wire.PathUsers + "/" + segment(id) + "/" + what }

// ListUserClaims returns one page of the claims of a user.
func (c *Client) ListUserClaims(ctx context.Context, userID string, p Page) (*wire.List[wire.UserClaim], error) {
	return page[wire.UserClaim](ctx, c.caller, user(userID, "claims"), nil, p)
}

// UserClaims iterates over the claims of a user, newest first.
func (c *Client) UserClaims(ctx context.Context, userID string) iter.Seq2[*wire.UserClaim, error] {
	return each[wire.UserClaim](ctx, c.caller, user(userID, "claims"), nil)
}

// ListUserPackets returns one page of the packets that a user sent.
func (c *Client) ListUserPackets(ctx context.Context, userID string, p Page) (*wire.List[wire.Packet], error) {
	return page[wire.Packet](ctx, c.caller, user(userID, "packets"), nil, p)
}

// UserPackets iterates over the packets that a user sent, newest first.
func (c *Client) UserPackets(ctx context.Context, userID string) iter.Seq2[*wire.Packet, error] {
	return each[wire.Packet](ctx, c.caller, user(userID, "packets"), nil)
}

// UserSummary returns one year of a user, counted in the time zone. The zone needs an IANA
// name, as from time.LoadLocation, not time.Local. 0 and nil select the API's defaults.
func (c *Client) UserSummary(ctx context.Context, userID string, year int, zone *time.Location) (*wire.Summary, error) {
	period := wire.SummaryPeriod{Year: year}
	if zone != nil {
		period.TZ = zone.String()
	}
	return get[wire.Summary](ctx, c.caller, user(userID, "summary"), period)
}
