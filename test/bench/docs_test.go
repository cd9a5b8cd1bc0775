package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	document = "docs/performance.md"
	plots    = "docs/plots"
)

// marks returns the lines before and after the generated part of a section. The rest of the document is written by hand.
func marks(section string) (begin, end string) {
	return "<!-- begin " + section + ": made by make bench -->\n", "<!-- end " + section + " -->\n"
}

// between cuts a document at the marks of a section. It fails unless each mark occurs once, in order.
func between(text, section string) (before, inside, after string, err error) {
	begin, end := marks(section)
	if strings.Count(text, begin) != 1 || strings.Count(text, end) != 1 {
		return "", "", "", fmt.Errorf("%s needs exactly one place for section %q, between the lines %q and %q", document, section,
			strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	before, rest, _ := strings.Cut(text, begin)
	inside, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", "", "", fmt.Errorf("%s: section %q ends before it begins", document, section)
	}
	return before, inside, after, nil
}

// place replaces the text between the marks of the section by its results.
func (f finding) place(text string) (string, error) {
	before, _, after, err := between(text, f.section)
	if err != nil {
		return "", err
	}
	begin, end := marks(f.section)
	return before + begin + f.markdown() + end + after, nil
}

// markdown returns the results of a section in Markdown.
func (f finding) markdown() string {
	var b strings.Builder
	for i, r := range f.results {
		fmt.Fprintf(&b, "\n**%s**\n\n", strings.ToUpper(r.title[:1])+r.title[1:])
		if r.plot != nil {
			fmt.Fprintf(&b, "![%s](plots/%s)\n\n", r.plot.title, f.plotFile(i))
		}
		fmt.Fprintf(&b, "%s\n", r.table().RenderMarkdown())
		for n, note := range r.notes {
			if n == 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "- %s\n", note)
		}
	}
	fmt.Fprintf(&b, "\n<sub>%s</sub>\n\n", f.env)
	return b.String()
}

// save writes the section's part of the document and its plots, in the checkout with this root. It deletes the section's plots of
// earlier runs.
func (f finding) save(root string) error {
	path := filepath.Join(root, document)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	placed, err := f.place(string(text))
	if err != nil {
		return err
	}
	folder := filepath.Join(root, plots)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, f.section+"-[0-9]*.svg"))
	if err != nil {
		return err
	}
	for _, name := range append(old, filepath.Join(folder, f.section+".svg")) {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for i, r := range f.results {
		if r.plot != nil {
			if err := os.WriteFile(filepath.Join(folder, f.plotFile(i)), []byte(r.plot.svg()), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(path, []byte(placed), 0o644)
}
