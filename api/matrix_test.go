package api_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/wire"
)

// Who may call an operation, beside roles of staff.
const (
	everybody = "everybody" // no key is looked at
	apps      = "app"
	allStaff  = "finance ops auditor admin"
)

// matrixRow says who may call one operation and what they are answered. Its path
// and body name what the matrix has made for it.
type matrixRow struct {
	who    string // everybody, apps or roles of staff
	path   string
	body   string
	status int // for those who may
	header map[string]string
}

// matrix is everything that the rows of the matrix act on.
type matrix struct {
	*fixture
	rows    map[string]matrixRow
	callers map[string]string // their tokens
	open    string            // a packet of app that can be grabbed
	closed  string            // one that has left Redis
	staged  string            // one that is in Redis only
}

// TestRoleMatrix: every operation of the document, on every listener, for every
// kind of caller, is answered with exactly the status that its security and role
// statement says. An operation without a row fails, and so does a row that says
// something else than the document.
func TestRoleMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	refused := 0
	before := m.verdict().Entries
	m.each(func(id string, row matrixRow, method string) {
		for caller := range m.callers {
			if row.may(caller) || method == http.MethodHead && !m.represents(caller) {
				continue
			}
			refused++
			want := http.StatusForbidden
			if !m.known(caller) {
				want = http.StatusUnauthorized
			}
			m.expect(id, caller, m.callOf(row, method, caller), want)
		}
	})
	if after := m.verdict().Entries; after != before {
		t.Errorf("%d entries of the audit come from those who may not write", after-before)
	}
	if p := m.packet(m.app, m.open); p.ClaimedCount != 9 || p.Status != "sold_out" {
		t.Errorf("those who may not have changed a packet: %+v", p)
	}
	m.wrongListener()
	m.each(func(id string, row matrixRow, method string) {
		for caller := range m.callers {
			if row.may(caller) && (method != http.MethodHead || m.represents(caller)) {
				m.expect(id, caller, m.callOf(row, method, caller), row.status)
			}
		}
	})
	if refused < 400 {
		t.Errorf("only %d refusals", refused)
	}
}

// TestAnotherAppsPacket: to another app, a packet is not there, in every state and
// by every operation: status, headers and body are those of an id nobody has. Of
// users an app learns only what they did with its own packets.
func TestAnotherAppsPacket(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	before := m.packet(m.app, m.open)
	seen := 0
	m.each(func(id string, row matrixRow, method string) {
		if row.who != apps || !strings.Contains(row.path, m.open) && !strings.Contains(row.path, "/users/") {
			return
		}
		for _, real := range []string{m.open, m.closed, m.staged} {
			for _, user := range []string{"winner", "u1", "no%20winner"} {
				there := strings.NewReplacer(m.open, real, "winner", user).Replace(row.path)
				missing := strings.NewReplacer(m.open, anonymous, "winner", "nobody").Replace(row.path)
				if got, want := m.answerOf(method, there, row), m.answerOf(method, missing, row); got != want {
					t.Errorf("%s %s differs from an unknown path:\n%s\n%s", id, there, got, want)
				}
				seen++
			}
		}
	})
	if seen < 9*9 {
		t.Errorf("only %d answers compared", seen)
	}
	for _, list := range []string{"/v1/packets", "/v1/packets?sender_id=u1", "/v1/packets?status=closed", "/v1/packets?status=funding"} {
		var page struct{ Items []packetBody }
		m.page(m.app2, list, &page)
		for _, p := range page.Items {
			if slices.Contains([]string{m.open, m.closed, m.staged}, p.ID) {
				t.Errorf("%s: %s is another app's", list, p.ID)
			}
		}
	}
	if after := m.packet(m.app, m.open); after != before {
		t.Errorf("another app has changed it: %+v, before %+v", after, before)
	}
}

