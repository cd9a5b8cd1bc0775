package main

import (
	"fmt"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/wire"
)

// formatYuan formats an amount in yuan with the currency sign.
func formatYuan(f money.Fen) string { return "¥" + f.String() }

// formatAmount formats an amount in yuan and in fen.
func formatAmount(f money.Fen) string { return fmt.Sprintf("%s (%s fen)", formatYuan(f), f.Digits()) }

// formatSigned formats an amount that may be negative.
func formatSigned(f money.Fen) string {
	if f < 0 {
		return "-" + formatYuan(-f)
	}
	return formatYuan(f)
}

// formatSums formats a count and an amount.
func formatSums(s wire.Sums) string { return fmt.Sprintf("%d: %s", s.Count, formatYuan(s.Amount)) }

// formatTime formats a time, of the API or of Go.
func formatTime(at interface{ Local() time.Time }) string {
	return at.Local().Format("2006-01-02 15:04:05")
}

func formatOptionalTime(at *wire.Time) string {
	if at == nil {
		return ""
	}
	return formatTime(*at)
}

// formatUTC formats a time in UTC; "" for the zero time.
func formatUTC(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime)
}

// formatOptional formats a value that may be missing.
func formatOptional[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func optionalText(text *string) string { return formatOptional(text) }

func yesNo(v *bool) string {
	switch {
	case v == nil:
		return ""
	case *v:
		return "yes"
	}
	return "NO"
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

// uiLink returns the URL of a workflow in the Temporal UI, or "" when none is configured.
func uiLink(w wire.WorkflowLink) string {
	if !strings.HasPrefix(w.URL, "http://") && !strings.HasPrefix(w.URL, "https://") {
		return ""
	}
	return w.URL
}
