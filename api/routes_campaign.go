package api

import (
	"hongbao/internal/campaign"
	"hongbao/wire"
)

func (s *Server) campaignRoutes() []*route {
	const path, tag = wire.PathCampaigns, "campaigns"
	change := func(name, verb, summary, about string, to campaign.Status, problems ...wire.Code) *route {
		return post(route{
			id: name, path: path + "/{id}/" + verb, tag: tag, summary: summary,
			about:    about + " The request can be repeated. The body is optional: omit it or send an empty object.",
			optional: true, answers: ok("The campaign after the change."), problems: problems,
		}, s.setCampaign(to))
	}
	return []*route{
		post(route{
			id: "createCampaign", path: path, tag: tag, summary: "Create a campaign",
			about: "Opens one packet like the template every day at the same local time. The packet is created, and its sender " +
				"charged, ten minutes before. It is then a packet like any other and is independent of the campaign. When a " +
				"charge is declined, the packet of that day is rejected and the next days go on. A packet that could not be " +
				"created in time is created late, unless it would have expired.",
			body: wire.CreateCampaign{}, maxBody: createBodyLimit, answers: created("The campaign; it is active."),
			problems: []wire.Code{wire.CodeManyCampaigns},
		}, s.createCampaign),
		get(route{
			id: "listCampaigns", path: path, tag: tag, summary: "List campaigns",
			about: "Newest first.", answers: ok("A page of campaigns."),
		}, s.campaigns().page()),
		get(route{
			id: "getCampaign", path: path + "/{id}", tag: tag, summary: "Get a campaign",
			about:   "Returns the campaign with its current status and its next opening time.",
			answers: ok("The current campaign."),
		}, s.getCampaign),
		get(route{
			id: "listCampaignDays", path: path + "/{id}/days", tag: tag, summary: "List the days of a campaign",
			about:   "Returns what happened on each day. Newest first.",
			answers: ok("A page of days."),
		}, s.listCampaignDays),
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
func (s *Server) staffCampaignRoutes() []*route {
	const path, tag = wire.PathStaffCampaigns, "staff campaigns"
	stop := func(name, verb, summary, about string, to campaign.Status, problems ...wire.Code) *route {
		return post(route{
			id: name, path: path + "/{id}/" + verb, roles: holders, tag: tag, summary: summary,
			about:   about + " A campaign in that status already does not change; this is audited too.",
			answers: ok("The campaign after the change."), problems: problems,
		}, s.stopCampaign(to))
	}
	return []*route{
		get(route{
			id: "listStaffCampaigns", path: path, tag: tag, summary: "List the campaigns of all apps",
			about: "Newest first. Filters are combined with AND.", answers: ok("A page of campaigns."),
		}, s.staffCampaigns().page()),
		get(route{
			id: "getStaffCampaign", path: path + "/{id}", tag: tag, summary: "Get a campaign of any app",
			about:   "Returns the campaign with its current status and its app.",
			answers: ok("The current campaign."),
		}, s.getStaffCampaign),
		get(route{
			id: "listStaffCampaignDays", path: path + "/{id}/days", tag: tag, summary: "List the days of a campaign of any app",
			about: "Returns the same as for the app.", answers: ok("A page of days."),
		}, s.listCampaignDays),
		stop("pauseStaffCampaign", "pause", "Pause a campaign of any app", "Creates no more packets until its app resumes it. A packet that "+
			"is being created is completed.", campaign.StatusPaused, wire.CodeCampaignEnded),
		stop("endStaffCampaign", "end", "End a campaign of any app", "Creates no more packets. A packet that is being created is completed; "+
			"it can be recalled. An ended campaign cannot be resumed.", campaign.StatusEnded),
	}
}
