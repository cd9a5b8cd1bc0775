-- Rebuilds of the pool (rule R9): each time that a lane was made again from the books,
-- because Redis lacked something. found is how far Redis had come when it began; what
-- was seen beyond it is in the books, or lost.
-- +goose Up
CREATE TABLE pool_rebuilds (
    id          BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    lane        INT         NOT NULL,
    from_epoch  BIGINT      NOT NULL COMMENT 'the one that was lost',
    epoch       BIGINT      NOT NULL COMMENT 'the one that begins; rises when another worker goes on',
    reason      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    holder      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'who made it, the last one',
    seen        BIGINT      NOT NULL,
    seen_grabs  BIGINT      NOT NULL,
    found       BIGINT      NOT NULL,
    found_grabs BIGINT      NOT NULL,
    recorded    BIGINT      NULL COMMENT 'grabs that are in the books and were not in Redis; set at the end',
    lost        BIGINT      NULL COMMENT 'acknowledged grabs that are nowhere, at most; set at the end',
    packets     INT         NULL COMMENT 'pools that were made; set at the end',
    unknown     INT         NULL COMMENT 'packets removed from Redis that the books never knew; set at the end',
    started_at  DATETIME(3) NOT NULL,
    ended_at    DATETIME(3) NULL,
    UNIQUE KEY pool_rebuilds_epoch (lane, epoch),
    CONSTRAINT pool_rebuilds_epochs CHECK (epoch > from_epoch),
    CONSTRAINT pool_rebuilds_ended CHECK ((ended_at IS NULL) = (lost IS NULL) AND (ended_at IS NULL) = (recorded IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE pool_rebuilds;
