-- Lines of providers' statements as they were read last: one movement of money each.
-- +goose Up
CREATE TABLE IF NOT EXISTS statement_lines (
    id                BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    provider          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    ref               VARBINARY(64) NOT NULL COMMENT 'the name the provider gives the line',
    day               CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    op                VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_no          VARBINARY(64) NOT NULL,
    fee_of            VARBINARY(64) NULL COMMENT 'of a fee: the order it belongs to, if the provider names it',
    account           VARBINARY(255) NOT NULL,
    amount            BIGINT        NOT NULL,
    moved_at          DATETIME(6)   NOT NULL,
    created_at        DATETIME(3)   NOT NULL COMMENT 'when it was read first',
    reconciliation_id VARBINARY(26) NOT NULL COMMENT 'the run that read it last',
    verdict           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'of the comparison of its day',
    booked            BIGINT        NOT NULL DEFAULT 0 COMMENT 'amount that the ledger has for it',
    UNIQUE KEY statement_lines_ref (provider, ref),
    KEY statement_lines_order (provider, order_no, id),
    KEY statement_lines_fee (provider, fee_of),
    KEY statement_lines_day (provider, day, id),
    CONSTRAINT statement_lines_amount CHECK (amount > 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS statement_lines;
