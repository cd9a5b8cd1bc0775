#!/bin/sh
# The MySQL image runs this once, on an empty data folder, before the server accepts
# connections from outside. It creates Temporal's user, with all rights in Temporal's two
# databases and none in ours. temporal/schema.sh creates the missing tables.
#
# The database of runs is created here, with a collation that compares bytes: the id of a
# payout's run ends with the user id, and by MySQL's default Alice and alice are equal (R8).
#
# The image runs this file when it is executable and sources it when it is not.
# The parentheses keep our shell options from the image's own script.
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
