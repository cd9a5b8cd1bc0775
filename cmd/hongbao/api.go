package main

import (
	"github.com/spf13/cobra"

	"hongbao/api"
	"hongbao/internal/money"
	"hongbao/internal/pool"
)

// apiConfig is what `hongbao api` is told.
type apiConfig struct {
	Listen                string
	StaffListen           string
	MaxConnections        int
	ConnectionsPerAddress int
	Redis                 pool.Config // as redisConfig makes it
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
	ProviderRate          int64          // shown to staff; 0 = no limit
	Temporal              temporalConfig // asked how it is, and nothing else
	TemporalUIURL         string         // "" = no links
	CrashPoints           string         // "" = none, see package crash
	TryOut                bool           // public tokens open what their keys do
	Tracing               tracingConfig
}

func newAPICommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "api",
		Short: "Serve the HTTP API: public and staff listener",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdAPI, env)
			if err != nil {
				return err
			}
			redis, err := redisConfig(c)
			if err != nil {
				return err
			}
			return runAPI(cmd.Context(), apiConfig{
				Listen:                c.text("listen"),
				StaffListen:           c.text("staff-listen"),
				MaxConnections:        int(c.number("max-connections")),
				ConnectionsPerAddress: int(c.number("connections-per-address")),
				Redis:                 redis,
				MySQLDSN:              c.secret("mysql-dsn"),
				SeedKey:               c.secret("seed-key"),
				SessionKey:            c.secret("session-key"),
				TryOut:                c.yes("try-out"),
				ProviderURL:           c.text("provider-url"),
				ProviderAccount:       c.text("provider-account"),
				ProviderKey:           c.secret("provider-key"),
				SandboxWebhookSecret:  c.secret("sandbox-webhook-secret"),
				ApprovalAmountFen:     c.number("approval-amount"),
				Limits: api.Limits{User: c.limit("limit-user"), Address: c.limit("limit-address"), Key: c.limit("limit-key"),
					Wins: c.limit("limit-wins")},
				Risk: riskConfig{URL: c.text("risk-url"), Key: c.secret("risk-key"), Timeout: c.duration("risk-timeout"),
					SilenceRefuses: c.text("risk-unanswered") == riskRefuse, RefuseFrom: money.Fen(c.number("risk-refuse-from"))},
				ProviderRate:  c.number("provider-rate"),
				Temporal:      c.temporal(),
				TemporalUIURL: c.text("temporal-ui-url"),
				CrashPoints:   c.text("crash-points"),
				Tracing:       tracingConfig{Endpoint: c.text("otlp-endpoint"), Sampler: c.text("traces-sampler"), Ratio: c.text("traces-sampler-arg")},
			}, c.logger(cmd.ErrOrStderr()))
		},
	}
	addSettings(cmd, cmdAPI)
	return cmd
}
