package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
)

// StaffCampaign is a campaign of any app, in answers to staff.
type StaffCampaign struct {
	Campaign
	App string `json:"app"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *StaffCampaign) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &c.Campaign); err != nil {
		return err
	}
	own := struct {
		App *string `json:"app"`
	}{&c.App}
	return json.Unmarshal(text, &own)
}

// StaffCampaignFilter filters the list of campaigns; zero members do not filter.
type StaffCampaignFilter struct {
	App    string
	Status CampaignStatus
}

func (f StaffCampaignFilter) values() url.Values {
	v := CampaignFilter{Status: f.Status}.values()
	put(v, "app", f.App)
	return v
}

const staffCampaigns = "/v1/staff/campaigns"

// ListCampaigns returns one page of the campaigns of all apps.
func (s *Staff) ListCampaigns(ctx context.Context, f StaffCampaignFilter, p Page) (*List[StaffCampaign], error) {
	return page[StaffCampaign](ctx, s.caller, staffCampaigns, f.values(), p)
}

// Campaigns iterates over the campaigns of all apps, newest first.
func (s *Staff) Campaigns(ctx context.Context, f StaffCampaignFilter) iter.Seq2[*StaffCampaign, error] {
	return each[StaffCampaign](ctx, s.caller, staffCampaigns, f.values())
}

// Campaign returns a campaign of any app. Problems: CodeCampaignNotFound.
func (s *Staff) Campaign(ctx context.Context, id string) (*StaffCampaign, error) {
	c := new(StaffCampaign)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: staffCampaigns + "/" + segment(id)}, c); err != nil {
		return nil, err
	}
	return c, nil
}

// ListCampaignDays returns one page of the days of a campaign of any app.
func (s *Staff) ListCampaignDays(ctx context.Context, id string, p Page) (*List[CampaignDay], error) {
	return page[CampaignDay](ctx, s.caller, staffCampaigns+"/"+segment(id)+"/days", nil, p)
}

// PauseCampaign pauses a campaign of any app until its app resumes it; a packet that is being
// created is completed. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (s *Staff) PauseCampaign(ctx context.Context, id string, r DecisionRequest) (*StaffCampaign, error) {
	return decide[StaffCampaign](ctx, s, staffCampaigns+"/"+segment(id)+"/pause", r.IdempotencyKey, r)
}

// EndCampaign ends a campaign of any app, for ever. Problems: CodeCampaignNotFound.
func (s *Staff) EndCampaign(ctx context.Context, id string, r DecisionRequest) (*StaffCampaign, error) {
	return decide[StaffCampaign](ctx, s, staffCampaigns+"/"+segment(id)+"/end", r.IdempotencyKey, r)
}
