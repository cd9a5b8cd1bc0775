-- Rebuilds of lanes (rule R9). found is the position of Redis at the beginning; what was
-- seen beyond it is in MySQL, or lost.
-- +goose Up
CREATE TABLE IF NOT EXISTS pool_rebuilds (
    id          BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    lane        INT         NOT NULL,
    from_epoch  BIGINT      NOT NULL COMMENT 'the one that was lost',
    epoch       BIGINT      NOT NULL COMMENT 'the one that begins; rises when another worker goes on',
    reason      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    holder      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the last worker that made it',
    seen        BIGINT      NOT NULL,
    seen_grabs  BIGINT      NOT NULL,
    found       BIGINT      NOT NULL,
    found_grabs BIGINT      NOT NULL,
    recorded    BIGINT      NULL COMMENT 'grabs that MySQL has and Redis had not; set at the end',
    lost        BIGINT      NULL COMMENT 'upper bound of the acknowledged grabs that are lost; set at the end',
    packets     INT         NULL COMMENT 'pools that were made; set at the end',
    unknown     INT         NULL COMMENT 'packets removed from Redis that MySQL never had; set at the end',
    started_at  DATETIME(3) NOT NULL,
    ended_at    DATETIME(3) NULL,
    UNIQUE KEY pool_rebuilds_epoch (lane, epoch),
    CONSTRAINT pool_rebuilds_epochs CHECK (epoch > from_epoch),
    CONSTRAINT pool_rebuilds_ended CHECK ((ended_at IS NULL) = (lost IS NULL) AND (ended_at IS NULL) = (recorded IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS pool_rebuilds;
