package api

import (
	"net/http"

	"hongbao/internal/campaign"
)

// StaffCampaign is a campaign in answers to staff.
type StaffCampaign struct {
	Campaign
	App string `json:"app" doc:"The app that created it." example:"shop"`
}

// StaffCampaigns is a page of campaigns.
type StaffCampaigns struct {
	Items      []StaffCampaign  `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// CampaignDecision is the body of a pause or an end by staff.
type CampaignDecision struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the sender has left, ticket 4711"`
}

func renderStaffCampaign(c campaign.Campaign) StaffCampaign {
	return StaffCampaign{Campaign: renderCampaign(c), App: c.App}
}

func listStaffCampaigns(r *request) (answer, error) {
	found, next, err := r.listedCampaigns("staff campaigns")
	if err != nil {
		return answer{}, err
	}
	page := StaffCampaigns{Items: []StaffCampaign{}, NextCursor: next}
	for _, c := range found {
		page.Items = append(page.Items, renderStaffCampaign(c))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

func getStaffCampaign(r *request) (answer, error) {
	c, err := r.campaign()
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: renderStaffCampaign(c)}, nil
}

// stopCampaign returns the handler by which staff pauses or ends a campaign.
func stopCampaign(to campaign.Status) func(*request) (answer, error) {
	return func(r *request) (answer, error) {
		// A malformed id in the path is answered like an unknown id.
		id, idErr := r.campaignID()
		reason, err := readReason(r.payload)
		if err != nil {
			return answer{}, err
		}
		w, err := r.staffWrite(CampaignDecision(reason), reason.Reason)
		if err != nil {
			return answer{}, err
		}
		if idErr != nil {
			return answer{}, idErr
		}
		w.Route = r.c.Method() + " " + r.route.on(id)
		stored, err := r.server.cfg.Store.StopCampaign(r.ctx, w, id, to, func(c campaign.Campaign, ended bool) (int, []byte) {
			if ended {
				problem := refuse(CodeCampaignEnded).problem(instanceOf(r.c), r.id)
				raw := encodeBody(problem)
				return problem.Status, raw
			}
			raw := encodeBody(renderStaffCampaign(c))
			return http.StatusOK, raw
		})
		return staffAnswer(stored, err, refuse(CodeCampaignNotFound))
	}
}
