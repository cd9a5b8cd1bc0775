-- Repairs of the watch, by kind: the count since the start of the installation, and the
-- latest one.
-- +goose Up
CREATE TABLE IF NOT EXISTS repairs (
    kind    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    made    BIGINT         NOT NULL,
    subject VARBINARY(128) NOT NULL COMMENT 'of the latest',
    last_at DATETIME(3)    NOT NULL
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS repairs;
