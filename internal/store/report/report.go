// Package report reads MySQL for staff: lists, counts, sums, health, the day's statement match and close. No step
// of a payment or packet decides on what it returns. It writes nothing but sums of the ledger
// and matches with statements, which can be made again.
package report

import (
	"context"

	"gorm.io/gorm"

	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// Source reads reports. It is safe for concurrent use.
type Source struct {
	db *mysql.DB

	ledger    ledgerSums
	minutes   minuteSums
	auditWalk auditWalk
}

// New returns a source of reports that reads through db.
func New(db *mysql.DB) *Source { return &Source{db: db} }

// Errors of this package. Methods name the ones they return.
var (
	ErrNotFound    = packet.ErrNotFound
	ErrUnavailable = packet.ErrUnavailable
)

// read returns a handle for statements outside a transaction.
func (s *Source) read(ctx context.Context) *gorm.DB { return s.db.Read(ctx) }
