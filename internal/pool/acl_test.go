package pool

import (
	"crypto/tls"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
)

const (
	ourUser    = "hongbao"
	ourSecret  = "only-for-tests-ours"
	rootSecret = "only-for-tests-root"
)

// setUser is the ACL SETUSER command of docs/scaling.md with these rights.
func setUser(password string, rules []string) []string {
	return append([]string{"ACL", "SETUSER", ourUser, "reset", "on", ">" + password, "~" + keyPattern}, rules...)
}

func rulesOf(all []right) (rules []string) {
	for _, r := range all {
		rules = append(rules, r.rule())
	}
	return rules
}

// root is a client as the default user of a protected server.
func root(t testing.TB, server *stacktest.Server, lock stacktest.Lock) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr, Password: lock.Password, TLSConfig: tlsOf(lock)})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func tlsOf(lock stacktest.Lock) *tls.Config {
	if lock.Authority == nil {
		return nil
	}
	return &tls.Config{RootCAs: lock.Authority.Pool, MinVersion: tls.VersionTLS12}
}

// ours is the access of our user.
func ours(lock stacktest.Lock) Access {
	a := Access{Username: ourUser, Password: ourSecret}
	if lock.Authority != nil {
		a.TLS, a.Authorities = true, lock.Authority.Pool
	}
	return a
}

func do(t testing.TB, c *redis.Client, words ...string) {
	t.Helper()
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%s: %v", strings.Join(words[:3], " "), err)
	}
}

