package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
)

// grid is a table for people. What stands in it was often written by somebody
// else: a user calls himself what he likes. So every cell is made visible first.
type grid struct{ writer table.Writer }

// newGrid starts a table with these columns; none: a table without header.
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

// row adds a line. Numbers stay numbers, for their alignment.
func (g *grid) row(cells ...any) {
	line := make(table.Row, len(cells))
	for i, cell := range cells {
		switch cell.(type) {
		case int, int64:
			line[i] = cell
		default:
			line[i] = visible(fmt.Sprint(cell))
		}
	}
	g.writer.AppendRow(line)
}

// render prints the table.
func (g *grid) render() { g.writer.Render() }

// visible writes what a terminal would act upon, hide or reorder as an escape:
// control characters, among them ESC and the C1 set, line ends, invisible and
// bidirectional format characters, and bytes that are no UTF-8.
func visible(text string) string { return escaped(text, false) }

// visibleLines is visible that keeps line feeds: for text of several lines, as
// errors and long answers have.
func visibleLines(text string) string { return escaped(text, true) }

func escaped(text string, lines bool) string {
	harmless := func(r rune) bool { return !hidden(r) || lines && r == '\n' }
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case harmless(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// hidden reports whether a terminal shows something else than the character.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// visibleJSON writes the characters that a terminal would act upon, and JSON
// allows, as escapes of JSON: the document stays equal. Those below space can only
// be the line ends between its parts.
func visibleJSON(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > '~' && hidden(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r <= '~' || !hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}

// printJSON prints a document of JSON and ends its line.
func printJSON(out io.Writer, text []byte) error {
	_, err := io.WriteString(out, visibleJSON(string(text))+"\n")
	return err
}

// encodeJSON prints a value as JSON on a line of its own.
func encodeJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return printJSON(out, bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// printf prints text for people. Only the format may have line ends: in the texts
// it is given, whoever wrote them, what a terminal would act upon is escaped.
func printf(out io.Writer, format string, args ...any) error {
	told := make([]any, len(args))
	for i, arg := range args {
		if told[i] = arg; isText(arg) {
			told[i] = visible(fmt.Sprint(arg))
		}
	}
	_, err := fmt.Fprintf(out, format, told...)
	return err
}

func isText(arg any) bool {
	switch arg.(type) {
	case error, fmt.Stringer:
		return true
	}
	return reflect.ValueOf(arg).Kind() == reflect.String
}
