package main

import (
	"context"
	"errors"

	"hongbao/internal/provider/sandbox"
)

func providerCommand() command {
	return command{use: "provider", short: "Serve the sandbox payment provider; test a provider", as: local(cmdProvider), run: runProvider,
		sub: []command{providerCheckCommand()}}
}

// runProvider serves until ctx ends.
func runProvider(ctx context.Context, t *call) error {
	c := t.config
	server, err := sandbox.Open(sandbox.Config{
		Listen:        c.text("listen"),
		DBPath:        c.text("db"),
		APIKey:        c.secret("provider-key").Reveal(),
		Account:       c.text("provider-account"),
		WebhookURL:    c.text("webhook-url"), // "" = no notifications
		WebhookSecret: c.secret("sandbox-webhook-secret").Reveal(),
		Logger:        c.logger(t.notes),
	})
	if err != nil {
		return err
	}
	return errors.Join(server.Serve(ctx), server.Close())
}
