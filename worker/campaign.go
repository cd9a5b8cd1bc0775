package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/campaign"
	"hongbao/internal/pause"
	"hongbao/workflows"
)

// CampaignStore is the part of MySQL that stores campaigns.
type CampaignStore interface {
	UnsyncedCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	ScheduledCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	OverdueCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	MarkCampaignSynced(ctx context.Context, id string, revision int) error
}

// Campaigns is the part of a worker that runs campaigns.
type Campaigns struct {
	Steps *activities.Campaigns
	Store CampaignStore
	// Every is the interval at which missing schedules are recreated and late packets are found;
	// 0: 30 s.
	Every time.Duration
}

const campaignBatch = 100

func (c *Campaigns) register(w sdk.Worker) {
	if c == nil {
		return
	}
	w.RegisterWorkflowWithOptions(workflows.Campaign, workflow.RegisterOptions{Name: workflows.CampaignWorkflow})
	w.RegisterActivity(c.Steps)
}

// campaigns keeps the Temporal schedules in line with the rows until ctx ends.
func (w *Worker) campaigns(ctx context.Context) error {
	c := w.cfg.Campaigns
	if c == nil {
		return nil
	}
	every := c.Every
	if every == 0 {
		every = scheduleEvery
	}
	changed := campaignPager{list: c.Store.UnsyncedCampaigns, do: w.syncCampaign}
	late := campaignPager{list: c.Store.OverdueCampaigns, do: w.cfg.Starter.StartCampaign}
	kept := campaignPager{list: c.Store.ScheduledCampaigns, do: w.recreateCampaignSchedule}
	var looked time.Time
	for {
		wait := requestPollEvery
		err := changed.next(ctx)
		if time.Since(looked) >= every {
			err, looked = errors.Join(err, late.next(ctx), kept.next(ctx)), time.Now()
		}
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Campaign schedules not synchronized; retrying.", slog.Any("error", err))
			}
			wait = errorPause
		}
		if !pause.For(ctx, wait) {
			return nil
		}
	}
}

// campaignPager applies do to each campaign of a list, one page per call. Failing campaigns do
// not delay the others.
type campaignPager struct {
	list  func(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	do    func(context.Context, campaign.Campaign) error
	after string // the last id of the previous page; "" starts from the first
}

func (t *campaignPager) next(ctx context.Context) error {
	some, err := t.list(ctx, t.after, campaignBatch)
	t.after = ""
	if n := len(some); n == campaignBatch || n > 0 && err != nil { // there may be more, or an unreadable row
		t.after = some[n-1].ID
	}
	for _, c := range some {
		if ctx.Err() != nil {
			return err
		}
		err = errors.Join(err, t.do(ctx, c))
	}
	return err
}

// syncCampaign updates the schedule of a changed campaign. Another worker may do so concurrently
// for another change: CampaignSynced compares the revision, and a stale one is synchronized
// again.
func (w *Worker) syncCampaign(ctx context.Context, c campaign.Campaign) error {
	if err := w.cfg.Starter.ScheduleCampaign(ctx, c); err != nil {
		return err
	}
	return w.cfg.Campaigns.Store.MarkCampaignSynced(ctx, c.ID, c.Revision)
}

// recreateCampaignSchedule creates a schedule that is missing, for example after Temporal lost
// its database.
func (w *Worker) recreateCampaignSchedule(ctx context.Context, c campaign.Campaign) error {
	made, err := w.cfg.Starter.createSchedule(ctx, campaignSchedule(c))
	if err != nil || !made {
		return err
	}
	return w.cfg.Campaigns.Store.MarkCampaignSynced(ctx, c.ID, c.Revision)
}

// StartCampaign starts a run that creates the due packets of a campaign, also when its schedule
// did not fire. Reasons are a clock change, a pause by an operator in Temporal, and an outage
// longer than the catch-up window. A run that is open is left alone.
func (s *Starter) StartCampaign(ctx context.Context, c campaign.Campaign) error {
	id := workflows.CampaignID(c.ID)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                workflows.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            workflows.CampaignSummary(c),
		TypedSearchAttributes:                    temporal.NewSearchAttributes(workflows.AttrApp.ValueSet(c.App)),
	}, workflows.CampaignWorkflow, workflows.CampaignInput{ID: c.ID})
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &started) {
		return nil
	}
	return fmt.Errorf("start %s: %w", id, err)
}

// ScheduleCampaign creates, pauses, resumes or deletes the schedule of a campaign by its status.
// Repeatable. A campaign that begins or resumes runs at once, because its first packet may be
// due.
func (s *Starter) ScheduleCampaign(ctx context.Context, c campaign.Campaign) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	options := campaignSchedule(c)
	handle := s.client.ScheduleClient().GetHandle(ctx, options.ID)
	var gone *serviceerror.NotFound
	if c.Status == campaign.StatusEnded {
		if err := handle.Delete(ctx); err != nil && !errors.As(err, &gone) {
			return fmt.Errorf("delete schedule %s: %w", options.ID, err)
		}
		return nil
	}
	options.TriggerImmediately = c.Status == campaign.StatusActive
	made, err := s.createSchedule(ctx, options)
	if err != nil || made {
		return err
	}
	if c.Status == campaign.StatusPaused {
		err = handle.Pause(ctx, client.SchedulePauseOptions{Note: pausedNote})
	} else if err = handle.Unpause(ctx, client.ScheduleUnpauseOptions{Note: "The campaign is resumed."}); err == nil {
		// Not by a trigger of the schedule. Of two changes in one of its workflow tasks the
		// server drops the first (seen with 1.29), and the schedule would stay paused.
		return s.StartCampaign(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("change schedule %s: %w", options.ID, err)
	}
	return nil
}

const pausedNote = "The campaign is paused."

// campaignSchedule starts a run campaign.Lead before each packet opens, by the local time of the
// campaign's zone.
func campaignSchedule(c campaign.Campaign) client.ScheduleOptions {
	id := workflows.CampaignID(c.ID)
	minute := (c.Minute - int(campaign.CreateAhead/time.Minute) + campaign.MinutesADay) % campaign.MinutesADay
	options := client.ScheduleOptions{
		ID: id,
		Spec: client.ScheduleSpec{TimeZoneName: c.Zone, Calendars: []client.ScheduleCalendarSpec{{
			Hour: []client.ScheduleRange{{Start: minute / 60}}, Minute: []client.ScheduleRange{{Start: minute % 60}},
			Comment: "make the packet of the day, " + campaign.CreateAhead.String() + " before it opens"}}},
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: workflows.CampaignWorkflow, Args: []any{workflows.CampaignInput{ID: c.ID}}, TaskQueue: workflows.TaskQueue,
			TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrApp.ValueSet(c.App)),
			StaticSummary:         workflows.CampaignSummary(c),
		},
		// A run creates everything that is due. A late run also covers missed ones whose packets
		// have not expired.
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: max(time.Duration(c.Template.Life)*time.Second, time.Minute),
		Paused: c.Status == campaign.StatusPaused,
	}
	if options.Paused {
		options.Note = pausedNote
	}
	if opens, err := c.OpensAt(c.StartsOn); err == nil { // nothing is due before that
		options.Spec.StartAt = opens.Add(-campaign.CreateAhead - time.Hour)
	}
	return options
}