// answerOf is what the other app is answered, without what names the request.
func (m *matrix) answerOf(method, path string, row matrixRow) string {
	m.t.Helper()
	r := m.do(call{method: method, path: path, key: m.app2.token, body: row.body, header: map[string]string{"X-Request-Id": "same"}})
	if strings.Contains(path, "/packets/") && r.status != http.StatusNotFound {
		m.t.Errorf("%s %s: %s", method, path, r)
	}
	r.header.Del("Date")
	r.header.Del("Content-Length") // the path is part of the body
	bare, _, _ := strings.Cut(path, "?")
	body := strings.ReplaceAll(string(r.body), `"instance":"`+bare+`"`, `"instance":""`)
	for _, user := range []string{"winner", "u1", "no winner", "nobody"} {
		body = strings.ReplaceAll(body, `"user_id":"`+user+`"`, `"user_id":""`)
	}
	return fmt.Sprint(r.status, r.header, body)
}

// wrongListener checks that the routes do not exist on the other listener, and that only
// callers with access to it get 404.
func (m *matrix) wrongListener() {
	m.each(func(id string, row matrixRow, method string) {
		for caller := range m.callers {
			if !m.represents(caller) {
				continue
			}
			c := m.callOf(row, method, caller)
			if c.base = m.staff; strings.HasPrefix(c.path, "/v1/staff") || c.path == "/metrics" {
				c.base = m.public
			}
			want := http.StatusNotFound
			switch staffPath := strings.HasPrefix(c.path, "/v1/staff"); {
			case c.path == "/livez" || c.path == "/readyz" || strings.HasPrefix(c.path, "/errors/"): // on both
				want = row.status
			case !m.known(caller):
				want = http.StatusUnauthorized
			case staffPath == (caller == apps) && strings.HasPrefix(c.path, "/v1/"):
				want = http.StatusForbidden
			}
			m.expect(id+" on the other listener", caller, c, want)
		}
	})
}

// each goes through the operations of the document, in its order. GETs are asked
// by HEAD too.
func (m *matrix) each(do func(id string, row matrixRow, method string)) {
	m.t.Helper()
	seen := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(m.doc.doc.Paths.Map())) {
		operations := m.doc.doc.Paths.Value(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			id := operations[method].OperationID
			row, ok := m.rows[id]
			if !ok {
				m.t.Errorf("%s %s: operation %s has no row in the matrix", method, path, id)
				continue
			}
			seen[id] = true
			pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
			if bare, _, _ := strings.Cut(row.path, "?"); !regexp.MustCompile("^" + pattern + "$").MatchString(bare) {
				m.t.Errorf("%s: the row's path %s is not %s", id, row.path, path)
			}
			if said := documentedWho(operations[method]); said != row.who {
				m.t.Errorf("%s: the document says %q, the matrix %q", id, said, row.who)
			}
			do(id, row, method)
			if method == http.MethodGet {
				do(id, row, http.MethodHead)
			}
		}
	}
	for id := range m.rows {
		if !seen[id] {
			m.t.Errorf("row %s is of no operation", id)
		}
	}
}

var onlyFor = regexp.MustCompile(`Only for the roles? ([a-z, ]+)\.$`)

// documentedWho is who may call an operation as its security and text say.
func documentedWho(op *openapi3.Operation) string {
	if op.Security == nil || len(*op.Security) == 0 {
		return everybody
	}
	var schemes []string
	for _, one := range *op.Security {
		schemes = append(schemes, slices.Collect(maps.Keys(one))...)
	}
	only := onlyFor.FindStringSubmatch(op.Description)
	switch {
	case slices.Equal(schemes, []string{"appKey"}) && only == nil:
		return apps
	case slices.Equal(schemes, []string{"staffKey"}) && only != nil:
		return strings.ReplaceAll(only[1], ",", "")
	case slices.Equal(schemes, []string{"staffKey"}) && strings.HasSuffix(op.Description, "For every role of staff."):
		return allStaff
	}
	return fmt.Sprintf("%v, %s", schemes, op.Description)
}

func (r matrixRow) may(caller string) bool {
	return r.who == everybody || slices.Contains(strings.Fields(r.who), caller)
}

// known reports whether the caller's key is one.
func (m *matrix) known(caller string) bool {
	return caller == apps || slices.Contains(strings.Fields(allStaff), caller)
}

