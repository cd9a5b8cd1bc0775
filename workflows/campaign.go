package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/campaign"
)

// CampaignWorkflow is the registered name of the workflow of campaigns.
const CampaignWorkflow = "Campaign"

// CampaignInput is the input of a campaign's run.
type CampaignInput struct {
	ID string `json:"id"`
}

// CampaignID returns the id of a campaign's schedule. Temporal appends the time to the ids of its
// runs.
func CampaignID(id string) string { return "campaign/" + id }

var campaigns *activities.Campaigns

// campaignTimeout bounds one run. The schedule, or the worker's check for late packets, starts
// the next.
const campaignTimeout = time.Hour

// Campaign creates the due packets of a campaign and returns the days that it decided. The
// schedule starts it, or the worker if the schedule did not. Runs are repeatable and may be
// concurrent.
func Campaign(ctx workflow.Context, in CampaignInput) ([]campaign.Day, error) {
	ctx = workflow.WithActivityOptions(ctx,
		workflow.ActivityOptions{StartToCloseTimeout: bulkTimeout, ScheduleToCloseTimeout: campaignTimeout,
			HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: "create the packets that are due"})
	return step[[]campaign.Day](ctx, campaigns.MakeCampaignPackets, in.ID)
}
