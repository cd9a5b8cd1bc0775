package main

import (
	"cmp"
	"context"
)

func appsCommand() command {
	return command{
		use: "apps", short: "Create and list the apps that may send packets",
		sub: []command{
			{
				use:   "create <id>",
				short: "Create an app",
				long: `Create an app: a backend that sends packets. Its salt is generated once and never
changes, because every packet id derives from it. The command fails when the app
exists, and changes nothing. "hongbao keys create --role app" creates its keys.`,
				example: "  hongbao apps create mall --name 'Mall'",
				args:    oneArg, as: local(cmdAppsCreate),
				run: func(ctx context.Context, t *call) error {
					if err := argument(kindAppID, t.args[0]); err != nil {
						return err
					}
					return createApp(ctx, t.config.secret("mysql-dsn"), t.args[0], cmp.Or(t.config.text("name"), t.args[0]), t.out)
				},
			},
			{
				use: "list", short: "List the apps", as: local(cmdAppsList),
				run: func(ctx context.Context, t *call) error { return listApps(ctx, t.config.secret("mysql-dsn"), t.out) },
			},
		},
	}
}
