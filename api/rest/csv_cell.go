package rest

import (
	"regexp"
	"strings"
	"unicode"
)

// lineEnds normalizes line ends: the CSV writer would drop a lone CR.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Cell makes a text safe for spreadsheets. Every id and text of a file goes through it.
// A spreadsheet would compute a formula, and change a text that looks like a number, a date,
// a time or a truth value: the user id 007 would become 7, and a long id would lose digits. An
// apostrophe in front prevents that. A text that begins with an apostrophe gets one more, so
// that programs can always remove the first.
func Cell(text string) string {
	text = lineEnds.Replace(strings.ToValidUTF8(text, "?"))
	for _, start := range []string{"=", "+", "-", "@", "\t", "\n", "'", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(text, start) {
			return "'" + text
		}
	}
	if looksLikeValue(text) {
		return "'" + text
	}
	return text
}

// valueWords are the words of dates and truth values, and currencies: a spreadsheet reads them
// with digits as a value. partWords count only after a digit, as in 1e5, 12:30 PM and
// 2026-02-17T20:00Z.
var (
	valueWords = regexp.MustCompile(`^(true|false|jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|` +
		`oct(ober)?|nov(ember)?|dec(ember)?|mon(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?|cny|rmb|usd|eur|` +
		`上午|下午|星期[一二三四五六日天])$`)
	partWords = regexp.MustCompile(`^(e|t|z|a|p|am|pm|年|月|日|号|时|分|秒)$`)
)

// looksLikeValue reports whether a spreadsheet may read a text as a value: all its words are
// words of numbers, dates and times. A false positive costs only an apostrophe.
func looksLikeValue(text string) bool {
	digits, truth := false, false
	var word strings.Builder
	fits := func() bool {
		w := strings.ToLower(word.String())
		word.Reset()
		truth = truth || w == "true" || w == "false"
		return w == "" || valueWords.MatchString(w) || digits && partWords.MatchString(w)
	}
	for _, r := range text {
		if r >= '！' && r <= '～' { // the full-width form of an ASCII character
			r -= '！' - '!'
		}
		if unicode.IsLetter(r) {
			word.WriteRune(r)
			continue
		}
		if !fits() {
			return false
		}
		digits = digits || unicode.IsDigit(r)
	}
	return fits() && (digits || truth)
}
