package api

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// lineEnds leaves one form of line end: of a lone CR the writer would keep nothing.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// cell makes a text harmless for spreadsheets. An apostrophe before it makes it a text
// there too, where it would be taken for a formula, or for a number, a date, a time or a
// truth value: the user id 007 would be read as 7, and of a long one digits would be lost.
// So that programs can take it off again without doubt, a text that begins with an
// apostrophe gets one too. Every id and every text of a file is a cell.
func cell(text string) string {
	text = lineEnds.Replace(strings.ToValidUTF8(text, "?"))
	for _, start := range []string{"=", "+", "-", "@", "\t", "\n", "'", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(text, start) {
			return "'" + text
		}
	}
	if valueLike(text) {
		return "'" + text
	}
	return text
}

// optional is the cell of a text that may be null, which is empty.
func optional[T ~string](text Nullable[T]) string {
	if text.Value == nil {
		return ""
	}
	return cell(string(*text.Value))
}

func fenCell(amount Fen) string { return strconv.FormatInt(int64(amount), 10) }

// valueWords are the words of dates and truth values, and the currencies: a spreadsheet
// reads a text of these and digits as a value. partWords are those that it reads behind
// a digit alone, as in 1e5, 12:30 PM and 2026-02-17T20:00Z.
var (
	valueWords = regexp.MustCompile(`^(true|false|jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|` +
		`oct(ober)?|nov(ember)?|dec(ember)?|mon(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?|cny|rmb|usd|eur|` +
		`上午|下午|星期[一二三四五六日天])$`)
	partWords = regexp.MustCompile(`^(e|t|z|a|p|am|pm|年|月|日|号|时|分|秒)$`)
)

// valueLike reports whether a spreadsheet may read a text as something else than a text:
// all its words are words of numbers, dates and times. Rather one apostrophe too many.
func valueLike(text string) bool {
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
