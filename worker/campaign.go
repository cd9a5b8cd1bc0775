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
	"hongbao/workflows"
)

// CampaignStore is the part of MySQL that knows which campaigns there are.
type CampaignStore interface {
	UnsyncedCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	ScheduledCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	OverdueCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	MarkCampaignSynced(ctx context.Context, id string, revision int) error
}

// Campaigns is what a worker needs to carry out campaigns.
type Campaigns struct {
	Steps *activities.Campaigns
	Store CampaignStore
	// Every is how often schedules that are gone are made again, and packets that are
	// late are looked for; 0: every 30 s.
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

// campaigns keeps the schedules of campaigns as the rows want them, until ctx ends.
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
				w.cfg.Logger.WarnContext(ctx, "Campaigns could not be looked after; it is tried again.", slog.Any("error", err))
			}
			wait = errorPause
		}
		if !pause(ctx, wait) {
			return nil
		}
	}
}

// campaignPager does something for each campaign of a list, some at a time: those that
// fail, however many, hold up no others.
type campaignPager struct {
	list  func(ctx context.Context, after string, limit int) ([]campaign.Campaign, error)
	do    func(context.Context, campaign.Campaign) error
	after string // the last one that was done; "": from the first one on
}

func (t *campaignPager) next(ctx context.Context) error {
	some, err := t.list(ctx, t.after, campaignBatch)
	t.after = ""
	if n := len(some); n == campaignBatch || n > 0 && err != nil { // there may be more, or some that cannot be read
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

// syncCampaign lets the schedule follow a campaign that has changed. Another worker may
// do so at the same time for another change: the row says afterwards whether it was the
// last one, and else it is done again.
func (w *Worker) syncCampaign(ctx context.Context, c campaign.Campaign) error {
	if err := w.cfg.Starter.ScheduleCampaign(ctx, c); err != nil {
		return err
	}
	return w.cfg.Campaigns.Store.MarkCampaignSynced(ctx, c.ID, c.Revision)
}

// recreateCampaignSchedule makes a schedule again that is gone: a Temporal that lost all it had stored
// has lost them too.
func (w *Worker) recreateCampaignSchedule(ctx context.Context, c campaign.Campaign) error {
	made, err := w.cfg.Starter.createSchedule(ctx, campaignSchedule(c))
	if err != nil || !made {
		return err
	}
	return w.cfg.Campaigns.Store.MarkCampaignSynced(ctx, c.ID, c.Revision)
}

// StartCampaign starts a run that makes the packets of a campaign that are due, also of
// one whose schedule did not, whatever the reason: clocks were put forward over its time,
// a person paused it in Temporal, or Temporal or all workers were away for longer than it
// makes up for. One that runs already is left alone.
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

// ScheduleCampaign lets the schedule of a campaign follow its status: it is made, paused,
// goes on, or is deleted. Repeatable. One that begins or goes on looks at once, because
// its first packet may be due.
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
	} else if err = handle.Unpause(ctx, client.ScheduleUnpauseOptions{Note: "The campaign goes on."}); err == nil {
		// Not by a trigger of the schedule: of two changes that come in one of its workflow
		// tasks the server forgets the first (seen with 1.29), and it would stay paused.
		return s.StartCampaign(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("change schedule %s: %w", options.ID, err)
	}
	return nil
}

const pausedNote = "The campaign is paused."

// campaignSchedule looks at a campaign when its packet is to be made: campaign.Lead before
// it opens, by the clocks on the walls of its time zone.
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
		// A run makes everything that is due: one that is late makes up for those that were
		// missed, as long as their packets would not have expired.
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: max(time.Duration(c.Template.Life)*time.Second, time.Minute),
		Paused: c.Status == campaign.StatusPaused,
	}
	if options.Paused {
		options.Note = pausedNote
	}
	if opens, err := c.OpensAt(c.StartsOn); err == nil { // until then there is nothing to look at
		options.Spec.StartAt = opens.Add(-campaign.CreateAhead - time.Hour)
	}
	return options
}
