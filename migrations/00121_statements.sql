-- Statements: days of a provider that were read to their end.
-- +goose Up
CREATE TABLE IF NOT EXISTS statements (
    provider          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    day               CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    read_at           DATETIME(6)   NOT NULL,
    reconciliation_id VARBINARY(26) NOT NULL COMMENT 'the run that read it last',
    PRIMARY KEY (provider, day)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS statements;
