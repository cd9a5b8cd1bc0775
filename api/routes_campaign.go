package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/campaign"
	"hongbao/wire"
)

// campaignParam is the campaign of a path.
var campaignParam = param{in: "path", name: "id", required: true, schema: "", example: "3q5k9v0c1m7e2u8h4r6t", about: "The campaign's id."}

var campaignStatusParam = param{in: "query", name: "status", schema: wire.CampaignStatus(""), example: string(campaign.StatusActive),
	about: "Campaigns in this status."}

func campaignRoutes() []*route {
	change := func(name, verb, summary, about string, to campaign.Status, problems ...wire.Code) *route {
		return &route{
			id: name, method: http.MethodPost, path: wire.PathCampaigns + "/{id}/" + verb, listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: summary, about: about + " The request can be repeated. The body is optional: omit it or send an empty object.",
			params: []param{campaignParam}, body: wire.NoMembers{}, optional: true,
			answers:  []reply{{status: http.StatusOK, about: "The campaign after the change.", body: wire.Campaign{}}},
			problems: append(problems, wire.CodeCampaignNotFound), handle: setCampaign(to),
		}
	}
	return []*route{
		{
			id: "createCampaign", method: http.MethodPost, path: wire.PathCampaigns, listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: "Create a campaign",
			about: "Opens one packet like the template every day at the same local time. The packet is created, and its sender " +
				"charged, ten minutes before. It is then a packet like any other and is independent of the campaign. When a " +
				"charge is declined, the packet of that day is rejected and the next days go on. A packet that could not be " +
				"created in time is created late, unless it would have expired.",
			params: []param{keyParam}, body: wire.CreateCampaign{}, maxBody: createBodyLimit,
			answers:  []reply{{status: http.StatusCreated, about: "The campaign; it is active.", body: wire.Campaign{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeKeyReused, wire.CodeManyCampaigns}, handle: createCampaign,
		},
		{
			id: "listCampaigns", method: http.MethodGet, path: wire.PathCampaigns, listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary: "List campaigns",
			about:   "Newest first.",
			params:  []param{campaignStatusParam, limitParam, cursorParam},
			answers: []reply{{status: http.StatusOK, about: "A page of campaigns.", body: wire.List[wire.Campaign]{}}},
			handle:  listCampaigns,
		},
		{
			id: "getCampaign", method: http.MethodGet, path: wire.PathCampaigns + "/{id}", listener: listenPublic, realm: realmApp, tag: "campaigns",
			summary:  "Get a campaign",
			about:    "Returns the campaign with its current status and its next opening time.",
			params:   []param{campaignParam},
			answers:  []reply{{status: http.StatusOK, about: "The current campaign.", body: wire.Campaign{}}},
			problems: []wire.Code{wire.CodeCampaignNotFound}, handle: getCampaign,
		},
		{
			id: "listCampaignDays", method: http.MethodGet, path: wire.PathCampaigns + "/{id}/days", listener: listenPublic, realm: realmApp,
			tag: "campaigns", summary: "List the days of a campaign",
			about:    "Returns what happened on each day. Newest first.",
			params:   []param{campaignParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of days.", body: wire.List[wire.CampaignDay]{}}},
			problems: []wire.Code{wire.CodeCampaignNotFound}, handle: listCampaignDays,
		},
		change("pauseCampaign", "pause", "Pause a campaign", "Creates no more packets until it is resumed. A packet that is being created "+
			"is completed.",
			campaign.StatusPaused, wire.CodeCampaignEnded),
		change("resumeCampaign", "resume", "Resume a paused campaign", "Continues with the first day whose opening time is in the future. "+
			"Without such a day the campaign ends, for ever.", campaign.StatusActive, wire.CodeCampaignEnded),
		change("endCampaign", "end", "End a campaign", "Creates no more packets. A packet that is being created is completed. An ended "+
			"campaign cannot be resumed.",
			campaign.StatusEnded),
	}
}

// staffCampaignRoutes are for operations too: like a hold, what they write stops something.
func staffCampaignRoutes() []*route {
	stop := func(name, verb, summary, about string, to campaign.Status, problems ...wire.Code) *route {
		return &route{
			id: name, method: http.MethodPost, path: wire.PathStaffCampaigns + "/{id}/" + verb, listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff campaigns",
			summary: summary, about: about + " A campaign in that status already does not change; this is audited too.",
			params: []param{campaignParam, keyParam}, body: wire.CampaignDecision{},
			answers: []reply{{status: http.StatusOK, about: "The campaign after the change.", body: wire.StaffCampaign{},
				headers: []param{replayed}}},
			problems: append(problems, wire.CodeKeyRequired, wire.CodeCampaignNotFound, wire.CodeKeyReused), handle: stopCampaign(to),
		}
	}
	return []*route{
		{
			id: "listStaffCampaigns", method: http.MethodGet, path: wire.PathStaffCampaigns, listener: listenStaff, realm: realmStaff,
			tag:     "staff campaigns",
			summary: "List the campaigns of all apps",
			about:   "Newest first. Filters are combined with AND.",
			params: []param{campaignStatusParam, {in: "query", name: "app", schema: "", example: "shop", about: "Campaigns of this app."},
				limitParam, cursorParam},
			answers: []reply{{status: http.StatusOK, about: "A page of campaigns.", body: wire.List[wire.StaffCampaign]{}}},
			handle:  listStaffCampaigns,
		},
		{
			id: "getStaffCampaign", method: http.MethodGet, path: wire.PathStaffCampaigns + "/{id}", listener: listenStaff, realm: realmStaff,
			tag:      "staff campaigns",
			summary:  "Get a campaign of any app",
			about:    "Returns the campaign with its current status and its app.",
			params:   []param{campaignParam},
			answers:  []reply{{status: http.StatusOK, about: "The current campaign.", body: wire.StaffCampaign{}}},
			problems: []wire.Code{wire.CodeCampaignNotFound}, handle: getStaffCampaign,
		},
		{
			id: "listStaffCampaignDays", method: http.MethodGet, path: wire.PathStaffCampaigns + "/{id}/days", listener: listenStaff,
			realm: realmStaff,
			tag:   "staff campaigns", summary: "List the days of a campaign of any app",
			about:    "Returns the same as for the app.",
			params:   []param{campaignParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of days.", body: wire.List[wire.CampaignDay]{}}},
			problems: []wire.Code{wire.CodeCampaignNotFound}, handle: listCampaignDays,
		},
		stop("pauseStaffCampaign", "pause", "Pause a campaign of any app", "Creates no more packets until its app resumes it. A packet that "+
			"is being created is completed.", campaign.StatusPaused, wire.CodeCampaignEnded),
		stop("endStaffCampaign", "end", "End a campaign of any app", "Creates no more packets. A packet that is being created is completed; "+
			"it can be recalled. An ended campaign cannot be resumed.", campaign.StatusEnded),
	}
}
