package main

import (
	"context"
	"time"

	"hongbao/internal/pool"
	"hongbao/internal/staff"
)

// workerConfig holds the settings of `hongbao worker`.
type workerConfig struct {
	Listen          string      // "" = no health listener
	Redis           pool.Config // as redisConfig makes it
	MySQLDSN        Secret
	SeedKey         Secret // 32 bytes, see key32
	Temporal        temporalConfig
	ConsoleURL      string // "" = no links
	ProviderURL     string
	ProviderAccount string
	ProviderKey     Secret
	ProviderRate    int64  // charges, payouts and refunds a second of all workers; 0 = no limit
	ReconcileAt     string // hours and minutes, see clock
	Retain          map[staff.RetainedTable]time.Duration
	PoolRebuild     string // rebuildAuto or rebuildManual
	FailpointDir    string // "" = none, see package crash
	Tracing         tracingConfig
}

func workerCommand() command {
	short := "Run the workflows: charge, pay, refund, and hand grabs over to them"
	return command{use: "worker", short: short, as: local(cmdWorker), run: func(ctx context.Context, t *call) error {
		c := t.config
		redis, err := redisConfig(c)
		if err != nil {
			return err
		}
		return runWorker(ctx, workerConfig{
			Listen:          c.text("listen"),
			Redis:           redis,
			MySQLDSN:        c.secret("mysql-dsn"),
			SeedKey:         c.secret("seed-key"),
			Temporal:        c.temporal(),
			ConsoleURL:      c.text("console-url"),
			ProviderURL:     c.text("provider-url"),
			ProviderAccount: c.text("provider-account"),
			ProviderKey:     c.secret("provider-key"),
			ProviderRate:    c.number("provider-rate"),
			ReconcileAt:     c.text("reconcile-at"),
			Retain:          c.retain(),
			PoolRebuild:     c.text("pool-rebuild"),
			FailpointDir:    c.text("crash-points"),
			Tracing:         tracingConfig{Endpoint: c.text("otlp-endpoint"), Sampler: samplerFromCaller},
		}, c.logger(t.notes))
	}}
}

// retain is for how long rows of tables are kept; tables that keep theirs for ever left out.
func (c config) retain() map[staff.RetainedTable]time.Duration {
	out := map[staff.RetainedTable]time.Duration{}
	for _, r := range staff.Retentions {
		if days := c.number(retainFlag(r.Table)); days > 0 {
			out[r.Table] = time.Duration(days) * 24 * time.Hour
		}
	}
	return out
}
