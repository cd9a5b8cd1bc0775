package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

// maxListPage is the largest page size that the API accepts.
const maxListPage = 200

// pageFlags select the part of a list.
type pageFlags struct {
	limit  int
	cursor string
	all    bool
	lines  bool // print JSON as one item a line instead of one page; no flag
}

// everyLine selects a whole list; with --json one item a line.
var everyLine = pageFlags{all: true, lines: true}

func (p *pageFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&p.limit, "limit", 50, "number of entries, 1 to 200")
	flags.StringVar(&p.cursor, "cursor", "", "list the page that follows this `cursor`")
	flags.BoolVar(&p.all, "all", false, "list all pages; with --json as one page")
}

// check refuses values that the API would refuse, before anything is sent.
func (p *pageFlags) check() error {
	if p.limit < 1 || p.limit > maxListPage {
		return &usageError{fmt.Errorf("--limit %d: write a number from 1 to %d", p.limit, maxListPage)}
	}
	return nil
}

// printList prints the selected part of a list as a table, newest first. With --json it prints one page in the API's form, with
// the items as received. The cursor of the next page goes to notes.
func printList[T any](t *call, p pageFlags, fetch func(client.Page) (*wire.List[T], error), columns []any, row func(*T) []any) error {
	want := client.Page{Limit: p.limit, Cursor: p.cursor}
	if p.all {
		want.Limit = maxListPage
	}
	documents := []json.RawMessage{}
	show := newGrid(t.out, columns...)
	for {
		list, err := fetch(want)
		if err != nil {
			return err
		}
		var received wire.List[json.RawMessage]
		if err := json.Unmarshal(t.answer(), &received); err != nil {
			return fmt.Errorf("%w: %w", client.ErrAnswer, err)
		}
		documents = append(documents, received.Items...)
		for i := range list.Items {
			show.row(row(&list.Items[i])...)
		}
		switch next := list.NextCursor; {
		case next != nil && *next == want.Cursor:
			return fmt.Errorf("%w: the list does not advance after cursor %q", client.ErrAnswer, want.Cursor)
		case next != nil && p.all:
			want.Cursor = *next
		case t.json && p.lines:
			return printEach(t, documents)
		case t.json:
			return encodeJSON(t.out, struct {
				Items      []json.RawMessage `json:"items"`
				NextCursor *string           `json:"next_cursor"`
			}{documents, next})
		default:
			show.render()
			if next != nil {
				return printf(t.notes, "There are more entries: add --all, or --cursor %s\n", *next)
			}
			return nil
		}
	}
}

// printEach prints JSON documents as received, one a line.
func printEach(t *call, documents []json.RawMessage) error {
	for _, one := range documents {
		if err := t.printRaw(one); err != nil {
			return err
		}
	}
	return nil
}

// printSome prints the first page of a list as a table, and more when there are further entries.
func printSome[T any](t *call, list *wire.List[T], columns []any, row func(*T) []any, more string, args ...any) error {
	show := newGrid(t.out, columns...)
	for i := range list.Items {
		show.row(row(&list.Items[i])...)
	}
	show.render()
	if list.NextCursor == nil {
		return nil
	}
	return printf(t.out, more, args...)
}
