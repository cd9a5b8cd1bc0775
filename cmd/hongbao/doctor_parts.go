package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
)

// redis judges Redis: grabs are promises that it has to keep.
func (d *doctor) checkRedis(ctx context.Context) {
	if !d.configured("redis", "redis-addr", "redis-mode", "lanes", "redis-replicas", "allow-volatile-redis",
		"redis-username", "redis-password", "redis-sentinel-password", "redis-tls", "redis-ca-file") {
		return
	}
	cfg, err := redisConfig(d.config)
	if err == nil {
		err = d.config.redisContradictions()
	}
	if err != nil {
		d.add("redis", verdictSkipped, "Correct the settings.", "Not looked at: %v", err)
		return
	}
	cfg.Timeout = d.timeout
	lanes := cfg.Lanes
	seen, err := pool.Examine(ctx, cfg)
	told := false
	for _, s := range seen.Servers {
		d.checkRedisServer(s)
		told = told || s.Err != nil
	}
	if err != nil {
		if !told {
			d.redisUnreachable(cfg.Addr, err)
		}
		return
	}
	if seen.Format != nil {
		d.add("redis data format", verdictWrong, otherFormatAdvice, "%v", seen.Format)
	}
	switch seen.Lanes {
	case 0:
		d.add("redis lanes", verdictWarning, "Right on a new installation. On one with packets, Redis has lost its data: do not take grabs "+
			"before it is restored.", "This Redis was never used.")
	case lanes:
		d.ok("redis lanes", "%d, as Redis was always used with.", lanes)
	default:
		d.add("redis lanes", verdictWrong, "Set HONGBAO_LANES to the number that is in use; it is fixed for an installation.",
			"HONGBAO_LANES is %d, and Redis was used with %d: no process starts.", lanes, seen.Lanes)
	}
	if seen.BacklogErr != nil {
		d.add("hand-offs", verdictWrong, "See to Redis.", "The hand-offs that wait could not be counted: %v", seen.BacklogErr)
		return
	}
	d.checkBacklog("hand-offs", seen.Handoffs, ageLimit{wrong: observe.HandoffMaxAge, what: "grabs that wait to be paid",
		do: "No relay works, or Temporal is away: see that a worker runs."})
}

// otherFormatAdvice is what to do about a store that a build with another data format has written.
const otherFormatAdvice = "docs/runbook.md#data-format. Until then no process starts."

// startRedisAdvice is what to do when Redis does not answer.
const startRedisAdvice = "Start it, or correct HONGBAO_REDIS_ADDR and HONGBAO_REDIS_MODE. Until then no packet is created and no share " +
	"grabbed."

// redisUnreachable says that a server cannot be talked to, and why as far as it is known.
func (d *doctor) redisUnreachable(addr string, err error) {
	if do := redisAdvice(err); do != "" {
		d.add("redis", verdictWrong, do+" Until then no process starts.", "Redis at %s is there, but not for us: %v", addr, err)
		return
	}
	d.add("redis", verdictWrong, startRedisAdvice, "Redis at %s does not answer: %v", addr, err)
}

func (d *doctor) checkRedisServer(s pool.ServerReport) {
	if s.Err != nil {
		d.redisUnreachable(s.Addr, s.Err)
		return
	}
	if s.Rights != nil {
		d.add("redis rights", verdictWrong, redisAdvice(s.Rights)+" Until then no process starts.", "Our user at %s lacks some: %v", s.Addr,
			s.Rights)
	} else {
		d.ok("redis rights", "Our user at %s has all that are needed.", s.Addr)
	}
	if olderThan(s.Version, 7, 0) {
		d.add("redis", verdictWrong, "Use Redis 7.0 or newer.", "Redis at %s has version %s.", s.Addr, s.Version)
	} else {
		d.ok("redis", "%s at %s answers.", s.Version, s.Addr)
	}
	switch {
	case s.Rewrite != nil:
		d.add("redis durability", verdictWarning, "Wait until the rewrite ends (INFO persistence). If it fails, aof_last_bgrewrite_status is "+
			"err and the server's log says why: room on its disk, memory for fork. A process that starts meanwhile takes no grabs, nor does "+
			"one after a promotion or CONFIG SET appendonly.", "Redis at %s: %v", s.Addr, s.Rewrite)
	case s.Volatile == nil:
		d.ok("redis durability", "What Redis at %s acknowledges is on its disk.", s.Addr)
	case d.config.boolean("allow-volatile-redis"):
		d.add("redis durability", verdictWarning, "For demonstrations only: unset HONGBAO_ALLOW_VOLATILE_REDIS before money is real.",
			"%v; allowed by configuration", s.Volatile)
	default:
		d.add("redis durability", verdictWrong, "Set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and maxmemory-policy "+
			"noeviction in redis.conf, also of what takes over. Until then no grabs are taken.", "%v", s.Volatile)
	}
	if s.Replicas != nil {
		d.add("redis replicas", verdictWrong, "Start the replicas, or lower HONGBAO_REDIS_REPLICAS. Until then creations and grabs are "+
			"answered 503.", "%v", s.Replicas)
	} else if n := d.config.number("redis-replicas"); n > 0 {
		d.ok("redis replicas", "%d keep up with %s.", n, s.Addr)
	}
	d.checkClock("clock of redis", "Redis at "+s.Addr, s.ClockAhead)
}

