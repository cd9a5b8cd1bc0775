package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/jedib0t/go-pretty/v6/table"

	"hongbao/internal/visible"
)

// grid is a table for a terminal. Cells may hold text of users, such as nicknames, so every cell is escaped.
type grid struct{ writer table.Writer }

// newGrid returns a table with these columns; without columns it has no header.
func newGrid(out io.Writer, columns ...any) *grid {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = 0 // as written
	if len(columns) > 0 {
		t.AppendHeader(columns)
	}
	return &grid{t}
}

// row adds a line. Integers stay integers, for their alignment.
func (g *grid) row(cells ...any) {
	line := make(table.Row, len(cells))
	for i, cell := range cells {
		switch cell.(type) {
		case int, int64:
			line[i] = cell
		default:
			line[i] = visible.Text(fmt.Sprint(cell))
		}
	}
	g.writer.AppendRow(line)
}

// render prints the table.
func (g *grid) render() { g.writer.Render() }

// printJSON prints a JSON document and a line end.
func printJSON(out io.Writer, text []byte) error {
	_, err := io.WriteString(out, visible.JSON(string(text))+"\n")
	return err
}

// encodeJSON prints a value as JSON on its own line.
func encodeJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return printJSON(out, bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// printf prints text for a terminal. Only the format may hold line ends: control characters in the arguments are escaped.
func printf(out io.Writer, format string, args ...any) error {
	escaped := make([]any, len(args))
	for i, arg := range args {
		if escaped[i] = arg; isText(arg) {
			escaped[i] = visible.Text(fmt.Sprint(arg))
		}
	}
	_, err := fmt.Fprintf(out, format, escaped...)
	return err
}

func isText(arg any) bool {
	switch arg.(type) {
	case error, fmt.Stringer:
		return true
	}
	return reflect.ValueOf(arg).Kind() == reflect.String
}
