package main

import (
	"context"

	"hongbao/api"
	"hongbao/internal/money"
	"hongbao/internal/pool"
)

// apiConfig holds the settings of `hongbao api`.
type apiConfig struct {
	Listen                string
	StaffListen           string
	MaxConnections        int
	ConnectionsPerAddress int
	Redis                 pool.Config // from redisConfig
	MySQLDSN              Secret
	SeedKey               Secret // 32 bytes, see key32
	SessionKey            Secret // keys of 32 bytes, see keys32
	ProviderURL           string
	ProviderAccount       string
	ProviderKey           Secret
	SandboxWebhookSecret  Secret
	ApprovalAmountFen     int64
	Limits                api.Limits
	Risk                  riskConfig
	ProviderRate          int64          // payments a second, displayed to staff; 0 = no limit
	Temporal              temporalConfig // for health and for the runs of a payment; the API starts no workflows
	TemporalUIURL         string         // "" = no links
	FailpointDir          string         // folder of armed failpoints; "" = none, see package failpoint
	TryOut                bool           // accept the public tokens of docker-compose.yml
	Tracing               tracingConfig
}

func apiCommand() command {
	short := "Serve the HTTP API on a public and a staff listener"
	return command{use: "api", short: short, as: local(cmdAPI), run: func(ctx context.Context, t *call) error {
		c := t.config
		redis, err := redisConfig(c)
		if err != nil {
			return err
		}
		return runAPI(ctx, apiConfig{
			Listen:                c.text("listen"),
			StaffListen:           c.text("staff-listen"),
			MaxConnections:        int(c.number("max-connections")),
			ConnectionsPerAddress: int(c.number("connections-per-address")),
			Redis:                 redis,
			MySQLDSN:              c.secret("mysql-dsn"),
			SeedKey:               c.secret("seed-key"),
			SessionKey:            c.secret("session-key"),
			TryOut:                c.boolean("try-out"),
			ProviderURL:           c.text("provider-url"),
			ProviderAccount:       c.text("provider-account"),
			ProviderKey:           c.secret("provider-key"),
			SandboxWebhookSecret:  c.secret("sandbox-webhook-secret"),
			ApprovalAmountFen:     c.number("approval-amount"),
			Limits: api.Limits{User: c.limit("limit-user"), Address: c.limit("limit-address"), Key: c.limit("limit-key"),
				Wins: c.limit("limit-wins")},
			Risk: riskConfig{URL: c.text("risk-url"), Key: c.secret("risk-key"), Timeout: c.duration("risk-timeout"),
				RefuseUnanswered: c.text("risk-unanswered") == riskRefuse, RefuseFrom: money.Fen(c.number("risk-refuse-from"))},
			ProviderRate:  c.number("provider-rate"),
			Temporal:      c.temporal(),
			TemporalUIURL: c.text("temporal-ui-url"),
			FailpointDir:  c.text("crash-points"),
			Tracing:       tracingConfig{Endpoint: c.text("otlp-endpoint"), Sampler: c.text("traces-sampler"), Ratio: c.text("traces-sampler-arg")},
		}, c.logger(t.notes))
	}}
}
