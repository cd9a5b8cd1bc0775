package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// CampaignStore keeps campaigns in MySQL.
type CampaignStore interface {
	CreateCampaign(ctx context.Context, c campaign.Campaign) (made campaign.Campaign, existed bool, err error)
	Campaign(ctx context.Context, id string) (campaign.Campaign, error)
	Campaigns(ctx context.Context, app string, status campaign.Status, after packet.Cursor, limit int) ([]campaign.Campaign, error)
	CampaignDays(ctx context.Context, id string, before payout.Day, limit int) ([]campaign.Day, error)
	SetCampaignStatus(ctx context.Context, id string, to campaign.Status) (campaign.Campaign, error)
	StopCampaign(ctx context.Context, w staff.Write, id string, to campaign.Status,
		render func(c campaign.Campaign, ended bool) (status int, body []byte)) (staff.Answer, error)
}

// CampaignStatus is campaign.Status with its schema.
type CampaignStatus campaign.Status

// Schema implements huma.SchemaProvider.
func (CampaignStatus) Schema(huma.Registry) *huma.Schema { return enum(campaign.Statuses) }

// DayStatus is campaign.DayStatus with its schema.
type DayStatus campaign.DayStatus

// Schema implements huma.SchemaProvider.
func (DayStatus) Schema(huma.Registry) *huma.Schema {
	return enum([]campaign.DayStatus{campaign.DayCreating, campaign.DayCreated, campaign.DayMissed})
}

// CreateCampaign is the body of a create, used for the OpenAPI document.
type CreateCampaign struct {
	Name         string         `json:"name" minLength:"1" maxLength:"64" doc:"A name for people: 1 to 64 characters, no control characters." example:"evening rain"`
	TimeZone     *string        `json:"time_zone" required:"false" doc:"IANA name; Asia/Shanghai by default." example:"Asia/Shanghai"`
	OpensDailyAt string         `json:"opens_daily_at" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" doc:"The local time at which packets open." example:"20:00"`
	StartsOn     *Date          `json:"starts_on" required:"false" doc:"The first day; by default the first day whose opening time is in the future. Earlier days are skipped."`
	EndsOn       *Date          `json:"ends_on" required:"false" doc:"The last day; null: the campaign runs until it is ended."`
	OneWin       *bool          `json:"one_win_per_user" required:"false" doc:"true: a user wins in at most one of its packets; further grabs of a winner are answered 403 not_eligible. false by default. It cannot be changed later."`
	Packet       CampaignCreate `json:"packet" doc:"The template of the daily packet."`
}

// CampaignCreate is the template in a request: CreatePacket without opens_at.
type CampaignCreate struct {
	SenderID         string                      `json:"sender_id" doc:"The user who is charged for each packet: 1 to 64 bytes of UTF-8 without control characters." example:"u1" minLength:"1" maxLength:"64"`
	TotalAmount      Amount                      `json:"total_amount" doc:"The amount of each packet, in fen." example:"10000"`
	ShareCount       int                         `json:"share_count" minimum:"1" maximum:"1000000" example:"10" doc:"The number of shares of each packet."`
	Split            Nullable[SplitMode]         `json:"split" required:"false" doc:"How packets are split; random by default."`
	MinShare         Nullable[Amount]            `json:"min_share" required:"false" doc:"The smallest share in fen, 1 by default."`
	MaxShare         Nullable[Amount]            `json:"max_share" required:"false" doc:"The largest share in fen; null: no limit."`
	Currency         *string                     `json:"currency" required:"false" doc:"Always CNY, the default."`
	Greeting         *string                     `json:"greeting" required:"false" maxLength:"64" doc:"At most 64 characters, no control characters."`
	ExpiresInSeconds *int                        `json:"expires_in_seconds" required:"false" minimum:"10" maximum:"604800" doc:"How long each packet can be grabbed after it opens, in seconds; 86400 by default."`
	EligibleUserIDs  []string                    `json:"eligible_user_ids" required:"false" nullable:"true" minItems:"1" maxItems:"10000" doc:"The users who may grab, without duplicates; null: every user."`
	Tickets          *bool                       `json:"tickets" required:"false" doc:"true: a grab needs a ticket that your app signed for the packet of the day. Not together with eligible_user_ids; false by default."`
	GroupID          *string                     `json:"group_id" required:"false" minLength:"1" maxLength:"64" doc:"A value of the client, returned unchanged: 1 to 64 bytes."`
	Metadata         Nullable[map[string]string] `json:"metadata" required:"false" doc:"Values of the client, returned unchanged: strings, at most 2048 bytes of UTF-8 in all values and as many in all names."`
}

