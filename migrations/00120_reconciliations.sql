-- Reconciliations (对账): one comparison of a day of a provider's statement with the ledger
-- each. A provider and day have at most one active row. A request leaves a row, and the
-- worker starts the run until the row has ended.
-- +goose Up
CREATE TABLE IF NOT EXISTS reconciliations (
    id           VARBINARY(26) NOT NULL PRIMARY KEY,
    provider     VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    day          CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in the time zone of the provider',
    status       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    active       BOOLEAN       NULL COMMENT 'TRUE while requested or running',
    provisional  BOOLEAN       NOT NULL DEFAULT FALSE COMMENT 'read before the day was over',
    requested_by VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason       VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    created_at   DATETIME(3)   NOT NULL,
    started_at   DATETIME(6)   NULL COMMENT 'what happened until then is compared',
    ended_at     DATETIME(3)   NULL,
    due_at       DATETIME(3)   NOT NULL COMMENT 'when the worker looks after it again',
    line_count   BIGINT        NOT NULL DEFAULT 0,
    matched      BIGINT        NOT NULL DEFAULT 0,
    in_flight    BIGINT        NOT NULL DEFAULT 0,
    repaired     BIGINT        NOT NULL DEFAULT 0,
    break_count  BIGINT        NOT NULL DEFAULT 0 COMMENT 'still open at its end',
    sums         BLOB          NULL COMMENT 'JSON: both sides by operation',
    error        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    UNIQUE KEY reconciliations_active (provider, day, active),
    KEY reconciliations_created (created_at, id),
    KEY reconciliations_due (active, due_at),
    CONSTRAINT reconciliations_status CHECK (status IN ('requested', 'running', 'done', 'failed')),
    CONSTRAINT reconciliations_known_active CHECK ((active IS NOT NULL) = (status IN ('requested', 'running'))),
    CONSTRAINT reconciliations_ended CHECK ((ended_at IS NULL) = (status IN ('requested', 'running')))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS reconciliations;
