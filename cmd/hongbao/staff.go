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
	"hongbao/wire"
)

// staffCommand is one run of a staff command: the client of the staff listener and the outputs.
type staffCommand struct {
	*appCommand
	staff *client.Staff
	flags *staffFlags
}

// staffFlags are the flags, besides settings, of staff commands.
type staffFlags struct {
	command        string // in the table of settings
	key            string // the setting with the key
	json           bool
	timeout        time.Duration
	reason         string // of commands that write
	idempotencyKey string
}

// add declares settings and common flags, for a command that writes also --reason and --idempotency-key. The default
// timeout is one minute unless f.timeout is set.
func (f *staffFlags) add(cmd *cobra.Command, writes bool) {
	addSettings(cmd, f.command)
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the API's response instead of tables")
	flags.DurationVar(&f.timeout, "timeout", cmp.Or(f.timeout, time.Minute), "give up after this `duration`; 0 = never")
	complete(cmd, "timeout")
	if !writes {
		return
	}
	flags.StringVar(&f.reason, "reason", "", "reason, stored in the audit (required)")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "`key` of this request: a repeat with the same key does nothing; default: a "+
		"new key")
	complete(cmd, "reason")
	complete(cmd, "idempotency-key")
}

// run reads the settings, creates the client and calls work with the timeout. It refuses a write without a reason before
// it sends anything.
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
	ctx, answer := client.KeepAnswer(ctx)
	t := &staffCommand{appCommand: &appCommand{answer: answer, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: f.json}, staff: staff,
		flags: f}
	return t.problemText(withURL(work(ctx, t), url))
}

// withURL adds the URL to an error without an API response, and the next step when the outcome is unknown.
func withURL(err error, url string) error {
	_, answered := errors.AsType[*client.Problem](err)
	_, called := errors.AsType[*client.CallError](err)
	if !called || answered {
		return err
	}
	return withIdempotencyKey(fmt.Errorf("%s: %w", url, err), err)
}

// wholeSeconds converts the value of a flag to seconds.
func wholeSeconds(flag string, d time.Duration) (int64, error) {
	if d < 0 || d%time.Second != 0 {
		return 0, &usageError{fmt.Errorf("--%s %v: write whole seconds, such as 90s", flag, d)}
	}
	return int64(d / time.Second), nil
}

// maxListPage is the largest page size that the API accepts.
const maxListPage = 200

// pageFlags select the part of a list.
type pageFlags struct {
	limit  int
	cursor string
	all    bool
}

func (p *pageFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&p.limit, "limit", 50, "number of entries, 1 to 200")
	flags.StringVar(&p.cursor, "cursor", "", "list the page that follows this `cursor`")
	flags.BoolVar(&p.all, "all", false, "list all pages; with --json as one page")
	for _, name := range []string{"limit", "cursor", "all"} {
		complete(cmd, name)
	}
}

// check refuses values that the API would refuse, before anything is sent.
func (p *pageFlags) check() error {
	if p.limit < 1 || p.limit > maxListPage {
		return &usageError{fmt.Errorf("--limit %d: write a number from 1 to %d", p.limit, maxListPage)}
	}
	return nil
}

// fetcher fetches one page of a list.
type fetcher[T any] func(context.Context, client.Page) (*wire.List[T], error)

// printList prints one page of a list, or all pages, newest first. With --json it prints one page in the API's form. The
// cursor of the next page goes to notes.
func printList[T any](ctx context.Context, t *appCommand, p pageFlags, fetch fetcher[T], columns []any, row func(*T) []any) error {
	want := client.Page{Limit: p.limit, Cursor: p.cursor}
	if p.all {
		want.Limit = maxListPage
	}
	var documents []json.RawMessage
	show := newGrid(t.out, columns...)
	for {
		list, items, err := fetchItems(ctx, t, fetch, want)
		if err != nil {
			return err
		}
		documents = append(documents, items...)
		for i := range list.Items {
			show.row(row(&list.Items[i])...)
		}
		if list.NextCursor == nil || !p.all {
			return t.printListEnd(documents, show, list.NextCursor)
		}
		want.Cursor = *list.NextCursor
	}
}

// printLines prints all pages of a list as one table, with --json one item as received per line.
func printLines[T any](ctx context.Context, t *appCommand, fetch fetcher[T], columns []any, row func(*T) []any) error {
	show := newGrid(t.out, columns...)
	for want := (client.Page{Limit: maxListPage}); ; {
		list, items, err := fetchItems(ctx, t, fetch, want)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if !t.json {
				show.row(row(&list.Items[i])...)
			} else if err := t.printRaw(items[i]); err != nil {
				return err
			}
		}
		if list.NextCursor == nil {
			break
		}
		want.Cursor = *list.NextCursor
	}
	if !t.json {
		show.render()
	}
	return nil
}

// fetchItems fetches a page of a list, and its items as received.
func fetchItems[T any](ctx context.Context, t *appCommand, fetch fetcher[T], p client.Page) (*wire.List[T], []json.RawMessage, error) {
	list, err := fetch(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	var page wire.List[json.RawMessage]
	if err := json.Unmarshal(t.answer(), &page); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", client.ErrAnswer, err)
	}
	if list.NextCursor != nil && *list.NextCursor == p.Cursor {
		return nil, nil, fmt.Errorf("%w: the list does not advance after cursor %q", client.ErrAnswer, p.Cursor)
	}
	return list, page.Items, nil
}

func (t *appCommand) printListEnd(documents []json.RawMessage, show *grid, next *string) error {
	if t.json {
		return t.printPageJSON(documents, next)
	}
	show.render()
	if next != nil {
		return printf(t.notes, "There are more entries: add --all, or --cursor %s\n", *next)
	}
	return nil
}

// printPageJSON prints one page of a list in the API's form.
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

// maxCell is the number of characters of a user's text in a cell of a list.
const maxCell = 160

// truncate shortens a text for a cell of a list; the "show" command prints all of it.
func truncate(text string) string {
	if runes := []rune(text); len(runes) > maxCell {
		return string(runes[:maxCell]) + "…"
	}
	return text
}

func formatOptionalTime(at *wire.Time) string {
	if at == nil {
		return ""
	}
	return formatTime(*at)
}