// Campaign is a campaign in answers.
type Campaign struct {
	ID           string           `json:"id" doc:"Opaque; not guessable." example:"3q5k9v0c1m7e2u8h4r6t"`
	Name         string           `json:"name" doc:"As in the request."`
	Status       CampaignStatus   `json:"status" doc:"active: a packet is created every day. paused: no packets are created. ended: final. Existing packets are independent of the status."`
	TimeZone     string           `json:"time_zone" doc:"The time zone of its days and times." example:"Asia/Shanghai"`
	OpensDailyAt string           `json:"opens_daily_at" doc:"The local time at which packets open." example:"20:00"`
	StartsOn     Date             `json:"starts_on" doc:"The first day."`
	EndsOn       Nullable[Date]   `json:"ends_on" doc:"The last day; null: no end."`
	NextOpensAt  Nullable[Stamp]  `json:"next_opens_at" doc:"When the next packet opens. It is created, and its sender charged, ten minutes before; null: there is none."`
	OneWin       bool             `json:"one_win_per_user" doc:"true: a user wins in at most one of its packets."`
	Packet       CampaignTemplate `json:"packet" doc:"The template of the daily packet."`
	CreatedAt    Stamp            `json:"created_at" doc:"When it was created."`
	EndedAt      Nullable[Stamp]  `json:"ended_at" doc:"When it ended; null before."`
	Schedule     ScheduleRef      `json:"schedule" doc:"The Temporal schedule that creates its packets."`
}

// ScheduleRef refers to a Temporal schedule.
type ScheduleRef struct {
	ID string `json:"id" doc:"The schedule id." example:"campaign/3q5k9v0c1m7e2u8h4r6t"`
}

// CampaignTemplate is the template of the packets of a campaign, with defaults filled in.
type CampaignTemplate struct {
	SenderID         string            `json:"sender_id" doc:"The user who is charged for each packet." example:"u1"`
	Currency         string            `json:"currency" enum:"CNY" doc:"Amounts are in fen, the minor unit of CNY."`
	TotalAmount      Fen               `json:"total_amount" doc:"The amount of each packet." example:"10000"`
	ShareCount       int               `json:"share_count" minimum:"1" maximum:"1000000" doc:"The number of shares of each packet." example:"10"`
	Split            SplitMode         `json:"split" doc:"How packets are split; see docs/fairness.md."`
	MinShare         Fen               `json:"min_share" doc:"The smallest share in fen." example:"1"`
	MaxShare         Nullable[Fen]     `json:"max_share" doc:"The largest share in fen; null: no limit."`
	Greeting         string            `json:"greeting" doc:"As in the request."`
	ExpiresInSeconds int64             `json:"expires_in_seconds" doc:"How long each packet can be grabbed after it opens, in seconds." example:"86400"`
	EligibleCount    int               `json:"eligible_count" minimum:"0" doc:"How many users may grab; 0: every user."`
	Tickets          bool              `json:"tickets" doc:"true: a grab needs a ticket that the app signed."`
	GroupID          Nullable[string]  `json:"group_id" doc:"As in the request."`
	Metadata         map[string]string `json:"metadata" doc:"As in the request."`
}

