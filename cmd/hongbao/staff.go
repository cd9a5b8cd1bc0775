package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
)

// clerk is one command of the staff at work: whom it asks and how it tells.
type staffCommand struct {
	*appCommand
	staff *client.Staff
	flags *staffFlags
}

// staffFlags are the flags that the commands of the staff have besides their settings.
type staffFlags struct {
	command        string // in the table of settings
	key            string // the setting with the key
	json           bool
	timeout        time.Duration
	reason         string // of those that change something
	idempotencyKey string
}

// add declares settings and common flags; writes: reason and idempotency key too.
// The timeout is a minute unless it was set before.
func (f *staffFlags) add(cmd *cobra.Command, writes bool) {
	addSettings(cmd, f.command)
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print what the API said instead of tables")
	flags.DurationVar(&f.timeout, "timeout", cmp.Or(f.timeout, time.Minute), "give up after this `time`; 0 = never")
	complete(cmd, "timeout")
	if !writes {
		return
	}
	flags.StringVar(&f.reason, "reason", "", "why, for the audit (required)")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "names this wish; the same `key` does nothing a second time; empty = a new one")
	complete(cmd, "reason")
	complete(cmd, "idempotency-key")
}

// run reads the settings, makes the client and does the work within the timeout.
// Whatever a write needs is asked for before anything is sent.
func (f *staffFlags) run(cmd *cobra.Command, env environment, work func(context.Context, *staffCommand) error,
	options ...client.Option) error {
	c, err := readConfig(cmd, f.command, env)
	if err != nil {
		return err
	}
	if cmd.Flags().Lookup("reason") != nil && f.reason == "" {
		return &usageError{missingFlag("reason")}
	}
	ctx, cancel, err := within(cmd.Context(), f.timeout)
	if err != nil {
		return err
	}
	defer cancel()
	url := c.text("staff-url")
	options = append([]client.Option{client.WithUserAgent("hongbao-cli/" + version)}, options...)
	staff, err := client.NewStaff(url, c.secret(f.key).Reveal(), options...)
	if err != nil {
		return &usageError{err}
	}
	defer staff.Close()
	t := &staffCommand{appCommand: &appCommand{out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: f.json}, staff: staff, flags: f}
	return t.problemText(withURL(work(ctx, t), url))
}

// unanswered adds to an error without answer whom was asked, and what can be done
// when it is not known what has happened.
func withURL(err error, url string) error {
	_, said := errors.AsType[*client.Problem](err)
	_, called := errors.AsType[*client.CallError](err)
	if !called || said {
		return err
	}
	return withIdempotencyKey(fmt.Errorf("%s: %w", url, err), err)
}

// wholeSeconds turns a flag into seconds.
func wholeSeconds(flag string, d time.Duration) (int64, error) {
	if d < 0 || d%time.Second != 0 {
		return 0, &usageError{fmt.Errorf("--%s %v is not a number of whole seconds", flag, d)}
	}
	return int64(d / time.Second), nil
}

// maxListPage is the largest page the API gives.
const maxListPage = 200

// pageFlags say how much of a list is wanted.
type pageFlags struct {
	limit  int
	cursor string
	all    bool
}

func (p *pageFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&p.limit, "limit", 50, "how many, 1 to 200")
	flags.StringVar(&p.cursor, "cursor", "", "go on where the page ended that named this `cursor`")
	flags.BoolVar(&p.all, "all", false, "all pages; with --json as one")
	for _, name := range []string{"limit", "cursor", "all"} {
		complete(cmd, name)
	}
}

// check refuses what the API would refuse, before anything is sent.
func (p *pageFlags) check() error {
	if p.limit < 1 || p.limit > maxListPage {
		return &usageError{fmt.Errorf("--limit %d is not from 1 to %d", p.limit, maxListPage)}
	}
	return nil
}

// fetcher fetches one page of a list.
type fetcher[T any] func(context.Context, client.Page) (*client.List[T], error)

// printList prints a list, newest first: one page, or all of them. With JSON it is
// one page as the API gives it. Where it goes on is told beside it.
func printList[T any](ctx context.Context, t *appCommand, p pageFlags, fetch fetcher[T], columns []any, row func(*T) []any) error {
	want := client.Page{Limit: p.limit, Cursor: p.cursor}
	if p.all {
		want.Limit = maxListPage
	}
	var documents []json.RawMessage
	show := newGrid(t.out, columns...)
	for {
		list, err := fetch(ctx, want)
		if err != nil {
			return err
		}
		page := struct {
			Items []json.RawMessage `json:"items"`
		}{}
		if err := json.Unmarshal(list.Raw, &page); err != nil {
			return fmt.Errorf("%w: %w", client.ErrAnswer, err)
		}
		documents = append(documents, page.Items...)
		for i := range list.Items {
			show.row(row(&list.Items[i])...)
		}
		if list.NextCursor == nil || !p.all {
			return t.printListEnd(documents, show, list.NextCursor)
		}
		if *list.NextCursor == want.Cursor {
			return fmt.Errorf("%w: the list does not go on after cursor %q", client.ErrAnswer, want.Cursor)
		}
		want.Cursor = *list.NextCursor
	}
}

func (t *appCommand) printListEnd(documents []json.RawMessage, show *grid, next *string) error {
	if t.json {
		return t.printPageJSON(documents, next)
	}
	show.render()
	if next != nil {
		return printf(t.notes, "There are more: --all, or --cursor %s\n", *next)
	}
	return nil
}

// page prints a page of a list as the API does.
func (t *appCommand) printPageJSON(items []json.RawMessage, next *string) error {
	if items == nil {
		items = []json.RawMessage{}
	}
	return encodeJSON(t.out, struct {
		Items      []json.RawMessage `json:"items"`
		NextCursor *string           `json:"next_cursor"`
	}{items, next})
}

func optionalText(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// maxCell is how much of a text that somebody else wrote stands in a list.
const maxCell = 160

// clipped shortens a text for a cell of a list; the view of the one thing has all of it.
func truncate(text string) string {
	if runes := []rune(text); len(runes) > maxCell {
		return string(runes[:maxCell]) + "…"
	}
	return text
}

func formatOptionalTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return formatTime(*at)
}
