#!/bin/sh
# Run by the MySQL image once, on an empty data folder, before the server can be
# reached from outside: Temporal's user, who may do everything in Temporal's two
# databases and nothing in ours. temporal/schema.sh creates what is missing of them.
#
# The database of runs is created here, because it has to tell ids apart byte by byte:
# the id of a payout's run ends with what a user calls himself, and by MySQL's default
# those of Alice and alice are one (rule R8).
#
# The image runs this file when it is executable and sources it when it is not:
# the parentheses keep our shell options from the image's own script.
(
	set -eu
	password=$(printf %s "$TEMPORAL_PASSWORD" | sed "s/[\\\\']/\\\\&/g")
	MYSQL_PWD=$MYSQL_ROOT_PASSWORD mysql --user=root <<-SQL
		CREATE USER IF NOT EXISTS 'temporal'@'%' IDENTIFIED BY '$password';
		CREATE DATABASE IF NOT EXISTS temporal CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin;
		GRANT ALL PRIVILEGES ON temporal.* TO 'temporal'@'%';
		GRANT ALL PRIVILEGES ON temporal_visibility.* TO 'temporal'@'%';
	SQL
)
