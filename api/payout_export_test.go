package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

// lines parses an export into one map a payout.
func lines(t *testing.T, text []byte) []map[string]string {
	t.Helper()
	if !bytes.HasSuffix(text, []byte("\r\n")) {
		t.Fatalf("lines do not end in CRLF: %.200q", text)
	}
	in := csv.NewReader(bytes.NewReader(text))
	head, err := in.Read()
	if err != nil {
		t.Fatal(err)
	}
	all, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := []map[string]string{}
	for _, cells := range all {
		line := map[string]string{}
		for i, name := range head {
			line[name] = cells[i]
		}
		out = append(out, line)
	}
	return out
}

func (h *fixture) export(query string) []map[string]string {
	h.t.Helper()
	r := h.as(h.auditor, "GET", "/v1/staff/export/payouts.csv"+query, "")
	if r.status != http.StatusOK {
		h.t.Fatalf("%s: %s", query, r)
	}
	return lines(h.t, r.body)
}

// flatten makes of a listed payout what its line should be, apart from defused text.
func flatten(t *testing.T, item json.RawMessage) map[string]string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	var p map[string]any
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"failure_code": "", "failure_message": "", "failure_retryable": "", "failure_next_action": ""}
	for name, value := range p {
		switch v := value.(type) {
		case nil:
			if name != "failure" {
				out[name] = ""
			}
		case map[string]any:
			for member, inner := range v {
				out[name+"_"+member] = fmt.Sprint(inner)
			}
		default:
			out[name] = fmt.Sprint(v)
		}
	}
	return out
}

// hostile are user ids that spreadsheets, or careless readers of CSV, would take
// for something else, with the first character of their cell.
var hostile = map[string]string{
	`=cmd|'/c calc'!A1`: "'", "+86 138": "'", "-1": "'", "@SUM(A1)": "'", "'quoted": "'", "＝1": "'", "＋1": "'", "－1": "'", "＠x": "'",
	`a,"b";c`: "a", "用/户~frozen": "用", " =1": "'", "a=1": "a", "1e5": "'", "|x": "|", "007": "'",
	"12345678901234567890": "'", "4d": "4",
}

func TestExport(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", strconv.Itoa(len(hostile)), "split", `"equal"`))
	for user := range hostile {
		if r := h.grab(h.app, id, user); r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
	}
	h.record(id)
	other, _ := h.failed()
	r := h.as(h.finance, "GET", "/v1/staff/export/payouts.csv", "")
	kind, params, err := mime.ParseMediaType(r.header.Get("Content-Disposition"))
	if r.header.Get("Content-Type") != "text/csv; charset=utf-8" || err != nil || kind != "attachment" ||
		!strings.HasPrefix(params["filename"], "payouts-") ||
		!strings.HasSuffix(params["filename"], ".csv") || r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Request-Id") == "" {
		t.Errorf("%v", r.header)
	}
	if bytes.HasPrefix(r.body, []byte("\ufeff")) ||
		!bytes.HasPrefix(r.body, []byte("id,packet_id,user_id,share_index,amount,currency,status,order_no,provider,")) {
		t.Errorf("%.200s", r.body)
	}
	marked := h.as(h.finance, "GET", "/v1/staff/export/payouts.csv?bom=true", "").body
	if rest, ok := bytes.CutPrefix(marked, []byte("\ufeff")); !ok || !bytes.Equal(rest, r.body) {
		t.Errorf("with a byte order mark: %.200q", marked)
	}
	// Every line is the listed payout, once one apostrophe is taken off.
	var page struct{ Items []json.RawMessage }
	h.page(h.finance, "/v1/staff/payouts?limit=200", &page)
	got := lines(t, r.body)
	if len(got) != len(hostile)+3 || len(got) != len(page.Items) {
		t.Fatalf("%d lines of %d payouts", len(got), len(page.Items))
	}
	for i, line := range got {
		want := flatten(t, page.Items[i])
		if first, ok := hostile[want["user_id"]]; ok && !strings.HasPrefix(line["user_id"], first) {
			t.Errorf("%q is written as %q", want["user_id"], line["user_id"])
		}
		seen, err := time.Parse(time.RFC3339, want["created_at"])
		if err != nil || line["amount_yuan"] != yuanOf(want["amount"]) ||
			line["created_local"] != seen.Add(8*time.Hour).Format("2006-01-02 15:04:05") || line["local_zone"] != "Asia/Shanghai" ||
			line["updated_local"] < line["created_local"] {
			t.Errorf("for people: %v of %v, %v", line, want, err)
		}
		for _, name := range []string{"amount_yuan", "created_local", "updated_local", "local_zone"} {
			delete(line, name)
		}
		for name, cell := range line {
			line[name] = strings.TrimPrefix(cell, "'")
		}
		if fmt.Sprint(line) != fmt.Sprint(want) {
			t.Errorf("line %d:\n got %v\nwant %v", i, line, want)
		}
	}
	// In another zone.
	for _, line := range h.export("?tz=Asia%2FTokyo&packet_id=" + id) {
		seen, err := time.Parse(time.RFC3339, line["created_at"])
		if err != nil || line["created_local"] != seen.Add(9*time.Hour).Format("2006-01-02 15:04:05") || line["local_zone"] != "Asia/Tokyo" {
			t.Errorf("in Tokyo: %v %v", line, err)
		}
	}
	// The filters of the list, and the same refusals.
	for _, query := range []string{
		"?packet_id=" + id, "?packet_id=x", "?status=failed", "?status=paid&packet_id=" + other, "?user_id=" + url.QueryEscape("用/户~frozen"),
		"?failure_code=account_frozen", "?older_than_seconds=60", "?older_than_seconds=0", "?amount_min=250&amount_max=250", "?amount_max=0",
		"?order_no=" + got[0]["order_no"],
	} {
		want := h.payouts(query).Items
		lines := h.export(query)
		if len(lines) != len(want) {
			t.Fatalf("%s: %d lines, listed %d", query, len(lines), len(want))
		}
		for i, p := range want {
			if lines[i]["id"] != p.ID {
				t.Errorf("%s: line %d is %s, want %s", query, i, lines[i]["id"], p.ID)
			}
		}
	}
	for query, field := range map[string]string{
		"status=x": "status", "status=": "status", "amount_min=-1": "amount_min", "amount_min=2&amount_max=1": "amount_max",
		"user_id=%00": "user_id", "limit=5": "limit", "cursor=x": "cursor", "tz=Mars": "tz", "tz=Local": "tz", "bom=": "bom", "bom=1": "bom",
		"bom=true&bom=true": "bom", "format=xlsx": "format",
	} {
		r := h.as(h.ops, "GET", "/v1/staff/export/payouts.csv?"+query, "")
		if got := fieldsOf(t, r); r.status != http.StatusUnprocessableEntity || r.header.Get("Content-Type") != "application/problem+json" ||
			r.header.Get("Content-Disposition") != "" || len(got) != 1 || !strings.HasPrefix(got[0], field+" ") {
			t.Errorf("%s: %s", query, r)
		}
	}
}

