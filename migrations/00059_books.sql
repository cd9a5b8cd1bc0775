-- Books (rule R13): one row with a number that only rises, ten seconds after ten
-- seconds; Redis keeps a copy. A number lower than the copy says that this
-- database was restored from a backup and is older than reality: state restored,
-- until what happened since was put back. Without the row the number is 0, as in a
-- backup that is older than this migration.
-- +goose Up
CREATE TABLE books (
    id           TINYINT     NOT NULL PRIMARY KEY,
    number       BIGINT      NOT NULL,
    state        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    beat_at      DATETIME(6) NOT NULL COMMENT 'when number last rose: what happened before is in these books',
    known        BIGINT      NOT NULL DEFAULT 0 COMMENT 'highest number seen elsewhere when the books were found restored',
    restored_at  DATETIME(6) NULL COMMENT 'when that was',
    recovered_at DATETIME(6) NULL COMMENT 'when the last recovery ended',
    guarded      BOOLEAN     NOT NULL DEFAULT FALSE COMMENT 'a recovery left breaks of kind restored: their packets stay as they are',
    CONSTRAINT books_one CHECK (id = 1),
    CONSTRAINT books_state CHECK (state IN ('normal', 'restored')),
    CONSTRAINT books_restored CHECK (state = 'normal' OR restored_at IS NOT NULL)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE books;
