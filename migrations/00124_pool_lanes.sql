-- Lanes of the pool (rule R9): the epoch that Redis must hold, and the highest position
-- that was seen. A Redis with another epoch, or less, has lost something; then the lane is
-- shut until it is rebuilt.
-- +goose Up
CREATE TABLE IF NOT EXISTS pool_lanes (
    lane        INT         NOT NULL PRIMARY KEY,
    epoch       BIGINT      NOT NULL,
    state       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    seen        BIGINT      NOT NULL DEFAULT 0 COMMENT 'highest acknowledged seq of this epoch',
    seen_grabs  BIGINT      NOT NULL DEFAULT 0 COMMENT 'acknowledged grabs of this epoch',
    reason      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'why it was shut; NULL: open',
    shut_at     DATETIME(3) NULL COMMENT 'NULL: open',
    lost        BIGINT      NOT NULL DEFAULT 0 COMMENT 'grabs that may be lost, of the last rebuild',
    rebuilt_at  DATETIME(3) NULL COMMENT 'end of the last rebuild',
    holder      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the worker that rebuilds',
    lease_until DATETIME(3) NULL COMMENT 'then another worker may',
    updated_at  DATETIME(3) NOT NULL,
    CONSTRAINT pool_lanes_state CHECK (state IN ('open', 'shut', 'rebuilding')),
    CONSTRAINT pool_lanes_shut CHECK ((state = 'open') = (reason IS NULL) AND (state = 'open') = (shut_at IS NULL)),
    CONSTRAINT pool_lanes_holder CHECK ((state = 'rebuilding') = (holder IS NOT NULL) AND (holder IS NULL) = (lease_until IS NULL)),
    CONSTRAINT pool_lanes_numbers CHECK (lane >= 0 AND epoch >= 1 AND seen >= 0 AND seen_grabs >= 0 AND seen_grabs <= seen AND lost >= 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS pool_lanes;
