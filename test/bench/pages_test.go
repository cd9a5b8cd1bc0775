package bench

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/internal/packet"
)

const (
	pageSize    = 50  // the default of the API
	largestPage = 200 // that the API gives
	// fewRows are those of the baseline.
	fewRows = 1_000
)

// list is a list of the API, with the expected numbers of its items.
type list struct {
	what, path string
	query      url.Values
	items      int
	lucky      int // of them
}

// lists returns the lists that are measured, the same for every archive.
func (a *archive) lists() []list {
	user, only := "/v1/users/"+regular, func(status packet.Status) url.Values { return url.Values{"status": {string(status)}} }
	taken := a.sent - rejected
	return []list{
		{"grabs of a closed packet (MySQL)", "/v1/packets/" + a.closed + "/grabs", nil, a.rows, 1},
		{"grabs of a live packet (Redis)", "/v1/packets/" + a.live + "/grabs", nil, a.rows, 1},
		{"a user's claims", user + "/claims", nil, taken, taken},
		{"packets a user sent", user + "/packets", nil, a.sent, 0},
		{"packets that are closed", "/v1/packets", only(packet.StatusClosed), taken + 1, 0},
		{"packets that were rejected", "/v1/packets", only(packet.StatusRejected), rejected, 0},
	}
}

// item has the members that distinguish claims and packets.
type item struct {
	ID       string `json:"id"`        // of a packet
	PacketID string `json:"packet_id"` // of a claim
	Share    int    `json:"share_index"`
	Best     bool   `json:"best_luck"`
}

// page is a page of a list in a response.
type page struct {
	Items []item  `json:"items"`
	Next  *string `json:"next_cursor"`
}

func (a *archive) url(path string, query url.Values) string {
	if len(query) == 0 {
		return "http://" + a.addr + path
	}
	return "http://" + a.addr + path + "?" + query.Encode()
}

// read sends a request, decodes the response, and returns the duration of the call.
func (a *archive) read(tb testing.TB, url string, into any) time.Duration {
	tb.Helper()
	began := time.Now()
	err := a.reader.get(url)
	took := time.Since(began)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(a.reader.body, into); err != nil {
		tb.Fatalf("%s: %v", url, err)
	}
	return took
}

// pageRequest is a repeated request, for pages at several places of a list in turn.
type pageRequest struct {
	what  string
	urls  []string
	items int // of each answer
}

// walk reads a whole list and fails the test unless each item occurs once. It returns requests for pages at the beginning, in the
// middle half and at the end. It reads the end in small pages, so that the last page begins where one of the usual size would.
func (a *archive) walk(tb testing.TB, l list) []pageRequest {
	tb.Helper()
	type cursor struct {
		after int
		text  string
	}
	type key struct {
		id    string
		share int
	}
	var cursors []cursor
	seen := make(map[key]struct{}, l.items)
	query := url.Values{}
	for name, value := range l.query {
		query[name] = value
	}
	var n, lucky, last int // items, those of them with the best luck, items of the last page
	for {
		limit := largestPage
		if l.items-n <= largestPage {
			limit = pageSize
		}
		query.Set("limit", strconv.Itoa(limit))
		var p page
		a.read(tb, a.url(l.path, query), &p)
		for _, it := range p.Items {
			seen[key{it.ID + it.PacketID, it.Share}] = struct{}{}
			if it.Best {
				lucky++
			}
		}
		n, last = n+len(p.Items), len(p.Items)
		if p.Next == nil || n > l.items {
			break
		}
		cursors = append(cursors, cursor{n, *p.Next})
		query = url.Values{"cursor": {*p.Next}} // it keeps the filters
	}
	if n != l.items || len(seen) != n || lucky != l.lucky {
		tb.Fatalf("%s: %d items, %d different ones, %d with the best luck; want %d, %d", l.what, n, len(seen), lucky, l.items, l.lucky)
	}
	at := func(c cursor) string { return a.url(l.path, url.Values{"cursor": {c.text}}) }
	out := []pageRequest{{l.what + ", first page", []string{a.url(l.path, l.query)}, min(pageSize, n)}}
	var middle []string
	for _, c := range cursors {
		if c.after >= n/4 && c.after <= n*3/4 && n-c.after >= pageSize {
			middle = append(middle, at(c))
		}
	}
	if len(middle) > 0 {
		out = append(out, pageRequest{"  in the middle", middle, pageSize})
	}
	if len(cursors) > 0 {
		out = append(out, pageRequest{"  last page", []string{at(cursors[len(cursors)-1])}, last})
	}
	return out
}

// summary is the part of a user's summary that is checked.
type summary struct {
	Sent struct {
		Count  int   `json:"count"`
		Amount int64 `json:"amount"`
	} `json:"sent"`
	Received struct {
		Count  int   `json:"count"`
		Amount int64 `json:"amount"`
		Best   int   `json:"best_luck"`
	} `json:"received"`
}

