-- Sums of the ledger at moments: every ten minutes in which something was posted, and
-- at the end of every day. The ledger is append-only, so they never change, and the
-- balances at any moment are those of the last row before it and the postings since.
-- The row of the end of a day has, too, how the day ties to the provider's statement.
-- +goose Up
CREATE TABLE ledger_closes (
    closed_to  DATETIME(3) NOT NULL PRIMARY KEY COMMENT 'every posting before this moment is in totals',
    totals     MEDIUMBLOB  NOT NULL COMMENT 'JSON: count and sum by app, kind of posting and kind of payment',
    tie        MEDIUMBLOB  NULL COMMENT 'JSON: the day that ends here beside the statement',
    tied_at    DATETIME(3) NULL COMMENT 'when tie was written last',
    final_at   DATETIME(3) NULL COMMENT 'since when the row does not change any more; NULL: provisional',
    created_at DATETIME(3) NOT NULL,
    CONSTRAINT ledger_closes_tied CHECK ((tie IS NULL) = (tied_at IS NULL)),
    CONSTRAINT ledger_closes_final CHECK (final_at IS NULL OR tie IS NOT NULL)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE ledger_closes;
