package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// retryable reports a deadlock (1213), a lock wait timeout (1205) or MariaDB's "record has changed
// since last read" (1020): the transaction was rolled back.
func retryable(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == 1213 || my.Number == 1205 || my.Number == 1020)
}

// Classify maps driver errors to the errors of package packet. A refusal by the server
// (*mysql.MySQLError) is returned unchanged, apart from those below. Any other foreign error means
// that MySQL could not be reached.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	for _, own := range []error{packet.ErrNotFound, packet.ErrUnavailable, packet.ErrConflict, packet.ErrMoved, packet.ErrBooksClosed,
		payout.ErrMySQLRestored,
		gorm.ErrDuplicatedKey} {
		if errors.Is(err, own) {
			return err
		}
	}
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return fmt.Errorf("%w: %w", packet.ErrNotFound, err)
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		// Too many connections (two ways), shutdown, read only (two ways), locks, connection or query
		// killed, statement over a time limit (MariaDB, MySQL), password changed (two ways) or expired
		// (two ways), account locked (two ways): callers retry until an operator has corrected it.
		case 1040, 1203, 1053, 1290, 1836, 1205, 1213, 1927, 1317, 1969, 3024, 1045, 1698, 1820, 1862, 3118, 4151:
			return fmt.Errorf("%w: %w", packet.ErrUnavailable, err)
		}
		return err
	}
	var net interface{ Timeout() bool }
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, sql.ErrTxDone),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &net):
		return fmt.Errorf("%w: %w", packet.ErrUnavailable, err)
	}
	return err
}

// Duplicate reports a violated unique key (1062).
func Duplicate(err error) bool {
	var my *mysql.MySQLError
	return errors.Is(err, gorm.ErrDuplicatedKey) || errors.As(err, &my) && my.Number == 1062
}
