package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/campaign"
)

// CampaignWorkflow is the name under which the workflow of campaigns is registered.
const CampaignWorkflow = "Campaign"

// CampaignInput starts a look at a campaign.
type CampaignInput struct {
	ID string `json:"id"`
}

// CampaignID returns the id of a campaign's schedule. Temporal adds the time to those of
// its runs.
func CampaignID(id string) string { return "campaign/" + id }

var campaigns *activities.Campaigns

// campaignTimeout is how long one look at a campaign tries. The schedule, or whoever
// finds that a packet is late, looks again.
const campaignTimeout = time.Hour

// Campaign makes the packets of a campaign that are due and returns the days it decided.
// The schedule starts it, and the worker when the schedule did not; any run may be
// repeated, and two may run at once.
func Campaign(ctx workflow.Context, in CampaignInput) ([]campaign.Day, error) {
	ctx = workflow.WithActivityOptions(ctx,
		workflow.ActivityOptions{StartToCloseTimeout: bulkTimeout, ScheduleToCloseTimeout: campaignTimeout,
			HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: "make the packets that are due"})
	return step[[]campaign.Day](ctx, campaigns.MakeCampaignPackets, in.ID)
}
