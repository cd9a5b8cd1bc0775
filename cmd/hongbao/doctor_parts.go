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

	"hongbao/internal/health"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/wire"
)

// checkRedis checks Redis, which holds acknowledged claims.
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
		d.add("redis", verdictSkipped, "Correct the settings.", "Not checked: %v", err)
		return
	}
	cfg.Timeout = d.timeout
	lanes := cfg.Lanes
	seen, err := pool.Examine(ctx, cfg)
	reported := false
	for _, s := range seen.Servers {
		d.checkRedisServer(s)
		reported = reported || s.Err != nil
	}
	if err != nil {
		if !reported {
			d.redisUnreachable(cfg.Addr, err)
		}
		return
	}
	if seen.Format != nil {
		d.add("redis data format", verdictWrong, otherFormatAdvice, "%v", seen.Format)
	}
	switch seen.Lanes {
	case 0:
		d.add("redis lanes", verdictWarning, "Expected on a new installation. On one with packets, Redis has lost its data: restore it before "+
			"you accept grabs.",
			"This Redis was never used.")
	case lanes:
		d.ok("redis lanes", "%d, as stored in Redis.", lanes)
	default:
		d.add("redis lanes", verdictWrong, lanesAdvice, "HONGBAO_LANES is %d, but Redis was used with %d: no process starts.", lanes, seen.Lanes)
	}
	if seen.BacklogErr != nil {
		d.add("hand-offs", verdictWrong, "Check Redis.", "The waiting hand-offs could not be counted: %v", seen.BacklogErr)
		return
	}
	d.judge(observe.HealthSnapshot{FromRedis: true, Durable: true, Handoffs: seen.Handoffs}, health.Redis)
}

// lanesAdvice is the next step when Redis was used with another number of lanes.
const lanesAdvice = "Set HONGBAO_LANES to the number in use; it is fixed per installation."

// otherFormatAdvice is the next step when a build with another data format has written to a store.
const otherFormatAdvice = "Follow docs/runbook.md#data-format. Until then no process starts."

// startRedisAdvice is the next step when Redis does not answer.
const startRedisAdvice = "Start it, or correct HONGBAO_REDIS_ADDR and HONGBAO_REDIS_MODE. Until then no packet is created and no share " +
	"grabbed."

// redisUnreachable adds the finding that a server refuses the connection or does not answer.
func (d *doctor) redisUnreachable(addr string, err error) {
	if do := redisAdvice(err); do != "" {
		d.add("redis", verdictWrong, do+" Until then no process starts.", "Redis at %s refuses the connection: %v", addr, err)
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
		d.add("redis rights", verdictWrong, redisAdvice(s.Rights)+" Until then no process starts.", "The user at %s lacks rights: %v", s.Addr,
			s.Rights)
	} else {
		d.ok("redis rights", "The user at %s has all required rights.", s.Addr)
	}
	if olderThan(s.Version, 7, 0) {
		d.add("redis", verdictWrong, "Use Redis 7.0 or newer.", "Redis at %s has version %s.", s.Addr, s.Version)
	} else {
		d.ok("redis", "%s at %s answers.", s.Version, s.Addr)
	}
	switch {
	case s.Rewrite != nil:
		d.add("redis durability", verdictWarning, "Wait until the rewrite ends (INFO persistence). If aof_last_bgrewrite_status is err, read "+
			"the "+
			"server's log: disk space, memory for fork. Until then a process that starts accepts no grabs, also after a promotion or "+
			"CONFIG SET appendonly.", "Redis at %s: %v", s.Addr, s.Rewrite)
	case s.Volatile == nil:
		d.ok("redis durability", "Acknowledged writes of Redis at %s are on disk.", s.Addr)
	case d.config.boolean("allow-volatile-redis"):
		d.add("redis durability", verdictWarning, "For demonstrations only: unset HONGBAO_ALLOW_VOLATILE_REDIS before you use real money.",
			"%v; allowed by configuration", s.Volatile)
	default:
		d.add("redis durability", verdictWrong, "Set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and maxmemory-policy "+
			"noeviction in redis.conf, also of replicas. Until then no grabs are accepted.", "%v", s.Volatile)
	}
	if s.Replicas != nil {
		d.add("redis replicas", verdictWrong, "Start the replicas, or lower HONGBAO_REDIS_REPLICAS. Until then creations and grabs are "+
			"answered 503.", "%v", s.Replicas)
	} else if n := d.config.number("redis-replicas"); n > 0 {
		d.ok("redis replicas", "%d replicas keep up with %s.", n, s.Addr)
	}
	d.checkClock("clock of redis", "Redis at "+s.Addr, s.ClockAhead)
}

