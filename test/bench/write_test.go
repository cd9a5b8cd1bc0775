package bench

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// table returns the result as a table for go-pretty, which renders text or Markdown. A row with an empty first column belongs to the
// row before.
func (r result) table() table.Writer {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault // units keep their case
	w.SetStyle(style)
	row := func(cells []string) (out table.Row) {
		for _, c := range cells {
			out = append(out, c)
		}
		return out
	}
	w.AppendHeader(row(r.columns))
	var right []table.ColumnConfig
	for i := range r.columns {
		if r.numeric(i) {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	w.SetColumnConfigs(right)
	for _, cells := range r.rows {
		w.AppendRow(row(cells))
	}
	return w
}

// print writes the results of a section to a terminal.
func (f finding) print(out io.Writer) {
	for _, r := range f.results {
		_, _ = fmt.Fprintf(out, "\n%s: %s\n%s\n", f.section, r.title, r.table().Render())
		for _, note := range r.notes {
			_, _ = fmt.Fprintf(out, "  %s\n", note)
		}
	}
}

// line is one line of JSON: a table, or one number behind it.
type line struct {
	Kind    string     `json:"kind"` // "table" or "number"
	Section string     `json:"section"`
	Title   string     `json:"title"`
	Columns []string   `json:"columns,omitempty"`
	Rows    [][]string `json:"rows,omitempty"`
	Notes   []string   `json:"notes,omitempty"`
	Number  any        `json:"number,omitempty"`
}

// lines writes the results of a section for programs.
func (f finding) lines(out io.Writer) error {
	enc := json.NewEncoder(out)
	if err := enc.Encode(f.env); err != nil {
		return err
	}
	for _, r := range f.results {
		all := []line{{Kind: "table", Section: f.section, Title: r.title, Columns: r.columns, Rows: r.rows, Notes: r.notes}}
		for _, n := range r.numbers {
			all = append(all, line{Kind: "number", Section: f.section, Title: r.title, Number: n})
		}
		for _, l := range all {
			if err := enc.Encode(l); err != nil {
				return fmt.Errorf("%s, %s: %w", f.section, r.title, err)
			}
		}
	}
	return nil
}
