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

# A server that ended less than 20 s ago is still listed by its old address. After `down; up` the
# new one would look for members there, and its task queues had no host for half a minute. There is
# one server, and it starts after this.
echo 'DELETE FROM cluster_membership;' >/tmp/forget.sql
temporal-sql-tool --db temporal setup-schema --disable-versioning --schema-file /tmp/forget.sql
