-- Sums of the ledger: at the end of every ten minutes with transfers, and of every day. The
-- ledger is append-only, so a sum never changes, and balances at a moment are the last row
-- before it and the transfers since. The row of the end of a day also has its match
-- with the statements of its providers.
-- +goose Up
CREATE TABLE IF NOT EXISTS ledger_closes (
    closed_to  DATETIME(3) NOT NULL PRIMARY KEY COMMENT 'every transfer before this moment is in totals',
    totals     MEDIUMBLOB  NOT NULL COMMENT 'JSON: count and sum by app, kind of transfer, kind of payment and provider',
    tie        MEDIUMBLOB  NULL COMMENT 'JSON: the day that ends here beside its statements',
    tied_at    DATETIME(3) NULL COMMENT 'when tie was written last',
    final_at   DATETIME(3) NULL COMMENT 'since when the row does not change any more; NULL: provisional',
    created_at DATETIME(3) NOT NULL,
    CONSTRAINT ledger_closes_tied CHECK ((tie IS NULL) = (tied_at IS NULL)),
    CONSTRAINT ledger_closes_final CHECK (final_at IS NULL OR tie IS NOT NULL)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS ledger_closes;
