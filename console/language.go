package console

import (
	"net/http"
	"strconv"
	"strings"

	"hongbao/wire"
)

// language is a language of the console.
type language string

// The languages.
const (
	english language = "en"
	chinese language = "zh"
)

var languages = []language{english, chinese}

// languageCookie stores the user's choice.
const languageCookie = "hongbao_language"

const aYear = 365 * 24 * 60 * 60

// languageOf returns the chosen language, else the browser's preferred one.
func languageOf(r *http.Request) language {
	if chosen, err := r.Cookie(languageCookie); err == nil {
		if l := language(chosen.Value); l == english || l == chinese {
			return l
		}
	}
	return preferred(r.Header.Get("Accept-Language"))
}

// preferred returns the language with the highest weight in an Accept-Language header, the first
// of equal ones; English if it names neither.
func preferred(accept string) language {
	best, most := english, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		tag, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		l := language(primary)
		if l != english && l != chinese {
			continue
		}
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q="); ok {
			if parsed, err := strconv.ParseFloat(q, 64); err == nil {
				weight = parsed
			}
		}
		if weight > most {
			best, most = l, weight
		}
	}
	return best
}

// chooseLanguage stores the choice and redirects back. A login page that carries a saved form is
// rendered again with it.
func (c *Console) chooseLanguage(w http.ResponseWriter, r *http.Request) {
	to := language(r.PostFormValue("to"))
	if to != english && to != chinese {
		c.refuse(w, r, http.StatusUnprocessableEntity, "problem.invalid_request")
		return
	}
	http.SetCookie(w, cookie(r, languageCookie, string(to), aYear))
	if r.PostFormValue("sent_to") != "" {
		c.showSavedForm(w, withCookie(r, languageCookie, string(to)))
		return
	}
	redirect(w, r, r.PostFormValue("back"))
}

// tag is the language tag for HTML.
func (l language) tag() string {
	if l == chinese {
		return "zh-CN"
	}
	return "en"
}

// word returns the label of an API value. A value without a label is returned unchanged, because
// another version may have written it.
func word(l language, kind, value string) string {
	if text, err := translate(l, kind+"."+value); err == nil {
		return text
	}
	return value
}

// faultText describes an invalid field, followed by the API's own message, which has the limits.
func faultText(l language, f wire.FieldError) string {
	name := strings.TrimPrefix(f.Field, "filter.")
	name, _, _ = strings.Cut(name, "[")
	return say(l, "fault.says", word(l, "field", name), word(l, "fault", f.Code), f.Message)
}
