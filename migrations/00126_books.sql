-- Heartbeat (rule R13): one row with a number that rises every ten seconds; Redis keeps a copy.
-- A number below the copy means that this database was restored from a backup: state
-- restored, until recovery has brought it up to date.
-- +goose Up
CREATE TABLE IF NOT EXISTS books (
    id               TINYINT     NOT NULL PRIMARY KEY,
    number           BIGINT      NOT NULL,
    state            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    beat_at          DATETIME(6) NOT NULL COMMENT 'when number last rose: what happened before is in this database',
    known            BIGINT      NOT NULL DEFAULT 0 COMMENT 'highest number in Redis when the restore was found',
    restored_at      DATETIME(6) NULL COMMENT 'when that was',
    recovered_at     DATETIME(6) NULL COMMENT 'when the last recovery ended',
    CONSTRAINT books_one CHECK (id = 1),
    CONSTRAINT books_state CHECK (state IN ('normal', 'restored')),
    CONSTRAINT books_restored CHECK (state = 'normal' OR restored_at IS NOT NULL)
) ENGINE = InnoDB;

INSERT IGNORE INTO books (id, number, state, beat_at) VALUES (1, 0, 'normal', '2000-01-01 00:00:00');

-- +goose Down
DROP TABLE IF EXISTS books;
