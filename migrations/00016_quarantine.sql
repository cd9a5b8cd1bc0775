-- Hand-offs that could not be decoded: kept for people, never retried by themselves.
-- +goose Up
CREATE TABLE quarantine (
    lane       SMALLINT      NOT NULL,
    entry_id   VARBINARY(64) NOT NULL,
    content    MEDIUMBLOB    NOT NULL,
    error      VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    created_at DATETIME(3)   NOT NULL,
    PRIMARY KEY (lane, entry_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE quarantine;
