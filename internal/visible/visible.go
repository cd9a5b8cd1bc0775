// Package visible escapes characters that a terminal or a browser would act upon, hide or reorder.
// Texts on which staff base decisions were often written by others, such as nicknames.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns the text with an escape for each hidden character, and for each byte that is not
// UTF-8.
func Text(text string) string { return escaped(text, Hidden) }

// Lines is Text that keeps line feeds, for text of several lines.
func Lines(text string) string {
	return escaped(text, func(r rune) bool { return r != '\n' && Hidden(r) })
}

// Hidden reports whether a character does not appear as itself: controls, among them ESC and the C1
// set, line ends, bidirectional and other format characters, variation selectors, and invisible
// ones.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

func escaped(text string, hidden func(rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !hidden(r):
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

// JSON escapes the characters that a terminal would act upon, and JSON allows, as JSON escapes: the
// document stays equal. Characters below space can only be line ends between its parts.
func JSON(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > '~' && Hidden(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r <= '~' || !Hidden(r):
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
