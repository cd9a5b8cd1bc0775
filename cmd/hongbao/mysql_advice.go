package main

import (
	"errors"

	"github.com/go-sql-driver/mysql"
)

// mysqlAdvice returns the next step for an access error of MySQL, or "" for other errors.
func mysqlAdvice(err error) string {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return ""
	}
	switch refused.Number {
	case 1045, 1698: // access denied
		return "Correct user and password in HONGBAO_MYSQL_DSN, or change the user's as MySQL's administrator: ALTER USER. Of " +
			"docker-compose.yml the password in .env counts when the volume \"mysql\" is created: restore that one, or change it in MySQL too."
	case 1820, 1862, 3118, 4151: // the password has expired, the account is locked
		return "As MySQL's administrator unlock the user of HONGBAO_MYSQL_DSN: ALTER USER ... PASSWORD EXPIRE NEVER, ACCOUNT UNLOCK."
	case 1044, 1142, 1143, 1227, 1370: // a right is missing
		return "Give the user of HONGBAO_MYSQL_DSN the rights that docs/scaling.md lists."
	case 1049: // unknown database
		return "Correct the database in HONGBAO_MYSQL_DSN, or create it (docs/scaling.md), then: hongbao migrate up."
	case 1419: // a trigger by a user without SUPER, while the server writes a binary log
		return "MySQL writes a binary log and refuses triggers of ordinary users. As its administrator:" +
			"\n  SET GLOBAL log_bin_trust_function_creators = 1" +
			"\nand set the same in its configuration, for later versions. Then run this command again: it continues where it stopped."
	}
	return ""
}
