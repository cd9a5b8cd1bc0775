package console

import (
	"net/http"
	"strconv"
	"strings"

	"hongbao/client"
)

// language is one that the console speaks.
type language string

// The languages.
const (
	english language = "en"
	chinese language = "zh"
)

var languages = []language{english, chinese}

// languageCookie keeps what somebody has chosen.
const languageCookie = "hongbao_language"

const aYear = 365 * 24 * 60 * 60

// languageOf is the language that was chosen, else the one the browser likes best.
func languageOf(r *http.Request) language {
	if chosen, err := r.Cookie(languageCookie); err == nil {
		if l := language(chosen.Value); l == english || l == chinese {
			return l
		}
	}
	return preferred(r.Header.Get("Accept-Language"))
}

// preferred reads an Accept-Language header: the language of the highest weight, of
// equal ones the first; English when it names neither.
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

// chooseLanguage notes the choice and leads back; a login page that carries a form is
// shown anew with it.
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

// tag is the language as HTML names it.
func (l language) tag() string {
	if l == chinese {
		return "zh-CN"
	}
	return "en"
}

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
