package console

import (
	"net/http"

	"hongbao/client"
	"hongbao/wire"
)

// campaignsPage is a list of campaigns.
type campaignsPage struct {
	Status wire.CampaignStatus
	Items  []wire.StaffCampaign
	Next   string
}

// Tabs are the statuses to choose from; "" is all of them.
func (campaignsPage) Tabs() []wire.CampaignStatus {
	return []wire.CampaignStatus{"", wire.CampaignActive, wire.CampaignPaused, wire.CampaignEnded}
}

func (v *visit) listCampaigns() error {
	body := campaignsPage{Status: wire.CampaignStatus(v.query.Get("status"))}
	found, err := v.staff.ListCampaigns(v.r.Context(), wire.StaffCampaignFilter{Status: body.Status},
		client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body.Items = found.Items
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	v.show("campaigns", http.StatusOK, body)
	return nil
}

// campaignPage is one campaign with its days.
type campaignPage struct {
	Campaign *wire.StaffCampaign
	Days     *wire.List[wire.CampaignDay]
	Next     string
}

// Stops are the actions that its status allows.
func (p campaignPage) Stops() []string {
	switch p.Campaign.Status {
	case wire.CampaignActive:
		return []string{"pause", "end"}
	case wire.CampaignPaused:
		return []string{"end"}
	}
	return nil
}

// shownDays is how many days the page shows.
const shownDays = 50

func (v *visit) showCampaign() error {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	var body campaignPage
	var err error
	if body.Campaign, err = v.staff.Campaign(ctx, id); err != nil {
		return err
	}
	if body.Days, err = v.staff.ListCampaignDays(ctx, id, client.Page{Limit: shownDays, Cursor: v.query.Get("cursor")}); err != nil {
		return err
	}
	if body.Days.NextCursor != nil {
		body.Next = v.next(*body.Days.NextCursor)
	}
	v.show("campaign", http.StatusOK, body)
	return nil
}

// stopCampaign pauses or ends a campaign.
func (v *visit) stopCampaign() error {
	id, action := v.r.PathValue("id"), v.r.PathValue("action")
	key, req := v.key(), wire.Reason{Reason: v.reason()}
	var err error
	switch action {
	case "pause":
		_, err = v.staff.PauseCampaign(v.r.Context(), id, req, key)
	case "end":
		_, err = v.staff.EndCampaign(v.r.Context(), id, req, key)
	default:
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/campaigns/"+id, "campaign_"+action)
}