// checkProvider checks the payment provider by a query that moves no money.
func (d *doctor) checkProvider(ctx context.Context) {
	pays := d.openProviders("provider")
	if pays == nil {
		return
	}
	defer pays.Close()
	for _, a := range pays.adapters {
		address := pays.entries[a.Name()].URL
		checked, is := a.(payout.Checked)
		if !is {
			d.ok("provider", "%s at %s has no harmless call; it was not called.", a.Name(), address)
			continue
		}
		if err := checked.Check(ctx); err != nil {
			d.add("provider", verdictWrong, "Status 401: correct HONGBAO_PROVIDER_KEY or HONGBAO_PROVIDER_ACCOUNT, or those of "+
				"HONGBAO_PROVIDERS_FILE. No answer: check that it runs and that HONGBAO_PROVIDER_URL is right. Payments wait until it answers.",
				"The provider %s at %s gives no usable answer: %v", a.Name(), address, err)
			continue
		}
		d.checkFunds(ctx, a, address)
	}
}

// checkFunds reads how much money a provider that answers has for us.
func (d *doctor) checkFunds(ctx context.Context, a payout.Provider, address string) {
	funded, is := a.(payout.Funded)
	if !is {
		d.ok("provider", "%s at %s answers.", a.Name(), address)
		return
	}
	funds, err := funded.Funds(ctx)
	if err != nil {
		d.add("provider", verdictWarning, "Check the permissions of the account at the provider.",
			"The provider %s at %s answers, and does not say how much money it has: %v", a.Name(), address, err)
		return
	}
	var has []string
	for _, f := range funds {
		has = append(has, f.Name+" "+formatAmount(f.Available))
	}
	d.ok("provider", "%s at %s answers. Available: %s.", a.Name(), address, strings.Join(has, ", "))
}

// openProviders opens the configured providers. Without usable settings it adds a finding and returns nil.
func (d *doctor) openProviders(check string) *providers {
	if !d.configured(check, "providers-file", "charge-provider", "payout-provider", "provider-url", "provider-account", "provider-key") {
		return nil
	}
	pays, err := d.config.openProviders(d.timeout)
	if err != nil {
		d.add(check, verdictWrong, "Correct the settings of the providers (docs/providers.md). Until then no process starts.", "%v", err)
		return nil
	}
	return pays
}

// checkAPI checks the API by /readyz of its staff listener.
func (d *doctor) checkAPI(ctx context.Context) {
	if !d.configured("api", "staff-url") {
		return
	}
	address := strings.TrimRight(d.config.text("staff-url"), "/") + "/readyz"
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var ready wire.Readiness
	err := getJSON(ctx, address, &ready)
	if _, is := ready.Dependencies["redis"]; err == nil && !is {
		err = errors.New("the server is not the API")
	}
	if err != nil {
		d.add("api", verdictWrong, "Start hongbao api and read its log, or correct HONGBAO_STAFF_URL.", "The API does not answer at %s: %v",
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
		d.add("api", verdictWarning, "Check these parts; grabs are still accepted.", "The API is degraded: no answer from %s.",
			strings.Join(away, ", "))
	default:
		d.add("api", verdictWrong, "Check these parts: the API accepts no grabs.", "The API is %s: %s.",
			cmp.Or(ready.Status, "in an unknown state"), cmp.Or(ready.Reason, strings.Join(away, ", ")))
	}
}

// getJSON fetches a JSON document, with any HTTP status.
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
