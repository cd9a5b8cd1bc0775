package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"hongbao/api/rest"
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

// Bind reads the members of a body.
func (q *campaignRequest) Bind(o *rest.Object) {
	q.Name = rest.ValueOr(o.Text("name", true, func(s string) *rest.Fault {
		if s == "" {
			return &rest.Fault{Code: rest.FaultLength, Message: "must not be empty"}
		}
		return rest.CheckText(campaign.MaxName)(s)
	}), "")
	q.Zone = rest.ValueOr(o.Text("time_zone", false, rest.CheckZone), rest.DefaultZone)
	q.OpensAt = rest.ValueOr(o.Text("opens_daily_at", true, func(s string) *rest.Fault {
		if !dailyTime.MatchString(s) {
			return &rest.Fault{Code: rest.FaultFormat, Message: "must be a time of day such as 20:00"}
		}
		return nil
	}), "")
	q.StartsOn = payout.Day(rest.ValueOr(o.Text("starts_on", false, rest.CheckDay), ""))
	q.EndsOn = payout.Day(rest.ValueOr(o.Text("ends_on", false, rest.CheckDay), ""))
	if q.EndsOn != "" && q.EndsOn < q.StartsOn {
		o.Fault("ends_on", rest.Fault{Code: rest.FaultRange, Message: "must not be before starts_on"})
	}
	q.OneWin = rest.ValueOr(o.Boolean("one_win_per_user"), false)
	inner := o.Object("packet", true)
	if !o.Faulty("packet") {
		q.Packet = createMembers(inner, false)
		inner.RejectUnknown()
	}
}

// campaign returns the campaign to create.
func (q campaignRequest) campaign(app, id string, salt []byte, hash string) campaign.Campaign {
	p := q.Packet
	hour, _ := strconv.Atoi(q.OpensAt[:2])
	minute, _ := strconv.Atoi(q.OpensAt[3:])
	charges := "" // the default of each day
	if p.Funding.ofMerchant() {
		charges = payout.BalanceProvider
	}
	return campaign.Campaign{
		ID: id, App: app, Name: q.Name, Salt: salt, Zone: q.Zone, Minute: hour*60 + minute, StartsOn: q.StartsOn, EndsOn: q.EndsOn,
		BodyHash: hash, Template: campaign.Template{Life: p.Life, Eligible: p.Eligible, Packet: packet.Packet{
			SenderID: p.SenderID, Currency: p.Currency, TotalAmount: p.Total, ShareCount: p.Count, Split: p.Split, MinShare: p.MinShare,
			MaxShare: p.MaxShare, Greeting: p.Greeting, GroupID: p.GroupID, Metadata: p.Metadata, EligibleCount: len(p.Eligible), Tickets: p.Tickets,
			OneWin: q.OneWin, ChargeProvider: charges,
		}},
	}
}

type createCampaignIn struct {
	write
	Body campaignRequest `in:"body"`
}

func (s *Server) createCampaign(ctx context.Context, in *createCampaignIn) (*rest.Stored[wire.Campaign], error) {
	app := in.Caller.App
	id := campaign.NewID(app.Salt, in.Key)
	method, _ := s.cfg.Providers.Charges().Limits().Method("")
	if method.NeedsPayer && !in.Body.Packet.Funding.ofMerchant() {
		if _, err := s.cfg.Store.Campaign(ctx, id); errors.Is(err, packet.ErrNotFound) { // not a repeat
			return nil, rest.InvalidField("packet.funding.source", rest.FaultEnum, "must be merchant: each charge at the provider needs the sender")
		}
	}
	wanted := in.Body.campaign(app.ID, id, campaign.NewSalt(app.Salt, id), in.BodyHash)
	if err := s.boundTemplate(ctx, wanted); err != nil {
		return nil, err
	}
	c, existed, err := s.cfg.Store.CreateCampaign(ctx, wanted)
	switch {
	case errors.Is(err, campaign.ErrNoDay):
		return nil, rest.InvalidField("ends_on", rest.FaultRange, "no day is left until then on which a packet could open")
	case errors.Is(err, campaign.ErrTooMany):
		return nil, rest.Refuse(wire.CodeManyCampaigns)
	case errors.Is(err, packet.ErrConflict):
		return nil, rest.Refuse(wire.CodeKeyReused)
	case err != nil:
		return nil, err
	}
	if existed { // return the first answer
		if c.NextDay, c.NextOpens, err = c.Next(c.CreatedAt); err != nil {
			return nil, err
		}
		c.Status, c.EndedAt = campaign.StatusActive, time.Time{}
	}
	out := renderCampaign(c)
	return &rest.Stored[wire.Campaign]{Answer: staff.Answer{Status: http.StatusCreated, Replayed: existed}, Fresh: &out}, nil
}

