package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"hongbao/wire"
)

// counter is an API that answers from a script: it shows what the commands ask
// and how they print the answers. That the product answers so is shown elsewhere.
type counter struct {
	mu      sync.Mutex
	asked   []string // method, path and body
	keys    []string
	answers map[string][]string // by method and path: "status body", the last one for ever
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	name := r.Method + " " + r.RequestURI
	c.asked = append(c.asked, strings.TrimSpace(name+" "+string(body)))
	c.keys = append(c.keys, r.Header.Get("Idempotency-Key"))
	if r.Header.Get("Authorization") != "Bearer s3cret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	list := c.answers[name]
	if len(list) == 0 {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"packet_not_found","detail":"There is no such packet.","request_id":"req_1"}`)
		return
	}
	if len(list) > 1 {
		c.answers[name] = list[1:]
	}
	var status int
	var text string
	_, _ = fmt.Sscanf(list[0], "%d", &status)
	_, text, _ = strings.Cut(list[0], " ")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// packetText is a packet of 4 shares and 1000 fen.
func packetText(status string, claimed int, more string) string {
	return fmt.Sprintf(`{"id":"97h0uojo11oljc4bchnk","status":%q,"sender_id":"alice","total_amount":1000,"share_count":4,"split":"even","min_share":1,"max_share":null,`+
		`"claimed_count":%d,"claimed_amount":%d,"remaining_count":%d,"remaining_amount":%d,"refunded_amount":0,"fairness":{"commitment":"c0ffee","seed":null}%s}`,
		status, claimed, 250*claimed, 4-claimed, 1000-250*claimed, more)
}

func claimText(user string, share int, more string) string {
	return fmt.Sprintf(`{"packet_id":"97h0uojo11oljc4bchnk","user_id":%q,"share_index":%d,"amount":250,"claimed_at":"2026-02-17T20:00:00.000Z","payout":{"id":"pp1000%d","status":"paid"}%s}`, user, share, share, more)
}

// packets runs a packets command against answers.
func packets(t *testing.T, answers map[string][]string, args ...string) (code int, stdout, stderr string, c *counter) {
	t.Helper()
	return asApp(t, answers, append([]string{"packets"}, args...)...)
}

// asApp runs a command of an app against answers.
func asApp(t *testing.T, answers map[string][]string, args ...string) (code int, stdout, stderr string, c *counter) {
	t.Helper()
	c = &counter{answers: answers}
	server := httptest.NewServer(c)
	defer server.Close()
	var out, errs bytes.Buffer
	env := []string{"HONGBAO_URL=" + server.URL, "HONGBAO_APP_KEY=s3cret"}
	code = execute(t.Context(), args, env, &out, &errs)
	if strings.Contains(out.String()+errs.String(), "s3cret") {
		t.Errorf("the key is shown: %s%s", &out, &errs)
	}
	return code, out.String(), errs.String(), c
}

// contains fails for every text that is not there.
func contains(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("no %q in:\n%s", text, output)
		}
	}
}

func TestPacketsCreate(t *testing.T) {
	t.Run("OK", func(t *testing.T) {
		code, stdout, stderr, c := packets(t, map[string][]string{
			"POST /v1/packets":                     {"202 " + packetText("funding", 0, "")},
			"GET /v1/packets/97h0uojo11oljc4bchnk": {"200 " + packetText("open", 0, `,"greeting":"恭喜"`)},
		}, "create", "--sender", "alice", "--total", "1000", "--shares", "4", "--split", "even", "--min", "2", "--max", "900", "--greeting", "恭喜",
			"--opens-at", "2026-02-17T20:00:00+08:00", "--expires-in", "1m", "--eligible", "bob,carol", "--group", "g", "--metadata", "a=b,c=d",
			"--idempotency-key", "k1")
		if code != exitOK || stderr != "" || c.keys[0] != "k1" {
			t.Fatalf("exit code %d, keys %q: %s", code, c.keys, stderr)
		}
		contains(t, stdout, "97h0uojo11oljc4bchnk", "open", "¥10.00 (1000 fen)", "4, even, ¥0.01 or more each", "恭喜", "c0ffee")
		want := `POST /v1/packets {"sender_id":"alice","total_amount":1000,"share_count":4,"split":"even","min_share":2,"max_share":900,"greeting":"恭喜",` +
			`"opens_at":"2026-02-17T20:00:00+08:00","expires_in_seconds":60,"eligible_user_ids":["bob","carol"],"group_id":"g","metadata":{"a":"b","c":"d"}}`
		if c.asked[0] != want {
			t.Errorf("asked\n%s, want\n%s", c.asked[0], want)
		}
	})
	t.Run("Tickets", func(t *testing.T) {
		code, stdout, stderr, c := packets(t, map[string][]string{"POST /v1/packets": {"201 " + packetText("open", 0, `,"tickets":true`)}},
			"create", "--sender=a", "--total=1000", "--shares=4", "--tickets")
		if code != exitOK || stderr != "" || !strings.Contains(c.asked[0], `,"tickets":true}`) || !strings.Contains(stdout, "by ticket") {
			t.Errorf("exit code %d, asked %s\n%s%s", code, c.asked[0], stdout, stderr)
		}
	})
	t.Run("JSON", func(t *testing.T) {
		text := packetText("open", 0, `,"new_member":[1, 2]`)
		code, stdout, stderr, c := packets(t, map[string][]string{"POST /v1/packets": {"201 " + text}}, "create", "--sender=a", "--total=1000",
			"--shares=4", "--json")
		if code != exitOK || stdout != text+"\n" || stderr != "" || c.keys[0] == "" {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	})
	t.Run("ErrNotKnown", func(t *testing.T) { // it may be staged: under another key there would be a second packet
		for answer, unknown := range map[string]bool{`500 {"code":"internal","detail":"d"}`: true, `502 <html>`: true,
			`403 {"code":"forbidden","detail":"d"}`: false} {
			code, _, stderr, c := packets(t, map[string][]string{"POST /v1/packets": {answer}}, "create", "--sender=a", "--total=1000", "--shares=4")
			if got := strings.Contains(stderr, "run the command again with --idempotency-key "+c.keys[0]+"\n"); got != unknown || code == exitOK ||
				c.keys[0] == "" {
				t.Errorf("%s: exit code %d, the key is reported: %v\n%s", answer, code, got, stderr)
			}
		}
	})
	t.Run("ErrDeclined", func(t *testing.T) {
		declined := `{"code":"funding_declined","detail":"Declined.","request_id":"req_9","packet_id":"97h0uojo11oljc4bchnk","failure":{"code":"no_money","message":"Too poor."}}`
		code, stdout, stderr, _ := packets(t, map[string][]string{"POST /v1/packets": {"402 " + declined}}, "create", "--sender=a",
			"--total=1000", "--shares=4")
		if code != exitRefused || stdout != "" || stderr != "hongbao: funding_declined: Declined. (no_money: Too poor.) (request req_9)\n" {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		code, stdout, _, _ = packets(t, map[string][]string{"POST /v1/packets": {"402 " + declined}}, "create", "--sender=a", "--total=1000",
			"--shares=4", "--json")
		if code != exitRefused || stdout != declined+"\n" {
			t.Errorf("exit code %d\n%s", code, stdout)
		}
	})
	t.Run("ErrUnknownOutcome", func(t *testing.T) {
		code, _, stderr, _ := packets(t, map[string][]string{"POST /v1/packets": {"201 <html>"}}, "create", "--sender=a", "--total=1000",
			"--shares=4", "--idempotency-key=k7")
		if code != exitFailed {
			t.Errorf("exit code %d", code)
		}
		contains(t, stderr, "run the command again with --idempotency-key k7")
	})
	t.Run("ErrTimeout", func(t *testing.T) {
		code, stdout, stderr, _ := packets(t, map[string][]string{
			"POST /v1/packets":                     {"202 " + packetText("funding", 0, "")},
			"GET /v1/packets/97h0uojo11oljc4bchnk": {"200 " + packetText("funding", 0, "")},
		}, "create", "--sender=a", "--total=1000", "--shares=4", "--timeout=100ms")
		if code != exitFailed {
			t.Errorf("exit code %d", code)
		}
		contains(t, stdout+stderr, "funding", "97h0uojo11oljc4bchnk")
	})
	for name, args := range map[string]string{
		"--sender is required": "--total=1 --shares=1", "--total is required": "--sender=a --shares=1",
		"--shares is required": "--sender=a --total=1", "--opens-at": "--sender=a --total=1 --shares=1 --opens-at=noon",
		"--expires-in": "--sender=a --total=1 --shares=1 --expires-in=1500ms", "--min 0": "--sender=a --total=1 --shares=1 --min=0",
		"--timeout": "--sender=a --total=1 --shares=1 --timeout=-1s", "amounts are whole fen": "--total=1.50",
	} {
		t.Run("ErrUsage "+name, func(t *testing.T) {
			code, stdout, stderr, c := packets(t, nil, append([]string{"create"}, strings.Fields(args)...)...)
			if code != exitUsage || stdout != "" || len(c.asked) != 0 {
				t.Errorf("exit code %d, asked %q, %s", code, c.asked, stdout)
			}
			contains(t, stderr, name)
		})
	}
}

func TestPacketsShow(t *testing.T) {
	page := `200 {"items":[` + claimText("bob", 0, `,"best_luck":true`) + `],"next_cursor":"next"}`
	answers := map[string][]string{"GET /v1/packets/97h0uojo11oljc4bchnk": {"200 " + packetText("open", 2, "")},
		"GET /v1/packets/97h0uojo11oljc4bchnk/grabs?limit=20": {page}}
	code, stdout, stderr, _ := packets(t, answers, "show", "97h0uojo11oljc4bchnk")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	contains(t, stdout, "2, ¥5.00 (500 fen)", "bob", "¥2.50", "best", "paid",
		"The newest 1 of 2. For all: hongbao packets claims 97h0uojo11oljc4bchnk")

	code, stdout, _, c := packets(t, answers, "show", "97h0uojo11oljc4bchnk", "--json")
	if code != exitOK || stdout != packetText("open", 2, "")+"\n" || len(c.asked) != 1 {
		t.Errorf("exit code %d, asked %q\n%s", code, c.asked, stdout)
	}
	code, stdout, stderr, _ = packets(t, nil, "show", "97h0uojo11oljc4bchn0")
	if code != exitFailed || stdout != "" || stderr != "hongbao: packet_not_found: There is no such packet. (request req_1)\n" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"show"}, {"show", ""}, {"show", "97h0uojo11oljc4bchnk", "97h0uojo11oljc4bchn0"}} {
		if code, _, _, c := packets(t, nil, args...); code != exitUsage || len(c.asked) != 0 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

// TestPacketsList: the keys decide whose packets are listed.
func TestPacketsList(t *testing.T) {
	server := httptest.NewServer(&counter{answers: map[string][]string{
		"GET /v1/packets?limit=50&sender_id=alice&status=open": {`200 {"items":[` + packetText("open", 1, "") + `],"next_cursor":"c"}`},
		"GET /v1/staff/packets?limit=50&sender_id=alice&status=open": {
			`200 {"items":[` + packetText("open", 1, `,"app":"mall"`) + `],"next_cursor":null}`},
	}})
	t.Cleanup(server.Close)
	app, staff := "HONGBAO_APP_KEY=s3cret", "HONGBAO_OPS_KEY=s3cret"
	for _, tc := range []struct {
		keys []string
		more string
		code int
		want string // in the output, or in the error
		not  string
	}{
		{[]string{app}, "", exitOK, "97h0uojo11oljc4bchnk", "mall"},
		{[]string{app}, "--json", exitOK, `"next_cursor":"c"`, "mall"},
		{[]string{staff}, "", exitOK, "mall", ""},
		{[]string{app, staff}, "", exitOK, "mall", ""},
		{[]string{staff}, "--app-key s3cret", exitOK, "97h0uojo11oljc4bchnk", "mall"},
		{[]string{app}, "--overdue", exitUsage, "--overdue is for staff", ""},
		{[]string{app}, "--app mall", exitUsage, "--app is for staff", ""},
		{nil, "--app-key s3cret --ops-key s3cret", exitUsage, "--ops-key is for staff", ""},
		{nil, "", exitUsage, "HONGBAO_APP_KEY", ""},
		{nil, "", exitUsage, "HONGBAO_OPS_KEY", ""},
	} {
		var out, errs bytes.Buffer
		env := append([]string{"HONGBAO_URL=" + server.URL, "HONGBAO_STAFF_URL=" + server.URL}, tc.keys...)
		code := execute(t.Context(), strings.Fields("packets list --sender alice --status open "+tc.more), env, &out, &errs)
		text := out.String()
		if code != exitOK {
			text = errs.String()
		}
		if code != tc.code || !strings.Contains(text, tc.want) || tc.not != "" && strings.Contains(text, tc.not) {
			t.Errorf("%v %s: exit code %d\n%s%s", tc.keys, tc.more, code, &out, &errs)
		}
	}
}

func TestPacketsClaims(t *testing.T) {
	bob, carol := claimText("bob", 1, `,"new_member":"<&>"`), claimText("carol", 0, "")
	answers := map[string][]string{
		"GET /v1/packets/97h0uojo11oljc4bchnk/grabs?limit=200":             {`200 {"items":[` + bob + `],"next_cursor":"next"}`},
		"GET /v1/packets/97h0uojo11oljc4bchnk/grabs?cursor=next&limit=200": {`200 {"items":[` + carol + `],"next_cursor":null}`},
	}
	code, stdout, stderr, _ := packets(t, answers, "claims", "97h0uojo11oljc4bchnk", "--json")
	if want := `{"items":[` + bob + `,` + carol + `],"next_cursor":null}` + "\n"; code != exitOK || stdout != want || stderr != "" {
		t.Errorf("exit code %d\n%s%s, want\n%s", code, stdout, stderr, want)
	}
	code, stdout, _, _ = packets(t, answers, "claims", "97h0uojo11oljc4bchnk")
	if code != exitOK || strings.Count(stdout, "¥2.50") != 2 {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	code, stdout, _, _ = packets(t, map[string][]string{"GET /v1/packets/97h0uojo11oljc4bchnk/grabs?limit=200": {`200 {"items":[],"next_cursor":null}`}},
		"claims", "97h0uojo11oljc4bchnk", "--json")
	if code != exitOK || stdout != `{"items":[],"next_cursor":null}`+"\n" {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

func TestPacketsClaimOfUser(t *testing.T) {
	answers := map[string][]string{"GET /v1/packets/97h0uojo11oljc4bchnk/grabs/bob": {"200 " + claimText("bob", 1,
		`,"recipient_action":"confirm","confirm":{"parameters":{"package":"abc","appId":"wx1"},"valid_until":"2026-11-29T11:16:25Z"}`)}}
	code, stdout, stderr, _ := packets(t, answers, "claims", "97h0uojo11oljc4bchnk", "--user", "bob")
	for _, want := range []string{"recipient can", "confirm appId", "wx1", "confirm package", "abc", "confirm until", "¥2.50"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want %q\n%s%s", code, want, stdout, stderr)
		}
	}
}

func TestPacketsGrab(t *testing.T) {
	won := map[string][]string{"POST /v1/packets/97h0uojo11oljc4bchnk/grabs": {"201 " + claimText("bob", 3, "")}}
	code, stdout, _, c := packets(t, won, "grab", "97h0uojo11oljc4bchnk", "--user", "bob", "--nickname", "B", "--avatar-url", "https://x/y",
		"--recipient", "r", "--recipient-name", "张三", "--authorization", "n1",
		"--ticket", "x.y.z")
	if code != exitOK || stdout != "bob won ¥2.50 (250 fen): share 3, payout pp10003 is paid\n" {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if want := `POST /v1/packets/97h0uojo11oljc4bchnk/grabs {"user_id":"bob","nickname":"B","avatar_url":"https://x/y","recipient":{"account":"r","name":"张三","authorization":"n1"},"ticket":"x.y.z"}`; c.asked[0] != want {
		t.Errorf("asked %s, want %s", c.asked[0], want)
	}
	code, stdout, _, _ = packets(t, won, "grab", "97h0uojo11oljc4bchnk", "--user", "bob", "--json")
	if code != exitOK || stdout != claimText("bob", 3, "")+"\n" {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	_, stdout, _, _ = packets(t, map[string][]string{"POST /v1/packets/97h0uojo11oljc4bchnk/grabs": {
		"200 " + claimText("bob", 3, `,"replayed":true`)}}, "grab",
		"97h0uojo11oljc4bchnk", "--user", "bob")
	contains(t, stdout, "bob had won ¥2.50")
	sold := map[string][]string{
		"POST /v1/packets/97h0uojo11oljc4bchnk/grabs": {`409 {"code":"sold_out","detail":"The last share was claimed.","request_id":"req_2"}`}}
	code, stdout, stderr, c := packets(t, sold, "grab", "97h0uojo11oljc4bchnk", "--user", "late")
	if code != exitRefused || stdout != "" || stderr != "hongbao: sold_out: The last share was claimed. (request req_2)\n" ||
		len(c.asked) != 1 {
		t.Errorf("exit code %d, asked %q\n%s%s", code, c.asked, stdout, stderr)
	}
	// A terminal that is not in UTF-8: JSON would pay another user.
	code, _, stderr, c = packets(t, won, "grab", "97h0uojo11oljc4bchnk", "--user", "\xd5\xc5")
	if code != exitUsage || len(c.asked) != 0 || !strings.Contains(stderr, "UTF-8") {
		t.Errorf("exit code %d, asked %q, %s", code, c.asked, stderr)
	}
	code, _, stderr, c = packets(t, nil, "create", "--sender=\xd5\xc5", "--total=1", "--shares=1")
	if code != exitUsage || len(c.asked) != 0 || strings.Contains(stderr, "idempotency-key") {
		t.Errorf("exit code %d, asked %q, %s", code, c.asked, stderr)
	}
	if code, _, stderr, _ := packets(t, nil, "grab", "97h0uojo11oljc4bchnk"); code != exitUsage ||
		!strings.Contains(stderr, "--user is required") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestPacketsWatch(t *testing.T) {
	watched := func(texts ...string) map[string][]string {
		return map[string][]string{"GET /v1/packets/97h0uojo11oljc4bchnk": texts}
	}
	full := []string{"200 " + packetText("open", 0, ""), "503 ", "200 " + packetText("open", 0, ""), "200 " + packetText("open", 3, ""),
		"200 " + packetText("sold_out", 4, ""), "200 " + packetText("closed", 4, "")}
	t.Run("every share claimed", func(t *testing.T) {
		code, stdout, stderr, _ := packets(t, watched(full...), "watch", "97h0uojo11oljc4bchnk")
		if code != exitOK || stderr != "" || strings.Count(stdout, "\n") != 5 {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		contains(t, stdout, "open       0 / 4 claimed, ¥0.00", "open       3 / 4 claimed, ¥7.50", "sold_out   4 / 4 claimed, ¥10.00",
			"closed     4 / 4",
			"closed: 4 of 4 shares claimed, ¥10.00; ¥0.00 refunded")
	})
	t.Run("JSON", func(t *testing.T) {
		code, stdout, _, _ := packets(t, watched(full...), "watch", "97h0uojo11oljc4bchnk", "--json")
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		if code != exitOK || len(lines) != 4 || lines[3] != packetText("closed", 4, "") {
			t.Errorf("exit code %d\n%s", code, stdout)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
	})
	t.Run("shares left", func(t *testing.T) {
		code, stdout, stderr, _ := packets(t, watched("200 "+packetText("closing", 1, ""), "200 "+packetText("closed", 1, "")), "watch",
			"97h0uojo11oljc4bchnk")
		if code != exitLeft || stderr != "" {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		contains(t, stdout, "closed: 1 of 4 shares claimed, ¥2.50")
	})
	t.Run("rejected", func(t *testing.T) {
		code, _, stderr, _ := packets(t, watched("200 "+packetText("rejected", 0, `,"failure":{"code":"no_money","message":"Too poor."}`)),
			"watch", "97h0uojo11oljc4bchnk")
		if code != exitFailed || !strings.Contains(stderr, "packet 97h0uojo11oljc4bchnk was rejected: no_money: Too poor.") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		code, _, stderr, _ := packets(t, watched("200 "+packetText("open", 0, "")), "watch", "97h0uojo11oljc4bchnk", "--timeout", "300ms")
		if code != exitFailed || !strings.Contains(stderr, "97h0uojo11oljc4bchnk") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
	t.Run("live bar", func(t *testing.T) {
		var out bytes.Buffer
		o := barView{newBarMeter(&out, "open", 4)}
		for _, p := range []*wire.Packet{{Status: wire.PacketOpen, ShareCount: 4, ClaimedCount: 1, ClaimedAmount: 250},
			{Status: wire.PacketClosed, ShareCount: 4, ClaimedCount: 1, ClaimedAmount: 250}} {
			if err := o.show(p); err != nil {
				t.Fatal(err)
			}
		}
		o.end()
		contains(t, out.String(), "closed, ¥2.50 claimed")
	})
}

func TestPacketsHelp(t *testing.T) {
	for _, name := range []string{"create", "list", "show", "claims", "grab", "watch"} {
		code, stdout, _, _ := packets(t, nil, name, "--help")
		if code != exitOK {
			t.Errorf("%s: exit code %d", name, code)
		}
		contains(t, stdout, "--json", "--timeout", "--url", "env HONGBAO_URL", "--app-key", "env HONGBAO_APP_KEY", "hongbao packets "+name)
	}
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"packets", "show", "97h0uojo11oljc4bchnk"}, nil, &stdout, &stderr); code != exitUsage ||
		!strings.Contains(stderr.String(), "HONGBAO_APP_KEY") {
		t.Errorf("without a key: exit code %d, %s", code, &stderr)
	}
}

// TestHelpExports: dev.env only sets; a command that follows it in a help sees what was exported.
func TestHelpExports(t *testing.T) {
	shown := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		lines := strings.Split(cmd.Long, "\n")
		for i, line := range lines {
			if line == "  . .hongbao/dev.env" {
				shown++
				if !strings.HasPrefix(lines[i+1], "  export HONGBAO_") {
					t.Errorf("%s: %q follows dev.env", cmd.CommandPath(), lines[i+1])
				}
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	if walk(newRoot(nil)); shown < 2 {
		t.Errorf("only %d helps read dev.env", shown)
	}
}

func TestPacketsCompletion(t *testing.T) {
	list := map[string][]string{"GET /v1/packets?limit=20": {`200 {"items":[` + packetText("open", 1, "") + `],"next_cursor":null}`}}
	for args, want := range map[string]string{
		"packets create --split ":                   "random\nequal\neven\nnormal\n",
		"packets show ":                             "97h0uojo11oljc4bchnk\topen, ¥10.00 of alice, 1 of 4 claimed\n",
		"packets grab 97h0uojo11oljc4bchnk --user ": "",
		"packets ":                 "claims\t",
		"verify ":                  "json\n",
		"verify x.json --claims a": "json\n",
	} {
		c := &counter{answers: list}
		server := httptest.NewServer(c)
		var out bytes.Buffer
		words := append([]string{"__complete"}, strings.Split(args, " ")...)
		code := execute(t.Context(), words, []string{"HONGBAO_URL=" + server.URL, "HONGBAO_APP_KEY=s3cret"}, &out, io.Discard)
		server.Close()
		if code != exitOK || !strings.HasPrefix(out.String(), want) || want == "" && !strings.HasPrefix(out.String(), ":") {
			t.Errorf("%q: exit code %d, %q", args, code, &out)
		}
	}
	var script bytes.Buffer
	if code := execute(t.Context(), []string{"completion", "bash"}, nil, &script, io.Discard); code != exitOK ||
		!strings.Contains(script.String(), "hongbao") {
		t.Errorf("completion bash: exit code %d", code)
	}
}
