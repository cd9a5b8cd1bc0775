package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
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
		return answer{}, invalidField("ends_on", faultRange, "no day is left until then on which a packet could open")
	case errors.Is(err, campaign.ErrTooMany):
		return answer{}, refuse(wire.CodeManyCampaigns)
	case errors.Is(err, packet.ErrConflict):
		return answer{}, refuse(wire.CodeKeyReused)
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

func renderCampaign(c campaign.Campaign) wire.Campaign {
	p := c.Template.Packet
	out := wire.Campaign{
		ID: c.ID, Name: c.Name, Status: wire.CampaignStatus(c.Status), TimeZone: c.Zone,
		OpensDailyAt: fmt.Sprintf("%02d:%02d", c.Minute/60, c.Minute%60), StartsOn: wire.Date(c.StartsOn), NextOpensAt: timeOrNull(c.NextOpens),
		CreatedAt: wire.At(c.CreatedAt), EndedAt: timeOrNull(c.EndedAt), Schedule: wire.ScheduleRef{ID: "campaign/" + c.ID}, OneWin: p.OneWin,
		Packet: wire.CampaignTemplate{SenderID: p.SenderID, Currency: p.Currency, TotalAmount: p.TotalAmount, ShareCount: p.ShareCount,
			Split:    wire.Split(p.Split),
			MinShare: p.MinShare, Greeting: p.Greeting, ExpiresInSeconds: c.Template.Life, EligibleCount: p.EligibleCount, Tickets: p.Tickets,
			GroupID: p.GroupID, Metadata: p.Metadata},
	}
	if c.EndsOn != "" {
		last := wire.Date(c.EndsOn)
		out.EndsOn = &last
	}
	if p.MaxShare > 0 {
		cap := p.MaxShare
		out.Packet.MaxShare = &cap
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
		return "", refuse(wire.CodeCampaignNotFound)
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
		return campaign.Campaign{}, refuse(wire.CodeCampaignNotFound)
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
			return answer{}, refuse(wire.CodeCampaignEnded)
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
	page := wire.List[wire.Campaign]{Items: []wire.Campaign{}, NextCursor: next}
	for _, c := range found {
		page.Items = append(page.Items, renderCampaign(c))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// listedCampaigns reads a page of campaigns: those of the calling app, or for staff those of
// the filter. list is the list's name in cursors.
func (r *request) listedCampaigns(list string) (found []campaign.Campaign, next *string, err error) {
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
	page := wire.List[wire.CampaignDay]{Items: []wire.CampaignDay{}}
	for i, d := range found {
		if i == limit {
			page.NextCursor = encodeCursor(dayCursor{Campaign: c.ID, Day: found[i-1].Day})
			break
		}
		item := wire.CampaignDay{Day: wire.Date(d.Day), Status: wire.CampaignDayStatus(d.Status), OpensAt: wire.At(d.OpensAt),
			DecidedAt: wire.At(d.DecidedAt)}
		if d.Status == campaign.DayCreated {
			item.PacketID = &d.PacketID
		}
		page.Items = append(page.Items, item)
	}
	return answer{status: http.StatusOK, body: page}, nil
}
