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

// CampaignStatus is the status of a campaign.
type CampaignStatus string

// The statuses of campaigns.
const (
	CampaignActive CampaignStatus = "active" // a packet is created every day
	CampaignPaused CampaignStatus = "paused" // no packets are created
	CampaignEnded  CampaignStatus = "ended"  // final
)

// CampaignDayStatus is the outcome of one day of a campaign.
type CampaignDayStatus string

// The outcomes of a day. Days during a pause have none.
const (
	CampaignDayMaking CampaignDayStatus = "making" // the packet is being created, also when the campaign is paused or ended by then
	CampaignDayMade   CampaignDayStatus = "made"   // the packet was created; Packet returns whether its sender was charged
	CampaignDayMissed CampaignDayStatus = "missed" // no packet could be created before it would have expired
)

// CampaignRequest is the body of CreateCampaign. Zero members have the API's defaults.
type CampaignRequest struct {
	// IdempotencyKey identifies this create, as in CreateRequest: with a key that you have
	// stored no crash can cause a second campaign. "": CreateCampaign generates one for its own
	// tries. Keys of packets and campaigns are separate.
	IdempotencyKey string `json:"-"`

	Name         string         `json:"name"`                       // for people: 1 to 64 characters
	TimeZone     string         `json:"time_zone,omitempty"`        // IANA name; "": Asia/Shanghai
	OpensDailyAt string         `json:"opens_daily_at"`             // HH:MM, 00:00 to 23:59, in TimeZone
	StartsOn     string         `json:"starts_on,omitempty"`        // YYYY-MM-DD; "": the first day whose opening time is in the future
	OneWin       bool           `json:"one_win_per_user,omitempty"` // a user wins in at most one of its packets
	EndsOn       string         `json:"ends_on,omitempty"`          // YYYY-MM-DD, inclusive; "": until the campaign is ended
	Packet       CampaignPacket `json:"packet"`
}

// CampaignPacket is the template of the daily packet: a CreateRequest without an opening time.
// Amounts are per packet, in fen.
type CampaignPacket struct {
	SenderID         string            `json:"sender_id"` // charged for each packet
	TotalAmount      money.Fen         `json:"total_amount"`
	ShareCount       int               `json:"share_count"`
	Split            Split             `json:"split,omitempty"`
	MinShare         money.Fen         `json:"min_share,omitempty"`
	MaxShare         money.Fen         `json:"max_share,omitempty"` // 0: no limit
	Currency         string            `json:"currency,omitempty"`
	Greeting         string            `json:"greeting,omitempty"`
	ExpiresInSeconds int               `json:"expires_in_seconds,omitempty"` // from its opening
	EligibleUserIDs  []string          `json:"eligible_user_ids,omitempty"`  // empty: every user
	Tickets          bool              `json:"tickets,omitempty"`            // a grab needs a ticket; excludes EligibleUserIDs
	GroupID          string            `json:"group_id,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
}

// Campaign is a campaign in answers. It holds no money; its packets do.
type Campaign struct {
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Status       CampaignStatus   `json:"status"`
	TimeZone     string           `json:"time_zone"`        // IANA name, of OpensDailyAt, StartsOn and EndsOn
	OpensDailyAt string           `json:"opens_daily_at"`   // HH:MM
	StartsOn     string           `json:"starts_on"`        // YYYY-MM-DD
	OneWin       bool             `json:"one_win_per_user"` // a user wins in at most one of its packets
	EndsOn       *string          `json:"ends_on"`          // YYYY-MM-DD, inclusive; nil: no end
	NextOpensAt  *time.Time       `json:"next_opens_at"`    // of the next packet to be created; nil: none
	Packet       CampaignTemplate `json:"packet"`
	CreatedAt    time.Time        `json:"created_at"`
	EndedAt      *time.Time       `json:"ended_at"` // nil before it ended
	Schedule     Schedule         `json:"schedule"`

	// Raw is the campaign as received, including members unknown to this version.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *Campaign) UnmarshalJSON(text []byte) error {
	type plain Campaign
	c.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(c))
}

// CampaignTemplate is the template of the daily packet, with defaults filled in. Amounts are
// per packet, in fen.
type CampaignTemplate struct {
	SenderID         string            `json:"sender_id"`
	Currency         string            `json:"currency"`
	TotalAmount      money.Fen         `json:"total_amount"`
	ShareCount       int               `json:"share_count"`
	Split            Split             `json:"split"`
	MinShare         money.Fen         `json:"min_share"`
	MaxShare         *money.Fen        `json:"max_share"` // nil: no limit
	Greeting         string            `json:"greeting"`
	ExpiresInSeconds int               `json:"expires_in_seconds"` // from its opening
	EligibleCount    int               `json:"eligible_count"`     // how many users may grab; 0: every user
	Tickets          bool              `json:"tickets"`            // a grab needs a ticket
	GroupID          *string           `json:"group_id"`
	Metadata         map[string]string `json:"metadata"`
}

// Schedule is the Temporal schedule of a campaign.
type Schedule struct {
	ID string `json:"id"`
}

// CampaignDay is the outcome of one day.
type CampaignDay struct {
	Day       string            `json:"day"` // YYYY-MM-DD, in the time zone of the campaign
	Status    CampaignDayStatus `json:"status"`
	PacketID  *string           `json:"packet_id"`  // nil when missed
	OpensAt   time.Time         `json:"opens_at"`   // when the packet opens, or would have opened
	DecidedAt time.Time         `json:"decided_at"` // when the packet was created or missed

	// Raw is the day as received.
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

// CreateCampaign creates a campaign, which is active at once. It charges no one: each packet
// is created, and its sender charged, ten minutes before it opens. A repeat with the same
// IdempotencyKey returns the first answer; Campaign returns the current state. Refusals are
// problems: CodeInvalidRequest, also when no day is left until EndsOn, CodeKeyRequired for an
// invalid key, CodeKeyReused for the key of another request. After an error without a Problem,
// or with status 5xx, the result is unknown: repeat the call with the IdempotencyKey of the
// *CallError.
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

// Campaign returns the current campaign. Problems: CodeCampaignNotFound, also for a campaign
// of another app.
func (c *Client) Campaign(ctx context.Context, id string) (*Campaign, error) {
	out := new(Campaign)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: campaign(id)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CampaignFilter filters the list of campaigns; zero members do not filter.
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

// ListCampaignDays returns one page of the days of a campaign. Problems: CodeCampaignNotFound.
func (c *Client) ListCampaignDays(ctx context.Context, id string, p Page) (*List[CampaignDay], error) {
	return page[CampaignDay](ctx, c.caller, campaign(id)+"/days", nil, p)
}

// CampaignDays iterates over the days of a campaign, newest first.
func (c *Client) CampaignDays(ctx context.Context, id string) iter.Seq2[*CampaignDay, error] {
	return each[CampaignDay](ctx, c.caller, campaign(id)+"/days", nil)
}

// PauseCampaign stops creating packets until ResumeCampaign; existing packets are not
// affected. It may be repeated. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (c *Client) PauseCampaign(ctx context.Context, id string) (*Campaign, error) {
	return c.changeCampaign(ctx, id, "pause")
}

// ResumeCampaign continues with the first day whose opening time is in the future; days of the
// pause are not made up for. Without such a day the returned campaign is ended. It may be
// repeated. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (c *Client) ResumeCampaign(ctx context.Context, id string) (*Campaign, error) {
	return c.changeCampaign(ctx, id, "resume")
}

// EndCampaign stops creating packets for ever; existing packets are not affected. It may be
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
