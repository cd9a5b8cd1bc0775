package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"hongbao/internal/provider/sandbox"
)

// providerConfig holds the settings of `hongbao provider`.
type providerConfig struct {
	Listen        string
	DBPath        string
	APIKey        Secret
	Account       string
	WebhookURL    string // "" = no notifications
	WebhookSecret Secret
}

func newProviderCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Serve the sandbox payment provider",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdProvider, env)
			if err != nil {
				return err
			}
			return runProvider(cmd.Context(), providerConfig{
				Listen:        c.text("listen"),
				DBPath:        c.text("db"),
				APIKey:        c.secret("provider-key"),
				Account:       c.text("provider-account"),
				WebhookURL:    c.text("webhook-url"),
				WebhookSecret: c.secret("sandbox-webhook-secret"),
			}, c.logger(cmd.ErrOrStderr()))
		},
	}
	addSettings(cmd, cmdProvider)
	return cmd
}

// runProvider serves until ctx ends.
func runProvider(ctx context.Context, cfg providerConfig, logger *slog.Logger) error {
	server, err := sandbox.Open(sandbox.Config{
		Listen:        cfg.Listen,
		DBPath:        cfg.DBPath,
		APIKey:        cfg.APIKey.Reveal(),
		Account:       cfg.Account,
		WebhookURL:    cfg.WebhookURL,
		WebhookSecret: cfg.WebhookSecret.Reveal(),
		Logger:        logger,
	})
	if err != nil {
		return err
	}
	return errors.Join(server.Serve(ctx), server.Close())
}
