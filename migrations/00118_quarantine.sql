-- Quarantine: hand-offs that cannot be decoded. They are kept for staff and never retried.
-- +goose Up
CREATE TABLE IF NOT EXISTS quarantine (
    lane       SMALLINT      NOT NULL,
    entry_id   VARBINARY(64) NOT NULL,
    content    MEDIUMBLOB    NOT NULL,
    error      VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    created_at DATETIME(3)   NOT NULL,
    PRIMARY KEY (lane, entry_id),
    KEY quarantine_created (created_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS quarantine;