// requests returns all requests to an archive, after it has checked the lists behind them.
func (a *archive) requests(tb testing.TB) (all []pageRequest) {
	tb.Helper()
	for _, l := range a.lists() {
		all = append(all, a.walk(tb, l)...)
	}
	one := crowdUser + strconv.Itoa(a.rows/2)
	of := func(user string) string {
		return a.url("/v1/users/"+user+"/summary", url.Values{"year": {strconv.Itoa(filledYear)}})
	}
	taken := a.sent - rejected
	for user, want := range map[string][3]int{regular: {taken, taken, taken}, one: {0, 1, 0}} {
		var s summary
		a.read(tb, of(user), &s)
		if got := [3]int{s.Sent.Count, s.Received.Count, s.Received.Best}; got != want || s.Sent.Amount != int64(share)*int64(want[0]) ||
			s.Received.Amount != int64(share)*int64(want[1]) {
			tb.Fatalf("summary of %s: %+v, want %v", user, s, want)
		}
	}
	return append(all,
		pageRequest{"packets that are sold out (of Redis)",
			[]string{a.url("/v1/packets", url.Values{"status": {string(packet.StatusSoldOut)}})}, 1},
		pageRequest{"claims of a user who has two", []string{a.url("/v1/users/"+one+"/claims", nil)}, 2},
		pageRequest{"summary of a user who has two", []string{of(one)}, 0},
		pageRequest{"summary of one who sent and got all", []string{of(regular)}, 0})
}

// times are the durations of one request, in rising order.
type times []time.Duration

func (t times) at(percent int) float64 { return t[(len(t)-1)*percent/100].Seconds() * 1e3 }

// latency holds the durations of one request to both archives.
type latency struct {
	what      string
	few, many times
}

func (l latency) ratio() float64 { return l.many.at(50) / l.few.at(50) }

// callBoth sends the requests to both archives in turn, so that other load affects both.
func callBoth(tb testing.TB, few, many *archive, calls int) (out []latency) {
	tb.Helper()
	b := many.requests(tb) // first: it takes longer than an idle connection is kept
	a := few.requests(tb)
	if len(a) != len(b) {
		tb.Fatalf("%d requests and %d", len(a), len(b))
	}
	for i := range a {
		if a[i].what != b[i].what {
			tb.Fatalf("%q beside %q", a[i].what, b[i].what)
		}
		l := latency{what: b[i].what}
		once := func(of *archive, q pageRequest, n int) time.Duration {
			var p page
			took := of.read(tb, q.urls[n*len(q.urls)/calls], &p)
			if len(p.Items) != q.items {
				tb.Fatalf("%s: %d items, want %d", q.what, len(p.Items), q.items)
			}
			return took
		}
		for n := range calls {
			l.few = append(l.few, once(few, a[i], n))
			l.many = append(l.many, once(many, b[i], n))
		}
		slices.Sort(l.few)
		slices.Sort(l.many)
		out = append(out, l)
	}
	return out
}

// pagesReport holds the results of measurePages.
type pagesReport struct {
	MariaDB  string
	Rows     int // of each large table, and claims in Redis
	Few      int // of the baseline
	Packets  int
	Calls    int // of each question
	LoadTime time.Duration
	results  []latency
}

// measurePages creates both archives and measures the requests to them.
func measurePages(t *testing.T, p plan, say func(string, ...any)) []result {
	if p.rows == 0 {
		say("skipped: -rows 0")
		return nil
	}
	say("filling MariaDB and Redis with %d claims each, and with %d", p.rows, fewRows)
	few, many := newArchive(t, fewRows), newArchive(t, p.rows)
	s := &pagesReport{Rows: p.rows, Few: fewRows, Packets: many.sent + 2, Calls: p.calls, LoadTime: many.took}
	if err := many.db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&s.MariaDB); err != nil {
		t.Fatal(err)
	}
	say("sending the requests")
	s.results = callBoth(t, few, many, p.calls)
	return []result{s.result()}
}

// pageTime is one request as a line of JSON.
type pageTime struct {
	What     string  `json:"what"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Min      float64 `json:"min_ms"`
	Max      float64 `json:"max_ms"`
	Baseline float64 `json:"baseline_p50_ms"`
	Ratio    float64 `json:"ratio"` // of the p50; above 1 is slower
}

// result is the report as a table.
func (s *pagesReport) result() result {
	few, many := figure(float64(s.Few))+" claims", figure(float64(s.Rows))+" claims"
	r := result{title: "how long a page of a list takes, over HTTP", columns: []string{"GET", "p50 ms", "p99 ms", "least", "most", "p50 at " +
		few, "ratio"},
		notes: []string{
			fmt.Sprintf("MariaDB %s with %d claimed shares, as many payouts and %d packets; Redis with %d claims; filled in %v.", s.MariaDB, s.Rows,
				s.Packets, s.Rows, s.LoadTime.Round(100*time.Millisecond)),
			fmt.Sprintf("One caller sends each request %d times, in turn with the same request to an API with %d claims. A ratio of 1 "+
				"means that more rows cost nothing.",
				s.Calls, s.Few),
			"Before, every list was read to its end and its numbers were checked.",
		},
		plot: &plot{title: "A page of a list, p50", unit: "ms"}}
	list := ""
	for _, l := range s.results {
		what := l.what
		if place, rest := strings.CutPrefix(what, "  "); rest {
			what = list + ", " + place
		} else {
			list, _, _ = strings.Cut(what, ", ")
		}
		ms := func(of times, percent int) string { return fmt.Sprintf("%.2f", of.at(percent)) }
		r.rows = append(r.rows, []string{what, ms(l.many, 50), ms(l.many, 99), ms(l.many, 0), ms(l.many, 100), ms(l.few, 50),
			fmt.Sprintf("%.2f", l.ratio())})
		r.numbers = append(r.numbers, pageTime{what, l.many.at(50), l.many.at(99), l.many.at(0), l.many.at(100), l.few.at(50), l.ratio()})
		r.plot.bars = append(r.plot.bars, bar{what, few, l.few.at(50), l.few.at(50), l.few.at(50)},
			bar{what, many, l.many.at(50), l.many.at(50), l.many.at(50)})
	}
	return r
}