// yuanOf puts the point into an amount in fen.
func yuanOf(fen string) string {
	fen = strings.Repeat("0", max(0, 3-len(fen))) + fen
	return fen[:len(fen)-2] + "." + fen[len(fen)-2:]
}

// manyPayouts fills the books with n payouts of one packet.
func (h *fixture) manyPayouts(dsn string, n int) {
	h.t.Helper()
	h.exec(dsn, fmt.Sprintf(`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark,
		provider, status, attempt, failure_code, failure_message, created_at, updated_at, settled_at)
		SELECT CONCAT('p00000000000000000000', LPAD(CONV(seq, 10, 32), 4, '0')), 'p', '00000000000000000000', 'app', CONCAT('u', seq), seq, 'a',
		1 + seq MOD 7, 'CNY', '', 'sandbox',
			IF(seq MOD 3, 'failed', 'paid'), 0, IF(seq MOD 3, 'declined', NULL), IF(seq MOD 3, REPEAT('远', 200), NULL),
			NOW(3) - INTERVAL seq DIV 3 SECOND, NOW(3), NOW(3) FROM seq_1_to_%d`, n))
}

// TestExportSteps: over many steps every payout is there once and in order, also
// when others are added while it is sent.
func TestExportSteps(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	const n = 5000
	h.manyPayouts(dsn, n)
	small := 0
	for seq := 1; seq <= n; seq++ {
		if seq%3 == 0 && seq%7 < 3 {
			small++
		}
	}
	for _, tc := range []struct {
		query string
		want  int
	}{{"?status=failed", n - n/3}, {"?status=paid&amount_max=3", small}, {"?packet_id=" + anonymous, n}, {"", n}} {
		query, want := tc.query, tc.want
		body, _ := h.stream(t.Context(), query)
		head := make([]byte, 100)
		if _, err := io.ReadFull(body, head); err != nil {
			t.Fatal(err)
		}
		if query == "" {
			h.failed()
		}
		rest, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		got := lines(t, append(head, rest...))
		var order []string
		for _, line := range got {
			order = append(order, line["created_at"]+strings.TrimPrefix(line["id"], "'"))
		}
		newest := slices.Clone(order)
		slices.Sort(newest)
		slices.Reverse(newest)
		if len(got) != want || !slices.Equal(order, newest) || len(slices.Compact(newest)) != want {
			t.Errorf("%s: %d lines, want %d", query, len(got), want)
		}
	}
}

// stream opens an export that is read bit by bit.
func (h *fixture) stream(ctx context.Context, query string) (io.Reader, func()) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", h.staff+"/v1/staff/export/payouts.csv"+query, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.finance.token)
	res, err := client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %d", query, res.StatusCode)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res.Body, func() { _ = res.Body.Close() }
}

// TestExportIsCutOff: a part is never taken for the whole. What cannot be begun is
// answered with a problem; what cannot be gone on with ends the connection.
func TestExportIsCutOff(t *testing.T) {
	t.Parallel()
	server, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	h.manyPayouts(dsn, 30_000) // more than the buffers of a connection hold
	body, _ := h.stream(t.Context(), "")
	in := bufio.NewReader(body)
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "id,") {
		t.Fatalf("%q, %v", line, err)
	}
	server.Kill()
	rest, err := io.ReadAll(in)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %d bytes: %v, want an unexpected end", len(rest), err)
	}
	if r := h.as(h.finance, "GET", "/v1/staff/export/payouts.csv", ""); r.status != http.StatusServiceUnavailable ||
		r.code() != "unavailable" || r.header.Get("Content-Disposition") != "" {
		t.Errorf("%.300s", r)
	}
	server.Restart(t)
	wait.Until(h.t, "MySQL is back", func() bool { return h.store.Ping(t.Context()) == nil })
	// A client that goes away ends the export, and a server that ends cuts it off.
	_, gone := h.stream(t.Context(), "")
	gone()
	body, _ = h.stream(t.Context(), "")
	first := make([]byte, 1)
	if _, err := io.ReadFull(body, first); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- h.stop() }()
	wait.Until(h.t, "draining", func() bool {
		res, err := client.Get(h.staff + "/livez")
		if err == nil {
			_ = res.Body.Close()
		}
		return err != nil
	})
	if rest, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %d bytes: %v, want an unexpected end", len(rest), err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the server did not end cleanly: %v", err)
	}
}
