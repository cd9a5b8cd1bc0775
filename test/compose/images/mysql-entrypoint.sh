#!/bin/bash
# What the official image does with an empty data folder: root's password, a database with
# its user, and the scripts of /docker-entrypoint-initdb.d, before the server is reachable.
set -euo pipefail
printf '[client]\nsocket=/run/mysqld/mysqld.sock\n[mysqld]\nsocket=/run/mysqld/mysqld.sock\nbind-address=0.0.0.0\nsecure-file-priv=NULL\n' >/etc/my.cnf
if [ ! -d /var/lib/mysql/mysql ]; then
	chown mysql /var/lib/mysql
	mysqld --initialize-insecure --user=mysql
	mysqld --user=mysql --skip-networking "$@" &
	until mysqladmin --silent ping; do kill -0 $! && sleep 0.2; done
	mysql --user=root <<-SQL
		CREATE USER 'root'@'%' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
		GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
		CREATE DATABASE $MYSQL_DATABASE;
		CREATE USER '$MYSQL_USER'@'%' IDENTIFIED BY '$MYSQL_PASSWORD';
		GRANT ALL ON $MYSQL_DATABASE.* TO '$MYSQL_USER'@'%';
		ALTER USER 'root'@'localhost' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
	SQL
	for script in /docker-entrypoint-initdb.d/*.sh; do
		if [ -x "$script" ]; then "$script"; else . "$script"; fi
	done
	MYSQL_PWD=$MYSQL_ROOT_PASSWORD mysqladmin --user=root shutdown
	wait
fi
exec mysqld --user=mysql "$@"
