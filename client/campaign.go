package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/internal/money"
)

// CampaignStatus is how a campaign is doing.
type CampaignStatus string

// The statuses of campaigns.
const (
	CampaignActive CampaignStatus = "active" // a packet is made for every day
	CampaignPaused CampaignStatus = "paused" // days pass without packets
	CampaignEnded  CampaignStatus = "ended"  // final
)

// CampaignDayStatus is what became of one day of a campaign.
type CampaignDayStatus string

// What can become of a day. One that passed during a pause has none.
const (
	CampaignDayMaking CampaignDayStatus = "making" // the packet is being created, also when the campaign is paused or ended meanwhile
	CampaignDayMade   CampaignDayStatus = "made"   // the packet was created; Packet tells whether its sender was charged
	CampaignDayMissed CampaignDayStatus = "missed" // nothing could be created until it would have expired
)

// CampaignRequest is a packet that is wanted every day. Members left at zero have the
// API's defaults.
type CampaignRequest struct {
	// IdempotencyKey names this create, as that of CreateRequest does: a key that you
	// have stored makes no second campaign after any crash. "": CreateCampaign makes
	// one for its own tries. Keys of packets are apart from those of campaigns.
	IdempotencyKey string `json:"-"`

	Name         string         `json:"name"`                       // for people: 1 to 64 characters
	TimeZone     string         `json:"time_zone,omitempty"`        // IANA name; "": Asia/Shanghai
	OpensDailyAt string         `json:"opens_daily_at"`             // HH:MM, 00:00 to 23:59, in TimeZone
	StartsOn     string         `json:"starts_on,omitempty"`        // YYYY-MM-DD; "": the first day whose packet opens from now on
	OneWin       bool           `json:"one_win_per_user,omitempty"` // a user wins in one of its packets at most
	EndsOn       string         `json:"ends_on,omitempty"`          // YYYY-MM-DD, that day included; "": it goes on until it is ended
	Packet       CampaignPacket `json:"packet"`
}