func renderCampaign(c campaign.Campaign) wire.Campaign {
	p := c.Template.Packet
	out := wire.Campaign{
		ID: c.ID, Name: c.Name, Status: wire.CampaignStatus(c.Status), TimeZone: c.Zone,
		OpensDailyAt: fmt.Sprintf("%02d:%02d", c.Minute/60, c.Minute%60), StartsOn: wire.Date(c.StartsOn),
		NextOpensAt: rest.TimeOrNull(c.NextOpens),
		CreatedAt:   wire.At(c.CreatedAt), EndedAt: rest.TimeOrNull(c.EndedAt),
		Schedule: wire.ScheduleRef{ID: "campaign/" + c.ID}, OneWin: p.OneWin,
		Packet: wire.CampaignTemplate{SenderID: p.SenderID, Currency: p.Currency, TotalAmount: p.TotalAmount, ShareCount: p.ShareCount,
			Split:    wire.Split(p.Split),
			MinShare: p.MinShare, Greeting: p.Greeting, ExpiresInSeconds: c.Template.Life, EligibleCount: p.EligibleCount, Tickets: p.Tickets,
			Funding: wire.CampaignFunding{Source: fundingSource(p.ChargeProvider)}, GroupID: p.GroupID, Metadata: p.Metadata},
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

type campaignIn struct {
	asked
	ID string `path:"id" of:"campaign"`
}

// campaign reads the campaign of the path. A campaign of another app is found by staff only.
func (s *Server) campaign(ctx context.Context, in *campaignIn) (campaign.Campaign, error) {
	c, err := s.cfg.Store.Campaign(ctx, in.ID)
	if err == nil && in.Route.Realm == rest.RealmApp && c.App != in.Caller.App.ID {
		err = packet.ErrNotFound
	}
	return c, err
}

func (s *Server) getCampaign(ctx context.Context, in *campaignIn) (*wire.Campaign, error) {
	c, err := s.campaign(ctx, in)
	out := renderCampaign(c)
	return &out, err
}

type setCampaignIn struct {
	campaignIn
	Body wire.NoMembers `in:"body"`
}

// setCampaign returns the operation that changes the status of a campaign.
func (s *Server) setCampaign(to campaign.Status) rest.Operation[setCampaignIn, wire.Campaign] {
	return func(ctx context.Context, in *setCampaignIn) (*wire.Campaign, error) {
		c, err := s.campaign(ctx, &in.campaignIn)
		if err != nil {
			return nil, err
		}
		c, err = s.cfg.Store.SetCampaignStatus(ctx, c.ID, to)
		if errors.Is(err, campaign.ErrEnded) {
			err = rest.Refuse(wire.CodeCampaignEnded)
		}
		out := renderCampaign(c)
		return &out, err
	}
}

// campaigns is the list of the campaigns of the calling app.
func (s *Server) campaigns() rest.Listing[wire.CampaignFilter, wire.Campaign] {
	return rest.Listing[wire.CampaignFilter, wire.Campaign]{Name: "campaigns", ID: "campaign",
		Read: func(ctx context.Context, a rest.Selection[wire.CampaignFilter]) ([]wire.Campaign, *rest.Position, error) {
			rows, err := s.cfg.Store.Campaigns(ctx, a.Caller.App.ID, campaign.Status(a.Filter.Status), a.After.Cursor(), a.Limit+1)
			return rest.Cut(rows, err, a.Limit, placeOfCampaign, renderCampaign)
		}}
}

type campaignDaysIn struct {
	campaignIn
	Page rest.PageParams `in:"query"`
}

func (s *Server) listCampaignDays(ctx context.Context, in *campaignDaysIn) (*wire.List[wire.CampaignDay], error) {
	c, err := s.campaign(ctx, &in.campaignIn)
	if err != nil {
		return nil, err
	}
	days := &rest.Listed[struct{}]{Asked: rest.Asked{Request: &in.request.Request}, Page: in.Page}
	return s.campaignDays().PageWithin(ctx, days, c.ID)
}

// campaignDays is the list of the days of a campaign.
func (s *Server) campaignDays() rest.Listing[struct{}, wire.CampaignDay] {
	return rest.Listing[struct{}, wire.CampaignDay]{Name: "days", ID: "day",
		Read: func(ctx context.Context, a rest.Selection[struct{}]) ([]wire.CampaignDay, *rest.Position, error) {
			rows, err := s.cfg.Store.CampaignDays(ctx, a.Within, payout.Day(a.After.ID), a.Limit+1)
			return rest.Cut(rows, err, a.Limit, func(d campaign.Day) rest.Position {
				return rest.Position{At: d.OpensAt, ID: string(d.Day)}
			}, renderCampaignDay)
		}}
}

func renderCampaignDay(d campaign.Day) wire.CampaignDay {
	out := wire.CampaignDay{Day: wire.Date(d.Day), Status: wire.CampaignDayStatus(d.Status), OpensAt: wire.At(d.OpensAt),
		DecidedAt: wire.At(d.DecidedAt)}
	if d.Status == campaign.DayCreated {
		out.PacketID = &d.PacketID
	}
	return out
}