// everyRead makes the reading calls that everyScript does not make.
func everyRead(t *testing.T, p *Pool) {
	t.Helper()
	ctx := t.Context()
	pk := newPacket(t, 3)
	openPacket(t, p, pk, "a", "b", "c")
	mustGrab(t, p, pk.ID, "a")
	lane := packet.Lane(pk.ID, p.Lanes())
	h := handoffs(t, p)
	read, err := h.Read(ctx, lane, "w0", 100, time.Millisecond)
	if err != nil || read.Empty() {
		t.Fatalf("read %+v, %v", read, err)
	}
	ignore := func([]packet.Claim) error { return nil }
	var errs []error
	note := func(_ any, err error) { errs = append(errs, err) }
	note(h.ReadOwnPending(ctx, lane, "w0", "0", 10))
	note(h.Consumers(ctx, lane))
	taken, err := h.TakeOver(ctx, lane, "w0", "w1", 10)
	if note(nil, err); len(taken.HandOffs) == 0 {
		t.Error("nothing was taken over")
	}
	_, _, err = h.Depth(ctx, lane)
	note(nil, err)
	note(p.Claims(ctx, pk.ID))
	_, _, err = p.Claim(ctx, pk.ID, "a")
	note(nil, err)
	note(p.WinnersCount(ctx, pk.ID))
	note(p.ClaimedCount(ctx, pk.ID))
	note(p.Eligible(ctx, pk.ID))
	note(p.LivePage(ctx, lane, time.Time{}, 10))
	note(p.LivePageUnfenced(ctx, lane, time.Time{}, 10))
	note(p.ViewsUnfenced(ctx, []string{pk.ID}))
	note(nil, p.EachClaimUnfenced(ctx, pk.ID, ignore))
	note(userClaims(ctx, p, pk.App, "a", packet.Cursor{}, 10))
	note(nil, h.Ack(ctx, lane, read.Last))
	for range 2 {
		note(userClaims(ctx, p, pk.App, "a", packet.Cursor{}, 10))
	}
	note(p.Staged(ctx, []string{pk.App}, pk.SenderID, packet.Cursor{}, 10))
	note(p.Views(ctx, []string{pk.ID}))
	note(p.HeartbeatNumber(ctx))
	note(nil, p.SaveApps(ctx, []byte("apps")))
	note(p.LoadApps(ctx))
	note(nil, p.HealthSnapshot(ctx, &observe.HealthSnapshot{}))
	note(nil, h.RewriteAfterStart(ctx))
	note(nil, errors.Join(p.Durable(ctx), p.Ping(ctx)))
	seen, err := Examine(ctx, p.cfg)
	note(nil, err)
	if len(seen.Servers) == 0 || seen.Servers[0].Err != nil || seen.Servers[0].Rights != nil || seen.Servers[0].Volatile != nil ||
		seen.BacklogErr != nil {
		t.Errorf("examined: %+v", seen)
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestMinimalRights runs packets by TLS as a user with exactly the documented rights: they
// suffice, and each is used.
func TestMinimalRights(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	lock := stacktest.Lock{Password: rootSecret, Authority: stacktest.NewAuthority(t)}
	server := stacktest.FreshLockedRedis(t, lock)
	admin := root(t, server, lock)
	do(t, admin, setUser(ourSecret, rulesOf(rights))...)
	if err := admin.ConfigResetStat(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p := openAt(t, Config{Addr: server.Addr, Access: ours(lock)})
	everyRead(t, p)
	if err := admin.ScriptFlush(ctx).Err(); err != nil { // as after a restart: scripts are sent again
		t.Fatal(err)
	}
	everyScript(t, p) // last: it leaves a fence closed
	log, err := admin.ACLLog(ctx, 10).Result()
	if err != nil || len(log) > 0 {
		t.Errorf("refused: %+v, %v", log, err)
	}

	used := commandsOfScripts(t)
	stats, err := admin.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name := range stats["Commandstats"] {
		used["+"+strings.TrimPrefix(name, "cmdstat_")] = true
	}
	// the last three are used by this test only
	for _, common := range []string{"+hello", "+auth", "+config|resetstat", "+script|flush", "+acl|log"} {
		delete(used, common)
	}
	for _, r := range rights {
		if r.unless != nil && r.unless(p.cfg) && r.command != "bgrewriteaof" {
			continue // for another mode
		}
		if !used[r.rule()] {
			t.Errorf("%s is granted and not used", r.rule())
		}
		delete(used, r.rule())
	}
	if len(used) > 0 {
		t.Errorf("used without being documented: %v", used)
	}
}

var (
	commandOfScript = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?`)
	anyCall         = regexp.MustCompile(`redis\.p?call\(`)
)

// commandsOfScripts returns the rules for all commands in the scripts, also in branches that
// no test covers.
func commandsOfScripts(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for name, s := range scripts {
		calls := commandOfScript.FindAllStringSubmatch(sources[s], -1)
		free := len(anyCall.FindAllString(sources[s], -1)) - len(calls)
		if name == "restore" {
			free-- // one of four, in a table that another test covers
		}
		if free != 0 {
			t.Errorf("%s.lua: %d commands are not to be read", name, free)
		}
		for _, c := range calls {
			rule := "+" + strings.ToLower(c[1])
			if c[1] == "XGROUP" || c[1] == "XINFO" {
				rule += "|" + strings.ToLower(c[2])
			}
			found[rule] = true
		}
	}
	return found
}

// TestMissingRightsAreListed: Open and Examine list each missing right.
func TestMissingRightsAreListed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := stacktest.FreshRedis(t)
	admin := root(t, server, stacktest.Lock{})
	cfg := Config{Addr: server.Addr, Access: ours(stacktest.Lock{}), Logger: quiet, Timeout: patience}
	for _, r := range rights {
		if r.unless != nil && r.unless(cfg) {
			continue
		}
		others := slices.DeleteFunc(rulesOf(rights), func(rule string) bool { return rule == r.rule() })
		do(t, admin, setUser(ourSecret, others)...)
		p, err := Open(ctx, cfg)
		if err == nil {
			_ = p.Close()
		}
		wantErr(t, err, ErrRights, ErrAccess, ErrUnavailable, packet.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(r.rule(), "+")) {
			t.Errorf("without %s: %v", r.rule(), err)
		}
		seen, err := Examine(ctx, cfg)
		if len(seen.Servers) != 1 || !errors.Is(seen.Servers[0].Rights, ErrRights) ||
			!strings.Contains(seen.Servers[0].Rights.Error(), strings.TrimPrefix(r.rule(), "+")) {
			t.Errorf("without %s: %+v, %v", r.rule(), seen, err)
		}
	}
	do(t, admin, "ACL", "SETUSER", ourUser, "resetkeys", "~other:*", "+@all")
	_, err := Open(ctx, cfg)
	if lack, ok := errors.AsType[*RightsError](err); !ok || lack.Rules[0] != "~"+keyPattern {
		t.Errorf("without our keys: %v", err)
	}
}

// TestRewriteDenied: a server that refuses BGREWRITEAOF returns ErrRights, and is not
// unavailable.
func TestRewriteDenied(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	do(t, root(t, server, stacktest.Lock{}),
		setUser(ourSecret, slices.DeleteFunc(rulesOf(rights), func(rule string) bool { return rule == "+bgrewriteaof" }))...)
	h := handoffs(t, openAt(t, Config{Addr: server.Addr, Access: ours(stacktest.Lock{})}))
	if err := h.RewriteAfterStart(t.Context()); !errors.Is(err, ErrRights) || errors.Is(err, ErrUnavailable) {
		t.Errorf("refused: %v", err)
	}
}

// TestRightsDocument: the documented rights are the needed ones.
func TestRightsDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for word := range strings.FieldsSeq(string(text)) {
		if strings.HasPrefix(word, "+") || word == "~"+keyPattern {
			documented = append(documented, strings.Trim(word, "`,."))
		}
	}
	want := append(rulesOf(rights), "~"+keyPattern)
	slices.Sort(documented)
	slices.Sort(want)
	if !slices.Equal(documented, want) {
		t.Errorf("docs/scaling.md lists\n%v\nneeded\n%v", documented, want)
	}
}

// TestScriptsCheckRights: every writing script checks the rights to its commands first,
// because Redis rolls nothing back. Only grab.lua does not (TestGrabStops).
func TestScriptsCheckRights(t *testing.T) {
	for name, s := range scripts {
		writes := !strings.Contains(sources[s], "flags=no-writes")
		several := len(slices.Compact(slices.Sorted(maps.Values(commandsOf(sources[s]))))) > 1
		if asks := strings.Contains(sources[s], "redis.acl_check_cmd("); name != "acl" && asks != (writes && several && name != "grab") {
			t.Errorf("%s.lua checks rights: %v", name, asks)
		}
	}
}

// commandsOf returns the commands of a script, by position.
func commandsOf(source string) map[int]string {
	words := map[int]string{}
	for i, c := range commandOfScript.FindAllStringSubmatch(source, -1) {
		if c[1] != "XGROUP" && c[1] != "XINFO" { // rights by subcommand are not checked
			words[i] = c[1]
		}
	}
	return words
}

// TestProbesHaveEnoughWords: since 2025 Redis refuses a rights check with too few or too
// many words. COMMAND INFO confirms the number for each command.
func TestProbesHaveEnoughWords(t *testing.T) {
	t.Parallel()
	c := admin(t, stacktest.FreshRedis(t).Addr)
	fits := func(place, command string, words int) {
		t.Helper()
		infos, err := c.Do(t.Context(), "command", "info", strings.ReplaceAll(command, " ", "|")).Slice()
		must(t, err)
		info, _ := infos[0].([]any)
		if len(info) < 2 {
			t.Fatalf("%s: the server has no command %s", place, command)
		}
		if least, _ := info[1].(int64); int64(words) != least && (least > 0 || int64(words) < -least) {
			t.Errorf("%s: the probe of %s has %d words, want %d", place, command, words, least)
		}
	}
	for _, r := range rights {
		fits("at the start", r.command, len(probeCommand(r.command, "k")))
	}
	list := regexp.MustCompile(`\{'([A-Z]+)'([^}]*)\}`)
	for name, s := range scripts {
		line, _, _ := strings.Cut(sources[s][strings.Index(sources[s], "\n")+1:], "\n")
		if strings.Contains(line, "acl_check_cmd") {
			for _, words := range list.FindAllStringSubmatch(line, -1) {
				fits(name, words[1], 1+strings.Count(words[2], ","))
			}
		}
	}
}