// represents leaves one of those without a good key, where asking for all of them
// would say nothing new.
func (m *matrix) represents(caller string) bool {
	return m.known(caller) || caller == "revoked app key"
}

func (m *matrix) callOf(row matrixRow, method, caller string) call {
	c := call{method: method, path: row.path, key: m.callers[caller], body: row.body,
		header: map[string]string{"Idempotency-Key": "matrix-" + caller}}
	maps.Copy(c.header, row.header)
	return c
}

func (m *matrix) expect(id, caller string, c call, want int) {
	m.t.Helper()
	r := m.do(c)
	if r.status != want {
		m.t.Errorf("%s: %s %s as %s: want %d, got %.300s", id, c.method, c.path, caller, want, r)
	}
	codes := map[int]string{http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden"}
	if code, ok := codes[want]; ok && c.method != http.MethodHead && r.code() != code {
		m.t.Errorf("%s: %s %s as %s: want %s, got %.300s", id, c.method, c.path, caller, code, r)
	}
	if stored := r.header.Get("Cache-Control"); strings.HasPrefix(c.path, "/v1/") && want/100 == 2 &&
		id != "receiveNotification" && stored != "no-store" {
		m.t.Errorf("%s %s: Cache-Control %q", c.method, id, stored)
	}
}

// newMatrix makes one of everything that can be asked for.
func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{fixture: newFixture(t, parts{})}
	m.callers = map[string]string{"without key": "", "malformed key": "not_a_key", "key with a typing error": m.finance.token + "A",
		"unknown staff key": tokenOf(access.RoleFinance), "unknown app key": tokenOf(access.RoleApp),
		"revoked app key": m.revoked(access.RoleApp), "revoked finance key": m.revoked(access.RoleFinance),
		"app": m.app.token, "finance": m.finance.token, "ops": m.ops.token, "auditor": m.auditor.token, "admin": m.administrator().token}
	m.open = m.fixture.open(m.app, with("total_amount", "9000", "share_count", "9", "split", `"equal"`))
	var failed []string
	for i := range 8 {
		m.grab(m.app, m.open, fmt.Sprint("w", i, "~frozen"))
	}
	m.grab(m.app, m.open, "winner")
	m.record(m.open)
	for _, p := range m.payouts("?status=failed&packet_id=" + m.open).Items {
		failed = append(failed, p.ID)
	}
	if len(failed) != 8 {
		t.Fatalf("failed payouts: %v", failed)
	}
	m.closed = m.fixture.open(m.app, with("share_count", "2"))
	m.grab(m.app, m.closed, "winner")
	m.finish(m.closed, packet.CloseRecalled)
	// The ledger begins a day ago: lists of its days have more than one.
	books := m.database(m.dsn)
	for _, statement := range []string{"DROP TRIGGER transfers_no_update", "UPDATE transfers SET created_at = created_at - INTERVAL 1 DAY " +
		"ORDER BY created_at, id LIMIT 1"} {
		_, err := books.ExecContext(t.Context(), statement)
		m.check(err)
	}
	m.staged = m.stage(m.app, "u1").ID
	m.rows = m.makeRows(failed)
	return m
}

// credited credits the balance of the app, by two persons.
func (m *matrix) credited(i int, second owner) {
	m.t.Helper()
	var d wire.DecidedMovement
	m.write(m.finance, "balances/"+m.app.app.ID+"/credit", fmt.Sprint("credit", i),
		fmt.Sprintf(`{"amount":1000,"reason":"deposit","evidence":"slip %d"}`, i)).json(m.t, &d)
	if d.Approval == nil {
		m.t.Fatalf("credit %d: %+v", i, d)
	}
	m.decided(m.write(second, "approvals/"+d.Approval.ID+"/approve", fmt.Sprint("approve", i), because), "carried_out")
}

func tokenOf(role access.Role) string {
	token, _ := access.NewToken(role)
	return token
}