// CampaignPacket is what the packet of every day is to be like: a CreateRequest that
// opens when its campaign says. Amounts are of one packet, in fen.
type CampaignPacket struct {
	SenderID         string            `json:"sender_id"` // charged for each packet
	TotalAmount      money.Fen         `json:"total_amount"`
	ShareCount       int               `json:"share_count"`
	Split            Split             `json:"split,omitempty"`
	MinShare         money.Fen         `json:"min_share,omitempty"`
	MaxShare         money.Fen         `json:"max_share,omitempty"` // 0: no cap
	Currency         string            `json:"currency,omitempty"`
	Greeting         string            `json:"greeting,omitempty"`
	ExpiresInSeconds int               `json:"expires_in_seconds,omitempty"` // from the opening on
	EligibleUserIDs  []string          `json:"eligible_user_ids,omitempty"`  // none: everybody
	Tickets          bool              `json:"tickets,omitempty"`            // whoever grabs brings one of the app; without EligibleUserIDs
	GroupID          string            `json:"group_id,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
}

// Campaign is a campaign as the API tells it. It holds no money: its packets do, once
// they are made.
type Campaign struct {
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Status       CampaignStatus   `json:"status"`
	TimeZone     string           `json:"time_zone"`        // IANA name, of OpensDailyAt, StartsOn and EndsOn
	OpensDailyAt string           `json:"opens_daily_at"`   // HH:MM
	StartsOn     string           `json:"starts_on"`        // YYYY-MM-DD
	OneWin       bool             `json:"one_win_per_user"` // a user wins in one of its packets at most
	EndsOn       *string          `json:"ends_on"`          // YYYY-MM-DD, that day included; nil: none
	NextOpensAt  *time.Time       `json:"next_opens_at"`    // of the next packet that is not made yet; nil: there is none
	Packet       CampaignTemplate `json:"packet"`
	CreatedAt    time.Time        `json:"created_at"`
	EndedAt      *time.Time       `json:"ended_at"` // set when ended
	Schedule     Schedule         `json:"schedule"`

	// Raw is the campaign as it came, members this version does not know included.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *Campaign) UnmarshalJSON(text []byte) error {
	type plain Campaign
	c.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(c))
}

// CampaignTemplate is what the packets of a campaign have in common, defaults filled in.
// Amounts are of one packet, in fen.
type CampaignTemplate struct {
	SenderID         string            `json:"sender_id"`
	Currency         string            `json:"currency"`
	TotalAmount      money.Fen         `json:"total_amount"`
	ShareCount       int               `json:"share_count"`
	Split            Split             `json:"split"`
	MinShare         money.Fen         `json:"min_share"`
	MaxShare         *money.Fen        `json:"max_share"` // nil: no cap
	Greeting         string            `json:"greeting"`
	ExpiresInSeconds int               `json:"expires_in_seconds"` // from the opening on
	EligibleCount    int               `json:"eligible_count"`     // how many may grab; 0: everybody
	Tickets          bool              `json:"tickets"`            // whoever grabs brings one
	GroupID          *string           `json:"group_id"`
	Metadata         map[string]string `json:"metadata"`
}

// Schedule names the schedule that looks after a campaign.
type Schedule struct {
	ID string `json:"id"`
}

// CampaignDay is what became of one day.
type CampaignDay struct {
	Day       string            `json:"day"` // YYYY-MM-DD, in the time zone of the campaign
	Status    CampaignDayStatus `json:"status"`
	PacketID  *string           `json:"packet_id"`  // nil when missed
	OpensAt   time.Time         `json:"opens_at"`   // when it opens, or would have opened
	DecidedAt time.Time         `json:"decided_at"` // when it was made, or given up

	// Raw is the day as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *CampaignDay) UnmarshalJSON(text []byte) error {
	type plain CampaignDay
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

const campaigns = "/v1/campaigns"

func campaign(id string) string { return campaigns + "/" + segment(id) }

// CreateCampaign makes a campaign, which is active at once. Nobody is charged by it: each
// packet is made, and its sender charged, ten minutes before it opens. A repeat with the
// same IdempotencyKey returns the campaign as it was told first; Campaign tells how it is
// now. Refusals are problems with CodeInvalidRequest, also when no day is left until
// EndsOn, CodeKeyRequired for a key that is none, and CodeKeyReused for one of another
// request. After an error without a Problem, or with one of status 5xx, it is not known
// whether the campaign was made: ask again with the IdempotencyKey of the *CallError.
func (c *Client) CreateCampaign(ctx context.Context, r CampaignRequest) (*Campaign, error) {
	key := r.IdempotencyKey
	if key == "" {
		key = rand.Text()
	}
	out := new(Campaign)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: campaigns, key: key, body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Campaign returns a campaign as it is now, or CodeCampaignNotFound, also for one of
// another app.
func (c *Client) Campaign(ctx context.Context, id string) (*Campaign, error) {
	out := new(Campaign)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: campaign(id)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CampaignFilter narrows the list of campaigns; members left at zero do not.
type CampaignFilter struct {
	Status CampaignStatus
}

func (f CampaignFilter) values() url.Values {
	v := url.Values{}
	put(v, "status", string(f.Status))
	return v
}

// ListCampaigns returns one page of the app's campaigns.
func (c *Client) ListCampaigns(ctx context.Context, f CampaignFilter, p Page) (*List[Campaign], error) {
	return page[Campaign](ctx, c.caller, campaigns, f.values(), p)
}

// Campaigns iterates over the app's campaigns, newest first.
func (c *Client) Campaigns(ctx context.Context, f CampaignFilter) iter.Seq2[*Campaign, error] {
	return each[Campaign](ctx, c.caller, campaigns, f.values())
}

// ListCampaignDays returns one page of what became of the days of a campaign, or
// CodeCampaignNotFound.
func (c *Client) ListCampaignDays(ctx context.Context, id string, p Page) (*List[CampaignDay], error) {
	return page[CampaignDay](ctx, c.caller, campaign(id)+"/days", nil, p)
}

// CampaignDays iterates over what became of the days of a campaign, newest first.
func (c *Client) CampaignDays(ctx context.Context, id string) iter.Seq2[*CampaignDay, error] {
	return each[CampaignDay](ctx, c.caller, campaign(id)+"/days", nil)
}

// PauseCampaign makes no more packets until ResumeCampaign; those that are made live on.
// It may be repeated. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (c *Client) PauseCampaign(ctx context.Context, id string) (*Campaign, error) {
	return c.changeCampaign(ctx, id, "pause")
}

// ResumeCampaign goes on with the first day whose packet opens from now on; days of the
// pause are not made up for. When there is no such day, the campaign comes back ended. It
// may be repeated. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (c *Client) ResumeCampaign(ctx context.Context, id string) (*Campaign, error) {
	return c.changeCampaign(ctx, id, "resume")
}

// EndCampaign makes no more packets, for ever; those that are made live on. It may be
// repeated. Problems: CodeCampaignNotFound.
func (c *Client) EndCampaign(ctx context.Context, id string) (*Campaign, error) {
	return c.changeCampaign(ctx, id, "end")
}

func (c *Client) changeCampaign(ctx context.Context, id, verb string) (*Campaign, error) {
	out := new(Campaign)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: campaign(id) + "/" + verb}, out); err != nil {
		return nil, err
	}
	return out, nil
}
