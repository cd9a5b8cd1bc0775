package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/campaign"
)

// campaignParam is the campaign of a path.
var campaignParam = param{in: "path", name: "id", required: true, schema: "", example: "3q5k9v0c1m7e2u8h4r6t", about: "The campaign's id."}

var campaignStatusParam = param{in: "query", name: "status", schema: CampaignStatus(""), example: string(campaign.StatusActive),
	about: "Campaigns in this status."}

func campaignRoutes() []*route {
	change := func(name, verb, summary, about string, to campaign.Status, problems ...Code) *route {
		return &route{
			id: name, method: http.MethodPost, path: "/v1/campaigns/{id}/" + verb, listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: summary, about: about + " Repeatable. The body may be left out or be an empty object.",
			params: []param{campaignParam}, body: NoMembers{}, optional: true,
			answers:  []reply{{status: http.StatusOK, about: "The campaign as it is then.", body: Campaign{}}},
			problems: append(problems, CodeCampaignNotFound), handle: setCampaign(to),
		}
	}
	return []*route{
		{
			id: "createCampaign", method: http.MethodPost, path: "/v1/campaigns", listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: "Create a campaign",
			about: "A packet like the template opens on every day at the same local time. Ten minutes before, it is created, and its sender " +
				"charged, as if the app had asked for it then; from there on it is a packet as any other, also when the campaign is paused or " +
				"ended. Where the charge is declined, the packet of that day is rejected, and the next day's is made all the same. What could not " +
				"be made in time is made late, as long as it would not have expired.",
			params: []param{keyParam}, body: CreateCampaign{}, maxBody: createBodyLimit,
			answers:  []reply{{status: http.StatusCreated, about: "The campaign, active.", body: Campaign{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeKeyReused, CodeManyCampaigns}, handle: createCampaign,
		},
		{
			id: "listCampaigns", method: http.MethodGet, path: "/v1/campaigns", listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: "List campaigns", about: "Newest first.",
			params:   []param{campaignStatusParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of campaigns.", body: Campaigns{}}},
			problems: []Code{CodeInvalidRequest}, handle: listCampaigns,
		},
		{
			id: "getCampaign", method: http.MethodGet, path: "/v1/campaigns/{id}", listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: "Get a campaign", params: []param{campaignParam},
			answers:  []reply{{status: http.StatusOK, about: "The campaign as it is now.", body: Campaign{}}},
			problems: []Code{CodeCampaignNotFound}, handle: getCampaign,
		},
		{
			id: "listCampaignDays", method: http.MethodGet, path: "/v1/campaigns/{id}/days", listener: listenPublic, realm: realmApp,
			tag: "campaigns", summary: "List what became of the days of a campaign", about: "Newest first.",
			params:   []param{campaignParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of days.", body: CampaignDays{}}},
			problems: []Code{CodeCampaignNotFound, CodeInvalidRequest}, handle: listCampaignDays,
		},
		change("pauseCampaign", "pause", "Pause a campaign", "No packets are made until it is resumed, but for one that is being made by then.",
			campaign.StatusPaused, CodeCampaignEnded),
		change("resumeCampaign", "resume", "Go on with a campaign that is paused", "It goes on with the first day whose packet opens from now "+
			"on, and ends when there is none; one that has ended for that reason stays so.", campaign.StatusActive, CodeCampaignEnded),
		change("endCampaign", "end", "End a campaign", "For ever: no more packets are made, but for one that is being made by then.",
			campaign.StatusEnded),
	}
}

// staffCampaignRoutes are for operations too: like a hold, what they write stops something.
func staffCampaignRoutes() []*route {
	stop := func(name, verb, summary, about string, to campaign.Status, problems ...Code) *route {
		return &route{
			id: name, method: http.MethodPost, path: "/v1/staff/campaigns/{id}/" + verb, listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff",
			summary: summary, about: about + " One that is stopped already stays as it is; this is audited too.",
			params: []param{campaignParam, keyParam}, body: CampaignDecision{},
			answers:  []reply{{status: http.StatusOK, about: "The campaign as it is then.", body: StaffCampaign{}, headers: []param{replayed}}},
			problems: append(problems, CodeKeyRequired, CodeCampaignNotFound, CodeKeyReused), handle: stopCampaign(to),
		}
	}
	return []*route{
		{
			id: "listStaffCampaigns", method: http.MethodGet, path: "/v1/staff/campaigns", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List the campaigns of all apps", about: "Newest first. All filters have to fit.",
			params: []param{campaignStatusParam, {in: "query", name: "app", schema: "", example: "shop", about: "Campaigns of this app."},
				limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of campaigns.", body: StaffCampaigns{}}},
			problems: []Code{CodeInvalidRequest}, handle: listStaffCampaigns,
		},
		{
			id: "getStaffCampaign", method: http.MethodGet, path: "/v1/staff/campaigns/{id}", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Get a campaign of any app", params: []param{campaignParam},
			answers:  []reply{{status: http.StatusOK, about: "The campaign as it is now.", body: StaffCampaign{}}},
			problems: []Code{CodeCampaignNotFound}, handle: getStaffCampaign,
		},
		{
			id: "listStaffCampaignDays", method: http.MethodGet, path: "/v1/staff/campaigns/{id}/days", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "List what became of the days of a campaign of any app", about: "The same as for its app.",
			params:   []param{campaignParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of days.", body: CampaignDays{}}},
			problems: []Code{CodeCampaignNotFound, CodeInvalidRequest}, handle: listCampaignDays,
		},
		stop("pauseStaffCampaign", "pause", "Pause a campaign of any app", "No packets are made until its app resumes it, but for one that is "+
			"being made by then.", campaign.StatusPaused, CodeCampaignEnded),
		stop("endStaffCampaign", "end", "End a campaign of any app", "For ever: no more packets are made, but for one that is being made by "+
			"then, which can be recalled.", campaign.StatusEnded),
	}
}