// revoked is a key that was one.
func (m *matrix) revoked(role access.Role) string {
	m.t.Helper()
	o := m.newOwner(role)
	path := map[access.Role]string{access.RoleApp: "/v1/packets", access.RoleFinance: "/v1/staff/payouts"}[role]
	wait.Until(m.t, "the new key opens", func() bool { return m.as(o, "GET", path, "").status == http.StatusOK })
	_, err := m.store.RevokeKey(m.t.Context(), o.key.ID)
	m.check(err)
	wait.Until(m.t, "the revoked key opens nothing", func() bool { return m.as(o, "GET", path, "").status == http.StatusUnauthorized })
	return o.token
}

// failedRefund is a refund that the provider declined.
func (m *matrix) failedRefund() string {
	m.t.Helper()
	faults := func(rules string) {
		if r := m.do(call{method: "PUT", base: m.provider, path: "/_faults", body: `{"rules":[` + rules +
			`]}`}); r.status != http.StatusNoContent {
			m.t.Fatalf("%s", r)
		}
	}
	id := m.fixture.open(m.app, with())
	_, err := m.store.BeginClosing(m.t.Context(), id, packet.CloseRecalled)
	m.check(err)
	_, err = m.pool.ClosePool(m.t.Context(), id, packet.CloseRecalled)
	m.check(err)
	_, err = m.store.CloseBooks(m.t.Context(), id, "")
	m.check(err)
	faults(`{"op":"refund","kind":"decline","rate":1}`)
	refund := payout.ID(payout.KindRefund, id, 0)
	if st := m.drive(refund); st.Status != payout.StatusFailed {
		m.t.Fatalf("%+v", st)
	}
	faults("")
	return refund
}

// waiting is the approval of a decision of finance's colleague.
func (m *matrix) waiting(colleague owner, payoutID string) string {
	m.t.Helper()
	return m.decided(m.write(colleague, "payouts/"+payoutID+"/cancel", payoutID, because), "waiting").Approval.ID
}

// openCancel makes a cancel by two persons, and returns its payout.
func (h *fixture) openCancel(colleague owner, payoutID string) string {
	h.t.Helper()
	d := h.decided(h.write(colleague, "payouts/"+payoutID+"/cancel", payoutID, because), "waiting")
	h.decided(h.write(h.finance, "approvals/"+d.Approval.ID+"/approve", payoutID, because), "open")
	return payoutID
}

