package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/api"
)

// TestBodyOfARefusedHead: a request that is refused for its key is refused whether or not its body
// comes; only one whose key is right waits for it.
func TestBodyOfARefusedHead(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.ReadTimeout = 4 * time.Second }})
	id := h.open(h.app, with())
	grab, create := "POST /v1/packets/"+id+"/grabs", "POST /v1/packets"
	const length, chunked, some = "Content-Length: 20\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n", "Content-Length: 20\r\n\r\n{\"user_id\""
	wrong := "Authorization: Bearer " + h.app.token[:len(h.app.token)-1] + "\r\n"
	right, staff := "Authorization: Bearer "+h.app.token+"\r\n", "Authorization: Bearer "+h.finance.token+"\r\n"
	type sent struct {
		base, text string
		want       string
	}
	var all []sent
	for _, body := range []string{length, chunked, some, "Content-Length: 60000\r\n\r\n{"} {
		for _, line := range []string{grab, create, "POST /nothing", "POST /v1/staff/payouts/retry"} {
			all = append(all, sent{h.public, line + " HTTP/1.1\r\nHost: h\r\n" + body, "unauthenticated"},
				sent{h.public, line + " HTTP/1.1\r\nHost: h\r\n" + wrong + body, "unauthenticated"})
		}
		all = append(all, sent{h.public, grab + " HTTP/1.1\r\nHost: h\r\n" + staff + body, "forbidden"},
			sent{h.staff, "POST /v1/staff/payouts/retry HTTP/1.1\r\nHost: h\r\n" + body, "unauthenticated"},
			sent{h.staff, "POST /v1/staff/payouts/retry HTTP/1.1\r\nHost: h\r\n" + right + body, "forbidden"},
			sent{h.public, grab + " HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n" + right + body, "request_timeout"})
	}
	for _, one := range all {
		c := h.dial(one.base)
		one.text = strings.Replace(one.text, "Host: h\r\n", "Host: h\r\nX-Request-Id: mine\r\n", 1)
		if _, err := io.WriteString(c, one.text); err != nil {
			t.Fatal(err)
		}
		defer func() {
			r := h.answer(c)
			path := strings.Fields(one.text)[1]
			if r.code() != one.want || one.want != "request_timeout" && (!strings.Contains(string(r.body), `"instance":"`+path+`"`) ||
				r.header.Get("X-Request-Id") != "mine") || (r.header.Get("WWW-Authenticate") == "Bearer") != (r.status == http.StatusUnauthorized) {
				t.Errorf("%q: %s, want %s", one.text, r, one.want)
			}
		}()
	}
	// What came in time leaves the connection as it was: the second request is read where it begins.
	twice := h.wireAll(h.public, strings.Repeat(grab+" HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", 2))
	if len(twice) != 2 || twice[1].code() != "unauthenticated" {
		t.Errorf("two with their bodies: %v", twice)
	}
}

// TestHeaderLines: a head that two readers may read in two ways is refused.
func TestHeaderLines(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with())
	body := `{"user_id":"u"}`
	post := func(lines ...string) result {
		return h.wire(h.public, "POST /v1/packets/"+id+"/grabs HTTP/1.1\r\nAuthorization: Bearer "+h.app.token+"\r\nContent-Length: 15\r\n"+
			strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
	}
	const host, kind = "Host: h", "Content-Type: application/json"
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"two types":               {[]string{host, kind, "Content-Type: text/plain"}, "unsupported_media_type"},
		"two types, the other":    {[]string{host, "Content-Type: text/plain", kind}, "unsupported_media_type"},
		"the same twice":          {[]string{host, kind, "content-type: application/json"}, "unsupported_media_type"},
		"two codings":             {[]string{host, kind, "Content-Encoding: identity", "Content-Encoding: gzip"}, "unsupported_media_type"},
		"two hosts":               {[]string{host, kind, "host: other"}, "malformed_request"},
		"folded type":             {[]string{host, "Content-Type:\r\n application/json"}, "malformed_request"},
		"folded with a tab":       {[]string{host, kind, "X-Other: a\r\n\tb"}, "malformed_request"},
		"folded with a name":      {[]string{host, "X-Other: a\r\n " + kind}, "malformed_request"},
		"folded, without a CR":    {[]string{host, kind, "X-Other: a\n b"}, "malformed_request"},
		"a line of one space":     {[]string{host, kind, "X-Other: a\r\n "}, "malformed_request"},
		"as it should be":         {[]string{host, kind + "; charset=utf-8", "X-Content-Type: a", "Content-Type-Of: b"}, ""},
		"with an empty other one": {[]string{host, kind, "X-Other:"}, ""},
	} {
		if r := post(c.lines...); r.code() != c.want {
			t.Errorf("%s: %s, want %q", name, r, c.want)
		}
	}
}
