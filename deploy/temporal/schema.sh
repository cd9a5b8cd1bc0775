#!/bin/sh
# One-shot in Temporal's admin-tools image: creates Temporal's two databases if they are
# missing and updates their schemas to the server of the same version. It keeps what
# exists, so every start may run it. SQL_PLUGIN, SQL_HOST,
# SQL_PORT, SQL_USER and SQL_PASSWORD are temporal-sql-tool's own variables.
set -eu

for pair in temporal:temporal temporal_visibility:visibility; do
	database=${pair%%:*}
	schema=/etc/temporal/schema/mysql/v8/${pair##*:}/versioned
	temporal-sql-tool --db "$database" create-database
	temporal-sql-tool --db "$database" setup-schema -v 0.0
	temporal-sql-tool --db "$database" update-schema -d "$schema"
done
