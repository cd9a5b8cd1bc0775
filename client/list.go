package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hongbao/internal/money"
)

// maxPage is the largest page of the API, used by iterators.
const maxPage = 200

// Page selects one page of a list. The zero value is the first page with the default size.
type Page struct {
	Limit  int    // 1 to 200; 0: 50
	Cursor string // NextCursor of the previous page
}

// List is one page of a list, newest first.
type List[T any] struct {
	Items []T `json:"items"`
	// NextCursor is the cursor of the next page; nil on the last page.
	NextCursor *string `json:"next_cursor"`

	// Raw is the page as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (l *List[T]) UnmarshalJSON(text []byte) error {
	type plain List[T]
	l.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(l))
}

// page fetches one page.
func page[T any](ctx context.Context, c *caller, path string, filter url.Values, p Page) (*List[T], error) {
	query := maps.Clone(filter)
	if query == nil {
		query = url.Values{}
	}
	if p.Limit != 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		query.Set("cursor", p.Cursor)
	}
	list := new(List[T])
	if err := c.do(ctx, call{method: http.MethodGet, path: path, query: query}, list); err != nil {
		return nil, err
	}
	return list, nil
}

// each iterates over a list and fetches pages as needed. An error is yielded last, with a nil
// item.
func each[T any](ctx context.Context, c *caller, path string, filter url.Values) iter.Seq2[*T, error] {
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

// PacketFilter filters the list of packets; zero members do not filter.
type PacketFilter struct {
	SenderID string
	Status   Status
}

func (f PacketFilter) values() url.Values {
	v := url.Values{}
	put(v, "sender_id", f.SenderID)
	put(v, "status", string(f.Status))
	return v
}

func put(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// ListPackets returns one page of the app's packets.
func (c *Client) ListPackets(ctx context.Context, f PacketFilter, p Page) (*List[Packet], error) {
	return page[Packet](ctx, c.caller, "/v1/packets", f.values(), p)
}

// Packets iterates over the app's packets, newest first.
func (c *Client) Packets(ctx context.Context, f PacketFilter) iter.Seq2[*Packet, error] {
	return each[Packet](ctx, c.caller, "/v1/packets", f.values())
}

// ListGrabs returns one page of the claims of a packet.
func (c *Client) ListGrabs(ctx context.Context, packetID string, p Page) (*List[Claim], error) {
	return page[Claim](ctx, c.caller, grabs(packetID), nil, p)
}

// Grabs iterates over the claims of a packet, newest first.
func (c *Client) Grabs(ctx context.Context, packetID string) iter.Seq2[*Claim, error] {
	return each[Claim](ctx, c.caller, grabs(packetID), nil)
}

func user(id, what string) string { return "/v1/users/" + segment(id) + "/" + what }

// ListUserClaims returns one page of the claims of a user.
func (c *Client) ListUserClaims(ctx context.Context, userID string, p Page) (*List[UserClaim], error) {
	return page[UserClaim](ctx, c.caller, user(userID, "claims"), nil, p)
}

// UserClaims iterates over the claims of a user, newest first.
func (c *Client) UserClaims(ctx context.Context, userID string) iter.Seq2[*UserClaim, error] {
	return each[UserClaim](ctx, c.caller, user(userID, "claims"), nil)
}

// ListUserPackets returns one page of the packets that a user sent.
func (c *Client) ListUserPackets(ctx context.Context, userID string, p Page) (*List[Packet], error) {
	return page[Packet](ctx, c.caller, user(userID, "packets"), nil, p)
}

// UserPackets iterates over the packets that a user sent, newest first.
func (c *Client) UserPackets(ctx context.Context, userID string) iter.Seq2[*Packet, error] {
	return each[Packet](ctx, c.caller, user(userID, "packets"), nil)
}

// Summary is one year of a user.
type Summary struct {
	UserID   string   `json:"user_id"`
	Year     int      `json:"year"`
	TZ       string   `json:"tz"`
	Sent     Sent     `json:"sent"`
	Received Received `json:"received"`

	// Raw is the summary as received.
	Raw json.RawMessage `json:"-"`
}

// Sent is the count and sum of the packets that a user sent.
type Sent struct {
	Count  int       `json:"count"`
	Amount money.Fen `json:"amount"`
}

// Received is the count and sum of the claims of a user.
type Received struct {
	Count    int       `json:"count"`
	Amount   money.Fen `json:"amount"`
	BestLuck int       `json:"best_luck"` // how many of them had the best luck
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (s *Summary) UnmarshalJSON(text []byte) error {
	type plain Summary
	s.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(s))
}

// UserSummary returns one year of a user, counted in the time zone. The zone needs an IANA
// name, as from time.LoadLocation, not time.Local. 0 and nil select the API's defaults.
func (c *Client) UserSummary(ctx context.Context, userID string, year int, zone *time.Location) (*Summary, error) {
	query := url.Values{}
	if year != 0 {
		query.Set("year", strconv.Itoa(year))
	}
	if zone != nil {
		query.Set("tz", zone.String())
	}
	s := new(Summary)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: user(userID, "summary"), query: query}, s); err != nil {
		return nil, err
	}
	return s, nil
}