// Campaigns is a page of campaigns.
type Campaigns struct {
	Items      []Campaign       `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// CampaignDay is the outcome of one day.
type CampaignDay struct {
	Day       Date             `json:"day" doc:"The day in the time zone of the campaign."`
	Status    DayStatus        `json:"status" doc:"making: the packet is being created, also when the campaign is paused or ended by then. made: the packet exists; read it for its status. missed: the packet could not be created before it would have expired."`
	PacketID  Nullable[string] `json:"packet_id" doc:"The packet; null unless the status is made."`
	OpensAt   Stamp            `json:"opens_at" doc:"When the packet opens, or would have opened."`
	DecidedAt Stamp            `json:"decided_at" doc:"When the packet was created or missed; while making, when the creation began."`
}

// CampaignDays is a page of days.
type CampaignDays struct {
	Items      []CampaignDay    `json:"items" nullable:"false" doc:"Newest first, without days on which the campaign was paused."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// campaignRequest is the request with defaults filled in. The body hash is computed from its
// JSON, so members and their order must never change.
type campaignRequest struct {
	Name     string        `json:"name"`
	Zone     string        `json:"time_zone"`
	OpensAt  string        `json:"opens_daily_at"`
	StartsOn payout.Day    `json:"starts_on"` // "": the first that is possible
	EndsOn   payout.Day    `json:"ends_on"`   // "": none
	Packet   createRequest `json:"packet"`
	OneWin   bool          `json:"one_win_per_user,omitempty"` // left out when false: older hashes have no such member
}

var dailyTime = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

func readCampaign(body []byte) (campaignRequest, error) {
	var q campaignRequest
	o, err := readObject(body)
	if err != nil {
		return q, err
	}
	q.Name = valueOr(o.text("name", true, func(s string) *fault {
		if s == "" {
			return &fault{faultLength, "must not be empty"}
		}
		return checkText(campaign.MaxName)(s)
	}), "")
	q.Zone = valueOr(o.text("time_zone", false, checkZone), defaultZone)
	q.OpensAt = valueOr(o.text("opens_daily_at", true, func(s string) *fault {
		if !dailyTime.MatchString(s) {
			return &fault{faultFormat, "must be a time of day such as 20:00"}
		}
		return nil
	}), "")
	q.StartsOn = payout.Day(valueOr(o.text("starts_on", false, checkDay), ""))
	q.EndsOn = payout.Day(valueOr(o.text("ends_on", false, checkDay), ""))
	if q.EndsOn != "" && q.EndsOn < q.StartsOn {
		o.fault("ends_on", fault{faultRange, "must not be before starts_on"})
	}
	q.OneWin = valueOr(o.boolean("one_win_per_user"), false)
	inner := o.object("packet")
	if !o.faulty("packet") {
		q.Packet = createMembers(inner, false)
		inner.rejectUnknown()
	}
	return q, o.done()
}

// campaign returns the campaign to create.
func (q campaignRequest) campaign(app, id string, salt []byte, hash string) campaign.Campaign {
	p := q.Packet
	hour, _ := strconv.Atoi(q.OpensAt[:2])
	minute, _ := strconv.Atoi(q.OpensAt[3:])
	return campaign.Campaign{
		ID: id, App: app, Name: q.Name, Salt: salt, Zone: q.Zone, Minute: hour*60 + minute, StartsOn: q.StartsOn, EndsOn: q.EndsOn,
		BodyHash: hash, Template: campaign.Template{Life: p.Life, Eligible: p.Eligible, Packet: packet.Packet{
			SenderID: p.SenderID, Currency: p.Currency, TotalAmount: p.Total, ShareCount: p.Count, Split: p.Split, MinShare: p.MinShare,
			MaxShare: p.MaxShare, Greeting: p.Greeting, GroupID: p.GroupID, Metadata: p.Metadata, EligibleCount: len(p.Eligible), Tickets: p.Tickets,
			OneWin: q.OneWin,
		}},
	}
}

func createCampaign(r *request) (answer, error) {
	q, err := readCampaign(r.payload)
	if err != nil {
		return answer{}, err
	}
	key, err := r.idempotencyKey()
	if err != nil {
		return answer{}, err
	}
	hash, err := bodyHash(q)
	if err != nil {
		return answer{}, err
	}
	app := r.caller.app
	id := campaign.NewID(app.Salt, key)
	c, existed, err := r.server.cfg.Store.CreateCampaign(r.ctx, q.campaign(app.ID, id, campaign.NewSalt(app.Salt, id), hash))
	switch {
	case errors.Is(err, campaign.ErrNoDay):
		return answer{}, invalid(FieldError{"ends_on", faultRange, "no day is left until then on which a packet could open"})
	case errors.Is(err, campaign.ErrTooMany):
		return answer{}, refuse(CodeManyCampaigns)
	case errors.Is(err, packet.ErrConflict):
		return answer{}, refuse(CodeKeyReused)
	case err != nil:
		return answer{}, err
	}
	if existed { // return the first answer
		if c.NextDay, c.NextOpens, err = c.Next(c.CreatedAt); err != nil {
			return answer{}, err
		}
		c.Status, c.EndedAt = campaign.StatusActive, time.Time{}
	}
	return answer{status: http.StatusCreated, body: renderCampaign(c), replayed: existed}, nil
}

func renderCampaign(c campaign.Campaign) Campaign {
	p := c.Template.Packet
	out := Campaign{
		ID: c.ID, Name: c.Name, Status: CampaignStatus(c.Status), TimeZone: c.Zone,
		OpensDailyAt: fmt.Sprintf("%02d:%02d", c.Minute/60, c.Minute%60), StartsOn: Date(c.StartsOn), NextOpensAt: stampOrNull(c.NextOpens),
		CreatedAt: Stamp(c.CreatedAt), EndedAt: stampOrNull(c.EndedAt), Schedule: ScheduleRef{ID: "campaign/" + c.ID}, OneWin: p.OneWin,
		Packet: CampaignTemplate{SenderID: p.SenderID, Currency: p.Currency, TotalAmount: Fen(p.TotalAmount), ShareCount: p.ShareCount,
			Split:    SplitMode(p.Split),
			MinShare: Fen(p.MinShare), Greeting: p.Greeting, ExpiresInSeconds: c.Template.Life, EligibleCount: p.EligibleCount, Tickets: p.Tickets,
			GroupID: orNull(p.GroupID), Metadata: p.Metadata},
	}
	if c.EndsOn != "" {
		last := Date(c.EndsOn)
		out.EndsOn = orNull(&last)
	}
	if p.MaxShare > 0 {
		cap := Fen(p.MaxShare)
		out.Packet.MaxShare = orNull(&cap)
	}
	if out.Packet.Metadata == nil {
		out.Packet.Metadata = map[string]string{}
	}
	return out
}

// campaignID returns the campaign id of the path, which has the form of a packet id.
func (r *request) campaignID() (string, error) {
	id, err := r.packetID()
	if err != nil {
		return "", refuse(CodeCampaignNotFound)
	}
	return id, nil
}

// campaign reads the campaign of the path. A campaign of another app is found by staff only.
func (r *request) campaign() (campaign.Campaign, error) {
	id, err := r.campaignID()
	if err != nil {
		return campaign.Campaign{}, err
	}
	c, err := r.server.cfg.Store.Campaign(r.ctx, id)
	if errors.Is(err, packet.ErrNotFound) || err == nil && r.route.realm == realmApp && c.App != r.caller.app.ID {
		return campaign.Campaign{}, refuse(CodeCampaignNotFound)
	}
	return c, err
}

func getCampaign(r *request) (answer, error) {
	c, err := r.campaign()
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: renderCampaign(c)}, nil
}

