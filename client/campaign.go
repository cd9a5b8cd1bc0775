package client

import (
	"context"
	"iter"
	"net/http"

	"hongbao/wire"
)

func campaign(id string) string { return wire.PathCampaigns + "/" + segment(id) }

// CreateCampaign creates a campaign, which is active at once. It charges no one: each packet
// is created, and its sender charged, ten minutes before it opens. A repeat with the same
// Key returns the first answer; Campaign returns the current state. Refusals are
// problems: CodeInvalidRequest, also when no day is left until EndsOn, CodeKeyRequired for an
// invalid key, CodeKeyReused for the key of another request. After an error without a Problem,
// or with status 5xx, the result is unknown: repeat the call with the IdempotencyKey of the
// *CallError.
func (c *Client) CreateCampaign(ctx context.Context, r wire.CreateCampaign, key ...Key) (*wire.Campaign, error) {
	out := new(wire.Campaign)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: wire.PathCampaigns, key: keyOf(key), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Campaign returns the current campaign. Problems: CodeCampaignNotFound, also for a campaign
// of another app.
func (c *Client) Campaign(ctx context.Context, id string) (*wire.Campaign, error) {
	return get[wire.Campaign](ctx, c.caller, campaign(id), nil)
}

// ListCampaigns returns one page of the app's campaigns.
func (c *Client) ListCampaigns(ctx context.Context, f wire.CampaignFilter, p Page) (*wire.List[wire.Campaign], error) {
	return page[wire.Campaign](ctx, c.caller, wire.PathCampaigns, f, p)
}

// Campaigns iterates over the app's campaigns, newest first.
func (c *Client) Campaigns(ctx context.Context, f wire.CampaignFilter) iter.Seq2[*wire.Campaign, error] {
	return each[wire.Campaign](ctx, c.caller, wire.PathCampaigns, f)
}

// ListCampaignDays returns one page of the days of a campaign. Problems: CodeCampaignNotFound.
func (c *Client) ListCampaignDays(ctx context.Context, id string, p Page) (*wire.List[wire.CampaignDay], error) {
	return page[wire.CampaignDay](ctx, c.caller, campaign(id)+"/days", nil, p)
}

// CampaignDays iterates over the days of a campaign, newest first.
func (c *Client) CampaignDays(ctx context.Context, id string) iter.Seq2[*wire.CampaignDay, error] {
	return each[wire.CampaignDay](ctx, c.caller, campaign(id)+"/days", nil)
}

// PauseCampaign stops creating packets until ResumeCampaign; existing packets are not
// affected. It may be repeated. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (c *Client) PauseCampaign(ctx context.Context, id string) (*wire.Campaign, error) {
	return c.changeCampaign(ctx, id, "pause")
}

// ResumeCampaign continues with the first day whose opening time is in the future; days of the
// pause are not made up for. Without such a day the returned campaign is ended. It may be
// repeated. Problems: CodeCampaignNotFound, CodeCampaignEnded.
func (c *Client) ResumeCampaign(ctx context.Context, id string) (*wire.Campaign, error) {
	return c.changeCampaign(ctx, id, "resume")
}

// EndCampaign stops creating packets for ever; existing packets are not affected. It may be
// repeated. Problems: CodeCampaignNotFound.
func (c *Client) EndCampaign(ctx context.Context, id string) (*wire.Campaign, error) {
	return c.changeCampaign(ctx, id, "end")
}

func (c *Client) changeCampaign(ctx context.Context, id, verb string) (*wire.Campaign, error) {
	out := new(wire.Campaign)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: campaign(id) + "/" + verb}, out); err != nil {
		return nil, err
	}
	return out, nil
}
