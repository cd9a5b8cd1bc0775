package api

import (
	"context"
	"net/http"

	"hongbao/api/rest"
	"hongbao/internal/campaign"
	"hongbao/wire"
)

func renderStaffCampaign(c campaign.Campaign) wire.StaffCampaign {
	return wire.StaffCampaign{Campaign: renderCampaign(c), App: c.App}
}

// staffCampaigns is the list of the campaigns of all apps.
func (s *Server) staffCampaigns() rest.Listing[wire.StaffCampaignFilter, wire.StaffCampaign] {
	return rest.Listing[wire.StaffCampaignFilter, wire.StaffCampaign]{Name: "staff campaigns", ID: "campaign",
		Read: func(ctx context.Context, a rest.Selection[wire.StaffCampaignFilter]) ([]wire.StaffCampaign, *rest.Position, error) {
			rows, err := s.cfg.Store.Campaigns(ctx, a.Filter.App, campaign.Status(a.Filter.Status), a.After.Cursor(), a.Limit+1)
			return rest.Cut(rows, err, a.Limit, placeOfCampaign, renderStaffCampaign)
		}}
}

func placeOfCampaign(c campaign.Campaign) rest.Position {
	return rest.Position{At: c.CreatedAt, ID: c.ID}
}

func (s *Server) getStaffCampaign(ctx context.Context, in *campaignIn) (*wire.StaffCampaign, error) {
	c, err := s.campaign(ctx, in)
	out := renderStaffCampaign(c)
	return &out, err
}

type stopCampaignIn struct {
	write
	ID   string                `path:"id" of:"campaign"`
	Body wire.CampaignDecision `in:"body"`
}

// stopCampaign returns the operation by which staff pauses or ends a campaign.
func (s *Server) stopCampaign(to campaign.Status) rest.Operation[stopCampaignIn, rest.Stored[wire.StaffCampaign]] {
	return func(ctx context.Context, in *stopCampaignIn) (*rest.Stored[wire.StaffCampaign], error) {
		render := func(c campaign.Campaign, ended bool) (int, []byte) {
			if ended {
				return in.RenderStored(rest.Refuse(wire.CodeCampaignEnded))
			}
			return http.StatusOK, rest.EncodeBody(renderStaffCampaign(c))
		}
		return rest.StoredAs[wire.StaffCampaign](s.cfg.Store.StopCampaign(ctx, in.Write, in.ID, to, render))
	}
}
