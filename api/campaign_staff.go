package api

import (
	"context"
	"net/http"

	"hongbao/internal/campaign"
	"hongbao/wire"
)

func renderStaffCampaign(c campaign.Campaign) wire.StaffCampaign {
	return wire.StaffCampaign{Campaign: renderCampaign(c), App: c.App}
}

// staffCampaigns is the list of the campaigns of all apps.
func (s *Server) staffCampaigns() listing[wire.StaffCampaignFilter, wire.StaffCampaign] {
	return listing[wire.StaffCampaignFilter, wire.StaffCampaign]{"staff campaigns", "campaign",
		func(ctx context.Context, a selection[wire.StaffCampaignFilter]) ([]wire.StaffCampaign, *position, error) {
			rows, err := s.cfg.Store.Campaigns(ctx, a.filter.App, campaign.Status(a.filter.Status), a.after.cursor(), a.limit+1)
			return cut(rows, err, a.limit, placeOfCampaign, renderStaffCampaign)
		}}
}

func placeOfCampaign(c campaign.Campaign) position { return position{c.CreatedAt, c.ID} }

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
func (s *Server) stopCampaign(to campaign.Status) operation[stopCampaignIn, stored[wire.StaffCampaign]] {
	return func(ctx context.Context, in *stopCampaignIn) (*stored[wire.StaffCampaign], error) {
		render := func(c campaign.Campaign, ended bool) (int, []byte) {
			if ended {
				return in.renderStored(refuse(wire.CodeCampaignEnded))
			}
			return http.StatusOK, encodeBody(renderStaffCampaign(c))
		}
		return storedAs[wire.StaffCampaign](s.cfg.Store.StopCampaign(ctx, in.Write, in.ID, to, render))
	}
}