// setCampaign handles requests that change the status of a campaign.
func setCampaign(to campaign.Status) func(*request) (answer, error) {
	return func(r *request) (answer, error) {
		o, err := readOptional(r.payload)
		if err != nil {
			return answer{}, err
		}
		if err := o.done(); err != nil {
			return answer{}, err
		}
		c, err := r.campaign()
		if err != nil {
			return answer{}, err
		}
		c, err = r.server.cfg.Store.SetCampaignStatus(r.ctx, c.ID, to)
		if errors.Is(err, campaign.ErrEnded) {
			return answer{}, refuse(CodeCampaignEnded)
		}
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, body: renderCampaign(c)}, nil
	}
}

func checkCampaignStatus(s string) *fault {
	for _, status := range campaign.Statuses {
		if s == string(status) {
			return nil
		}
	}
	return &fault{faultEnum, "is not a status of campaigns"}
}

func listCampaigns(r *request) (answer, error) {
	found, next, err := r.listedCampaigns("campaigns")
	if err != nil {
		return answer{}, err
	}
	page := Campaigns{Items: []Campaign{}, NextCursor: next}
	for _, c := range found {
		page.Items = append(page.Items, renderCampaign(c))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// listedCampaigns reads a page of campaigns: those of the calling app, or for staff those of
// the filter. list is the list's name in cursors.
func (r *request) listedCampaigns(list string) (found []campaign.Campaign, next Nullable[string], err error) {
	q := readQuery(r)
	filters := map[string]string{}
	put(filters, "status", q.text("status", checkCampaignStatus))
	staff := r.route.realm == realmStaff
	if staff {
		put(filters, "app", q.text("app", checkFilter))
	}
	limit, cursor := q.page()
	if err := q.done(); err != nil {
		return nil, next, err
	}
	after, filters, err := resume(cursor, list, filters)
	if err != nil {
		return nil, next, err
	}
	if s := filters["status"]; s != "" && checkCampaignStatus(s) != nil {
		return nil, next, badCursor()
	}
	app := filters["app"]
	if !staff {
		app = r.caller.app.ID
	}
	found, err = r.server.cfg.Store.Campaigns(r.ctx, app, campaign.Status(filters["status"]), after, limit+1)
	if err != nil || len(found) <= limit {
		return found, next, err
	}
	last := found[limit-1]
	return found[:limit], place{packet.Cursor{At: last.CreatedAt, ID: last.ID}}.cursor(list, filters), nil
}

// dayCursor is the position in a list of days.
type dayCursor struct {
	Campaign string     `json:"c"`
	Day      payout.Day `json:"d"`
}

func listCampaignDays(r *request) (answer, error) {
	q := readQuery(r)
	limit, cursor := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	c, err := r.campaign()
	if err != nil {
		return answer{}, err
	}
	var after dayCursor
	if cursor != "" && (decodeCursor(cursor, &after) != nil || after.Campaign != c.ID || checkDay(string(after.Day)) != nil) {
		return answer{}, badCursor()
	}
	found, err := r.server.cfg.Store.CampaignDays(r.ctx, c.ID, after.Day, limit+1)
	if err != nil {
		return answer{}, err
	}
	page := CampaignDays{Items: []CampaignDay{}}
	for i, d := range found {
		if i == limit {
			page.NextCursor = encodeCursor(dayCursor{Campaign: c.ID, Day: found[i-1].Day})
			break
		}
		item := CampaignDay{Day: Date(d.Day), Status: DayStatus(d.Status), OpensAt: Stamp(d.OpensAt), DecidedAt: Stamp(d.DecidedAt)}
		if d.Status == campaign.DayCreated {
			item.PacketID = orNull(&d.PacketID)
		}
		page.Items = append(page.Items, item)
	}
	return answer{status: http.StatusOK, body: page}, nil
}