// makeRows is the matrix: one row an operation of the document.
func (m *matrix) makeRows(failed []string) map[string]matrixRow {
	m.t.Helper()
	colleague := m.colleague()
	var run reconciliationBody
	m.write(m.finance, "reconciliations", "run", `{}`).json(m.t, &run)
	m.reconciled(run.ID, 2)
	m.write(m.finance, "reconciliations", "earlier", `{"date":"2026-02-17"}`)
	broken := m.breaks("").Items[0].ID
	if _, r := m.create(m.app, "matrix-app", with()); r.status != http.StatusCreated {
		m.t.Fatalf("%s", r)
	}
	refunds := [2]string{m.failedRefund(), m.failedRefund()}
	fresh := m.fixture.open(m.app, with())
	notice := `{"event_id":"e1","type":"order.succeeded","order_no":"` + payout.OrderNo(failed[0], 1) +
		`","status":"succeeded","created_at":"2026-01-01T00:00:00Z"}`
	const staff, evidence = "/v1/staff", `{"reason":"because","evidence":"a letter"}`
	read := func(who, path string) matrixRow { return matrixRow{who: who, path: path, status: http.StatusOK} }
	decide := func(path, body string) matrixRow {
		return matrixRow{who: "finance", path: staff + path, body: body, status: http.StatusAccepted}
	}
	today := string(payout.DayOf(time.Now(), time.UTC))
	campaignID := m.campaignOfDays(2)
	campaigns := "/v1/campaigns/" + campaignID
	m.signs(m.administrator(), m.app)
	held := m.releasedHold()
	ended := "/v1/campaigns/" + m.campaign(m.app, rand.Text(), campaignBody()).ID
	return map[string]matrixRow{
		"createPacket": {who: apps, path: "/v1/packets", body: with(), status: http.StatusCreated},
		"listPackets":  read(apps, "/v1/packets"),
		"getPacket":    read(apps, "/v1/packets/"+m.open),
		"closePacket":  {who: apps, path: "/v1/packets/" + m.open + "/close", status: http.StatusAccepted},
		"getProof":     read(apps, "/v1/packets/"+m.open+"/proof"),
		"grab":         {who: apps, path: "/v1/packets/" + m.open + "/grabs", body: `{"user_id":"winner"}`, status: http.StatusOK},
		"listGrabs":    read(apps, "/v1/packets/"+m.open+"/grabs"),
		"getGrab":      read(apps, "/v1/packets/"+m.open+"/grabs/winner"),
		"setRecipient": {who: apps, path: "/v1/packets/" + m.open + "/grabs/winner/recipient", body: `{"account":"other"}`,
			status: http.StatusConflict},
		"getAuthorization": {who: apps, path: "/v1/recipients/winner/authorizations", status: http.StatusUnprocessableEntity},
		"authorize":        {who: apps, path: "/v1/recipients/winner/authorizations", body: "{}", status: http.StatusUnprocessableEntity},
		"confirmAgain":     {who: apps, path: "/v1/packets/" + m.open + "/grabs/winner/confirm", status: http.StatusConflict},
		"listUserClaims":   read(apps, "/v1/users/winner/claims"),
		"listUserPackets":  read(apps, "/v1/users/u1/packets"),
		"getUserSummary":   read(apps, "/v1/users/winner/summary?year=2026"),

		"createCampaign":   {who: apps, path: "/v1/campaigns", body: campaignBody(), status: http.StatusCreated},
		"listCampaigns":    read(apps, "/v1/campaigns"),
		"getCampaign":      read(apps, campaigns),
		"listCampaignDays": read(apps, campaigns+"/days"),
		"pauseCampaign":    {who: apps, path: campaigns + "/pause", status: http.StatusOK},
		"resumeCampaign":   {who: apps, path: campaigns + "/resume", status: http.StatusOK},
		"endCampaign":      {who: apps, path: ended + "/end", status: http.StatusOK},

		"listStaffCampaigns":    read(allStaff, staff+"/campaigns"),
		"getStaffCampaign":      read(allStaff, staff+"/campaigns/"+campaignID),
		"listStaffCampaignDays": read(allStaff, staff+"/campaigns/"+campaignID+"/days"),
		"pauseStaffCampaign": {who: "ops finance", path: staff + "/campaigns/" + m.campaign(m.app, rand.Text(), campaignBody()).ID + "/pause",
			body: because, status: http.StatusOK},
		"endStaffCampaign": {who: "ops finance", path: staff + "/campaigns/" + m.campaign(m.app, rand.Text(), campaignBody()).ID + "/end",
			body: because, status: http.StatusOK},

		"listPayouts":    read(allStaff, staff+"/payouts"),
		"sumPayouts":     read(allStaff, staff+"/payouts/sum"),
		"sumRefunds":     read(allStaff, staff+"/refunds/sum"),
		"sumApprovals":   read(allStaff, staff+"/approvals/sum"),
		"getOverview":    read(allStaff, staff+"/overview"),
		"getActivity":    read(allStaff, staff+"/activity"),
		"getHealth":      read(allStaff, staff+"/health"),
		"getPayout":      read(allStaff, staff+"/payouts/"+failed[0]),
		"retryPayout":    decide("/payouts/"+failed[0]+"/retry", because),
		"cancelPayout":   decide("/payouts/"+failed[1]+"/cancel", because),
		"markPayoutPaid": decide("/payouts/"+failed[2]+"/mark-paid", evidence),
		"askPayout":      decide("/payouts/"+failed[3]+"/ask", because),
		"retryPayouts": {who: "finance", path: staff + "/payouts/retry", body: `{"reason":"r","filter":{"status":"failed"}}`,
			status: http.StatusOK},
		"retryRefunds": {who: "finance", path: staff + "/refunds/retry", body: `{"reason":"r","filter":{"status":"failed"}}`,
			status: http.StatusOK},
		"retryRefund": decide("/refunds/"+refunds[0]+"/retry", because),
		"cancelRefund": {who: "finance", path: staff + "/refunds/" + refunds[0] + "/cancel", body: because,
			status: http.StatusConflict}, // its sender is owed it
		"withdrawRefundCancel": {who: "finance", path: staff + "/refunds/" + refunds[0] + "/withdraw", body: because,
			status: http.StatusConflict}, // none is open
		"markRefundPaid": decide("/refunds/"+refunds[1]+"/mark-paid", evidence),
		"approve":        decide("/approvals/"+m.waiting(colleague, failed[5])+"/approve", because),
		"reject":         decide("/approvals/"+m.waiting(colleague, failed[6])+"/reject", because),
		"withdraw":       decide("/approvals/"+m.waiting(m.finance, failed[7])+"/withdraw", because),
		"withdrawCancel": decide("/payouts/"+m.openCancel(colleague, failed[4])+"/withdraw", because),
		"listApprovals":  read(allStaff, staff+"/approvals"),
		"listRefunds":    read(allStaff, staff+"/refunds"),
		"listCharges":    read(allStaff, staff+"/charges"),
		"sumCharges":     read(allStaff, staff+"/charges/sum"),
		"getCharge":      read(allStaff, staff+"/charges/c"+m.open+"0000"),
		"askCharge":      decide("/charges/c"+m.open+"0000/ask", because),
		"getRefund":      read(allStaff, staff+"/refunds/"+refunds[0]),
		"exportPayouts":  read(allStaff, staff+"/export/payouts.csv"),
		"exportRefunds":  read(allStaff, staff+"/export/refunds.csv"),
		"exportCharges":  read(allStaff, staff+"/export/charges.csv"),
		"exportPackets":  read(allStaff, staff+"/export/packets.csv"),

		"getPayoutStatuses": read(allStaff, staff+"/payouts/statuses?ids="+failed[0]),
		"getRefundStatuses": read(allStaff, staff+"/refunds/statuses?ids="+refunds[0]),

		"listStaffPackets": read(allStaff, staff+"/packets"),
		"sumStaffPackets":  read(allStaff, staff+"/packets/sum"),
		"getStaffPacket":   read(allStaff, staff+"/packets/"+fresh),
		"listStaffGrabs":   read(allStaff, staff+"/packets/"+m.open+"/grabs"),
		"getStaffProof":    read(allStaff, staff+"/packets/"+fresh+"/proof"),
		"recallStaffPacket": {who: "ops finance", path: staff + "/packets/" + m.fixture.open(m.app, with()) + "/recall", body: because,
			status: http.StatusAccepted},

		"listProviders":   read(allStaff, staff+"/providers"),
		"holdProvider":    {who: "ops finance", path: staff + "/providers/sandbox/hold", body: because, status: http.StatusOK},
		"releaseProvider": {who: "ops finance", path: staff + "/providers/sandbox/release", body: because, status: http.StatusOK},

		"listHolds": read(allStaff, staff+"/holds"),
		"getHold":   read(allStaff, staff+"/holds/"+held),
		"placeHold": {who: "ops finance", path: staff + "/holds", body: `{"scope":"packet","name":"1c5emuasbbm9p6qmv2gr","reason":"r"}`,
			status: http.StatusOK},
		"releaseHold": {who: "ops finance", path: staff + "/holds/" + held + "/release", body: because, status: http.StatusOK},
		"honourShareConflicts": {who: "finance", path: staff + "/share-conflicts/honour", body: `{"filter":{"user_id":"u"},"reason":"r"}`,
			status: http.StatusOK},
		"voidShareConflicts": {who: "finance", path: staff + "/share-conflicts/void", body: `{"filter":{"user_id":"u"},"reason":"r"}`,
			status: http.StatusOK},
		"releaseHolds": {who: "finance", path: staff + "/holds/release", body: `{"filter":{"scope":"packet"},"reason":"r"}`,
			status: http.StatusOK},

		"listKeys":  read(allStaff, staff+"/keys"),
		"createKey": {who: "admin", path: staff + "/keys", body: `{"role":"ops","owner":"x","reason":"r"}`, status: http.StatusCreated},
		"rotateKey": {who: "admin", path: staff + "/keys/" + m.newOwner(access.RoleOps).key.ID + "/rotate",
			body: `{"grace_seconds":3600,"reason":"r"}`, status: http.StatusCreated},
		"approveKey": {who: "admin finance", path: staff + "/keys/" + m.newOwner(access.RoleFinance).key.ID + "/approve", body: because,
			status: http.StatusOK},
		"revokeKey": {who: "admin", path: staff + "/keys/" + m.newOwner(access.RoleOps).key.ID + "/revoke", body: because, status: http.StatusOK},

		"listTicketKeys": read(allStaff, staff+"/ticket-keys"),
		"addTicketKey": {who: "admin", path: staff + "/ticket-keys", body: addBody(m.app.app.ID, newSigner(m.t).pem),
			status: http.StatusCreated},
		"revokeTicketKey": {who: "admin", path: staff + "/ticket-keys/" + m.signs(m.administrator(), m.app).kid + "/revoke", body: because,
			status: http.StatusOK},

		"listAudit":   read("auditor", staff+"/audit"),
		"countAudit":  read("auditor", staff+"/audit/count"),
		"exportAudit": read("auditor", staff+"/export/audit.csv"),
		"verifyAudit": read("auditor", staff+"/audit/verify"),

		"listReconciliations": read(allStaff, staff+"/reconciliations"),
		"startReconciliation": decide("/reconciliations", `{}`),
		"getReconciliation":   read(allStaff, staff+"/reconciliations/"+run.ID),
		"listBreaks":          read(allStaff, staff+"/breaks"),
		"countBreaks":         read(allStaff, staff+"/breaks/count"),
		"sumBreaks":           read(allStaff, staff+"/breaks/sum"),
		"exportBreaks":        read(allStaff, staff+"/export/breaks.csv"),
		"exportApprovals":     read(allStaff, staff+"/export/approvals.csv"),
		"resolveBreak":        {who: "finance", path: staff + "/breaks/" + broken + "/resolve", body: because, status: http.StatusOK},

		"getBalances":             read(allStaff, staff+"/balances"),
		"getBalance":              read(apps, "/v1/balance"),
		"listAppProviders":        read(apps, "/v1/providers"),
		"listBalanceMovements":    read(apps, "/v1/balance/movements"),
		"listAppBalanceMovements": read(allStaff, staff+"/balances/movements?app="+m.app.app.ID),
		"exportBalanceMovements":  read(allStaff, staff+"/export/balance-movements.csv?app="+m.app.app.ID),
		"creditBalance":           decide("/balances/"+m.app.app.ID+"/credit", `{"amount":100,"reason":"because","evidence":"a slip"}`),
		"debitBalance": {who: "finance", path: staff + "/balances/" + m.app.app.ID + "/debit",
			body: `{"amount":100,"reason":"because","evidence":"a letter"}`, status: http.StatusConflict},
		"listCloses":  read(allStaff, staff+"/closes"),
		"getClose":    read(allStaff, staff+"/closes/"+today),
		"exportClose": read(allStaff, staff+"/export/close.csv?date="+today),

		"receiveNotification": {who: everybody, path: "/v1/provider-notifications/sandbox", body: notice, status: http.StatusNoContent,
			header: sign(m.t, "e1", notice)},
		"getLiveness":  read(everybody, "/livez"),
		"getReadiness": read(everybody, "/readyz"),
		"getMetrics":   read(everybody, "/metrics"),
		"getDocument":  read(everybody, "/openapi.json"),
		"getDocs":      read(everybody, "/docs"),
		"getDocsAsset": read(everybody, "/docs/swagger-ui.css"),
		"getErrorPage": read(everybody, "/errors/sold_out"),
	}
}
