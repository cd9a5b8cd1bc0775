-- Providers that staff has held. A provider without a row was never held. The row is read
-- in the transaction of every send, so it is the switch.
-- +goose Up
CREATE TABLE IF NOT EXISTS providers (
    name        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    held_by     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    held_role   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL,
    reason      VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    held_at     DATETIME(3) NULL COMMENT 'NULL: payments go out',
    released_at DATETIME(3) NULL COMMENT 'end of the last hold',
    CONSTRAINT providers_held CHECK ((held_at IS NULL) = (held_by IS NULL) AND (held_at IS NULL) = (held_role IS NULL)
        AND (held_at IS NULL) = (reason IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS providers;