// provider judges the payment provider, by a question that moves nothing.
func (d *doctor) checkProvider(ctx context.Context) {
	if !d.configured("provider", "provider-url", "provider-account", "provider-key") {
		return
	}
	address := d.config.text("provider-url")
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: address, APIKey: d.config.secret("provider-key").Reveal(),
		Account: d.config.text("provider-account"), Timeout: d.timeout})
	if err != nil {
		d.add("provider", verdictWrong, "Correct HONGBAO_PROVIDER_URL and HONGBAO_PROVIDER_KEY.", "%v", err)
		return
	}
	defer pay.Close()
	if _, err := pay.Totals(ctx, strings.Repeat("0", packet.IDLen)); err != nil {
		d.add("provider", verdictWrong, "Status 401: correct HONGBAO_PROVIDER_KEY or HONGBAO_PROVIDER_ACCOUNT. No answer: see whether it "+
			"is up and "+
			"HONGBAO_PROVIDER_URL right. Payments wait and go out by themselves when it is back.",
			"The provider at %s does not answer as it should: %v", address, err)
		return
	}
	d.ok("provider", "%s at %s answers.", pay.Name(), address)
}

// api judges the API by what it says of itself on its staff listener.
func (d *doctor) checkAPI(ctx context.Context) {
	if !d.configured("api", "staff-url") {
		return
	}
	address := strings.TrimRight(d.config.text("staff-url"), "/") + "/readyz"
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var ready struct {
		Status       string `json:"status"`
		Reason       string `json:"reason"`
		Dependencies map[string]struct {
			Status string `json:"status"`
		} `json:"dependencies"`
	}
	err := getJSON(ctx, address, &ready)
	if _, is := ready.Dependencies["redis"]; err == nil && !is {
		err = errors.New("what answers is not the API")
	}
	if err != nil {
		d.add("api", verdictWrong, "Start `hongbao api` and read its log, or correct HONGBAO_STAFF_URL.", "The API does not answer at %s: %v",
			address, err)
		return
	}
	var away []string
	for _, name := range slices.Sorted(maps.Keys(ready.Dependencies)) {
		if ready.Dependencies[name].Status != "ok" {
			away = append(away, name)
		}
	}
	switch ready.Status {
	case "ok":
		d.ok("api", "Ready at %s.", d.config.text("staff-url"))
	case "degraded":
		d.add("api", verdictWarning, "See to what is away; grabs go on meanwhile.", "The API is degraded: %s does not answer it.",
			strings.Join(away, ", "))
	default:
		d.add("api", verdictWrong, "See to what it names: it takes no grabs.", "The API is %s: %s.",
			cmp.Or(ready.Status, "in a state it does not tell"), cmp.Or(ready.Reason, strings.Join(away, ", ")))
	}
}

// getJSON asks for a document, whatever the status it comes with.
func getJSON(ctx context.Context, address string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	if json.Unmarshal(text, to) != nil {
		return errors.New("what answers is not the API: " + res.Status)
	}
	return nil
}

// held judges whether a person has stopped the provider.
func (d *doctor) checkHold(state payout.ProviderState) {
	if h := state.Hold; h != nil {
		d.add("provider hold", verdictWarning, "hongbao providers release "+state.Name+" --reason ..., when the cause is gone.",
			"Nothing is sent to %s since %s: %s (%s).", state.Name, formatTime(h.Since), h.Reason, h.By)
		return
	}
	d.ok("provider hold", "Nobody holds %s.", state.Name)
}
