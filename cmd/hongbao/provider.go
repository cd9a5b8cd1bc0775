package main

import (
	"context"
	"errors"
	"log/slog"

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

func providerCommand() command {
	short := "Serve the sandbox payment provider"
	return command{use: "provider", short: short, as: local(cmdProvider), run: func(ctx context.Context, t *call) error {
		c := t.config
		return runProvider(ctx, providerConfig{
			Listen: c.text("listen"), DBPath: c.text("db"), APIKey: c.secret("provider-key"), Account: c.text("provider-account"),
			WebhookURL: c.text("webhook-url"), WebhookSecret: c.secret("sandbox-webhook-secret"),
		}, c.logger(t.notes))
	}}
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
