package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListCampaigns returns one page of the campaigns of all apps.
func (s *Staff) ListCampaigns(ctx context.Context, f wire.StaffCampaignFilter, p Page) (*wire.List[wire.StaffCampaign], error) {
	return page[wire.StaffCampaign](ctx, s.caller, wire.PathStaffCampaigns, f, p)
}

// Campaigns iterates over the campaigns of all apps, newest first.
func (s *Staff) Campaigns(ctx context.Context, f wire.StaffCampaignFilter) iter.Seq2[*wire.StaffCampaign, error] {
	return each[wire.StaffCampaign](ctx, s.caller, wire.PathStaffCampaigns, f)
}

// Campaign returns a campaign of any app. Problems: CodeCampaignNotFound.
func (s *Staff) Campaign(ctx context.Context, id string) (*wire.StaffCampaign, error) {
	return get[wire.StaffCampaign](ctx, s.caller, wire.PathStaffCampaigns+"/"+segment(id), nil)
}

// ListCampaignDays returns one page of the days of a campaign of any app.
func (s *Staff) ListCampaignDays(ctx context.Context, id string, p Page) (*wire.List[wire.CampaignDay], error) {
	return page[wire.CampaignDay](ctx, s.caller, wire.PathStaffCampaigns+"/"+segment(id)+"/days", nil, p)
}

// PauseCampaign pauses a campaign of any app until its app resumes it; a packet that is being
// created is completed. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (s *Staff) PauseCampaign(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.StaffCampaign, error) {
	return decide[wire.StaffCampaign](ctx, s, wire.PathStaffCampaigns+"/"+segment(id)+"/pause", r, key)
}

// EndCampaign ends a campaign of any app, for ever. Problems: CodeCampaignNotFound.
func (s *Staff) EndCampaign(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.StaffCampaign, error) {
	return decide[wire.StaffCampaign](ctx, s, wire.PathStaffCampaigns+"/"+segment(id)+"/end", r, key)
}
