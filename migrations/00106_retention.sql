-- Retention: how the removal of old rows goes on, one row a table. due_at makes one worker
-- at a time remove from it.
-- +goose Up
CREATE TABLE IF NOT EXISTS retention (
    name    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY COMMENT 'of the table',
    removed BIGINT      NOT NULL DEFAULT 0 COMMENT 'rows since the start of the installation',
    due_at  DATETIME(3) NOT NULL COMMENT 'time of the next turn, of any worker',
    CONSTRAINT retention_removed CHECK (removed >= 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS retention;
