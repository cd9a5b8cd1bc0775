package api

import (
	"net/http"

	"hongbao/internal/campaign"
	"hongbao/wire"
)

func renderStaffCampaign(c campaign.Campaign) wire.StaffCampaign {
	return wire.StaffCampaign{Campaign: renderCampaign(c), App: c.App}
}

func listStaffCampaigns(r *request) (answer, error) {
	found, next, err := r.listedCampaigns("staff campaigns")
	if err != nil {
		return answer{}, err
	}
	page := wire.List[wire.StaffCampaign]{Items: []wire.StaffCampaign{}, NextCursor: next}
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
		w, err := r.staffWrite(wire.CampaignDecision(reason), reason.Reason)
		if err != nil {
			return answer{}, err
		}
		if idErr != nil {
			return answer{}, idErr
		}
		w.Route = r.c.Method() + " " + r.route.on(id)
		stored, err := r.server.cfg.Store.StopCampaign(r.ctx, w, id, to, func(c campaign.Campaign, ended bool) (int, []byte) {
			if ended {
				problem := refuse(wire.CodeCampaignEnded).problem(instanceOf(r.c), r.id)
				raw := encodeBody(problem)
				return problem.Status, raw
			}
			raw := encodeBody(renderStaffCampaign(c))
			return http.StatusOK, raw
		})
		return staffAnswer(stored, err, refuse(wire.CodeCampaignNotFound))
	}
}
