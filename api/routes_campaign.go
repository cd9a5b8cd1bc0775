package api

import (
	"hongbao/api/rest"
	"hongbao/internal/campaign"
	"hongbao/wire"
)

func (s *Server) campaignRoutes() []*rest.Route {
	const path, tag = wire.PathCampaigns, "campaigns"
	change := func(name, verb, summary, about string, to campaign.Status, problems ...wire.Code) *rest.Route {
		return rest.Post(rest.Route{
			ID: name, Path: path + "/{id}/" + verb, Tag: tag, Summary: summary,
			About:    about + " The request can be repeated. The body is optional: omit it or send an empty object.",
			Optional: true, Answers: rest.OK("The campaign after the change."), Problems: problems,
		}, s.setCampaign(to))
	}
	return []*rest.Route{
		rest.Post(rest.Route{
			ID: "createCampaign", Path: path, Tag: tag, Summary: "Create a campaign",
			About: "Opens one packet like the template every day at the same local time. The packet is created, and its sender " +
				"charged, ten minutes before. It is then a packet like any other and is independent of the campaign. When a " +
				"charge is declined, the packet of that day is rejected and the next days go on. A packet that could not be " +
				"created in time is created late, unless it would have expired.",
			Body: wire.CreateCampaign{}, MaxBody: rest.CreateBodyLimit, Answers: rest.Created("The campaign; it is active."),
			Problems: []wire.Code{wire.CodeManyCampaigns},
		}, s.createCampaign),
		rest.Get(rest.Route{
			ID: "listCampaigns", Path: path, Tag: tag, Summary: "List campaigns",
			About: "Newest first.", Answers: rest.OK("A page of campaigns."),
		}, s.campaigns().Page()),
		rest.Get(rest.Route{
			ID: "getCampaign", Path: path + "/{id}", Tag: tag, Summary: "Get a campaign",
			About:   "Returns the campaign with its current status and its next opening time.",
			Answers: rest.OK("The current campaign."),
		}, s.getCampaign),
		rest.Get(rest.Route{
			ID: "listCampaignDays", Path: path + "/{id}/days", Tag: tag, Summary: "List the days of a campaign",
			About:   "Returns what happened on each day. Newest first.",
			Answers: rest.OK("A page of days."),
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
func (s *Server) staffCampaignRoutes() []*rest.Route {
	const path, tag = wire.PathStaffCampaigns, "staff campaigns"
	stop := func(name, verb, summary, about string, to campaign.Status, problems ...wire.Code) *rest.Route {
		return rest.Post(rest.Route{
			ID: name, Path: path + "/{id}/" + verb, Roles: rest.Holders, Tag: tag, Summary: summary,
			About:   about + " A campaign in that status already does not change; this is audited too.",
			Answers: rest.OK("The campaign after the change."), Problems: problems,
		}, s.stopCampaign(to))
	}
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listStaffCampaigns", Path: path, Tag: tag, Summary: "List the campaigns of all apps",
			About: "Newest first. Filters are combined with AND.", Answers: rest.OK("A page of campaigns."),
		}, s.staffCampaigns().Page()),
		rest.Get(rest.Route{
			ID: "getStaffCampaign", Path: path + "/{id}", Tag: tag, Summary: "Get a campaign of any app",
			About:   "Returns the campaign with its current status and its app.",
			Answers: rest.OK("The current campaign."),
		}, s.getStaffCampaign),
		rest.Get(rest.Route{
			ID: "listStaffCampaignDays", Path: path + "/{id}/days", Tag: tag, Summary: "List the days of a campaign of any app",
			About: "Returns the same as for the app.", Answers: rest.OK("A page of days."),
		}, s.listCampaignDays),
		stop("pauseStaffCampaign", "pause", "Pause a campaign of any app", "Creates no more packets until its app resumes it. A packet that "+
			"is being created is completed.", campaign.StatusPaused, wire.CodeCampaignEnded),
		stop("endStaffCampaign", "end", "End a campaign of any app", "Creates no more packets. A packet that is being created is completed; "+
			"it can be recalled. An ended campaign cannot be resumed.", campaign.StatusEnded),
	}
}
