-- One row: the end of the audit chain, locked while an entry is appended.
-- +goose Up
CREATE TABLE IF NOT EXISTS audit_head (
    id   TINYINT    NOT NULL PRIMARY KEY,
    seq  BIGINT     NOT NULL,
    hash BINARY(32) NOT NULL
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS audit_head;
