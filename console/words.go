package console

import (
	"strings"

	"hongbao/client"
)

// word says a word of the API in a language; one that the catalogue does not have is
// shown as it came: a page must not fail for what was written by another version.
func word(l language, kind, value string) string {
	if text, err := translate(l, kind+"."+value); err == nil {
		return text
	}
	return value
}

// faultText says what the API finds wrong with a member of what was sent; its own
// words, which have the figures, stand behind.
func faultText(l language, f client.FieldError) string {
	name := strings.TrimPrefix(f.Field, "filter.")
	name, _, _ = strings.Cut(name, "[")
	return say(l, "fault.says", word(l, "field", name), word(l, "fault", f.Code), f.Message)
}
