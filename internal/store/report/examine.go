package report

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/store/mysql"
)

// Examination is what a read-only inspection of MySQL returned.
type Examination struct {
	Version   string // as the server reports it; MariaDB contains "MariaDB"
	Isolation string // of the store's connections: must be READ-COMMITTED
	// FlushAtCommit and SyncBinlog must be 1, or a crash of the machine loses acknowledged
	// transactions. SyncBinlog matters while LogBin is on.
	FlushAtCommit, SyncBinlog string
	LogBin                    bool
	// Ahead is how far the server's clock is ahead of this machine's. Half of the round trip is
	// uncertain.
	Ahead time.Duration
}

// Examine inspects the server and one connection of the store. Errors: ErrUnavailable.
func (s *Source) Examine(ctx context.Context) (Examination, error) {
	conn, err := s.db.SQL.Conn(ctx)
	if err != nil {
		return Examination{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = conn.Close() }()
	var seen Examination
	var at time.Time
	asked := time.Now()
	// raw: both statements on one connection
	if err := conn.QueryRowContext(ctx, "SELECT VERSION(), UTC_TIMESTAMP(6)").Scan(&seen.Version, &at); err != nil {
		return seen, mysql.Classify(err)
	}
	seen.Ahead = at.Sub(asked.Add(time.Since(asked) / 2))
	// MariaDB before 11.1 calls it tx_isolation.
	// raw: no table
	rows, err := conn.QueryContext(ctx, `SHOW VARIABLES WHERE Variable_name IN
		('transaction_isolation', 'tx_isolation', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin')`)
	if err != nil {
		return seen, mysql.Classify(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return seen, mysql.Classify(err)
		}
		switch name {
		case "transaction_isolation", "tx_isolation":
			seen.Isolation = value
		case "innodb_flush_log_at_trx_commit":
			seen.FlushAtCommit = value
		case "sync_binlog":
			seen.SyncBinlog = value
		case "log_bin":
			seen.LogBin = value == "ON"
		}
	}
	return seen, mysql.Classify(rows.Err())
}

// NewestSeed returns the newest packet of any app with its sealed seed; "" without packets. Errors:
// ErrUnavailable.
func (s *Source) NewestSeed(ctx context.Context) (packetID string, sealed []byte, err error) {
	var row struct {
		ID         string
		SealedSeed []byte
	}
	err = s.read(ctx).Model(&mysql.PacketRow{}).Select("id, sealed_seed").Order("created_at DESC, id DESC").Limit(1).Scan(&row).Error
	return row.ID, row.SealedSeed, mysql.Classify(err)
}
