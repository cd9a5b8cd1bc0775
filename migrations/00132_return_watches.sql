-- The position of the search for returned payments in a provider's statement. A lost or
-- older position does no harm: what lies behind it is searched once more.
-- +goose Up
CREATE TABLE IF NOT EXISTS return_watches (
    provider VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    day      CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of the statement that is read; NULL: none yet',
    place    VARBINARY(255) NOT NULL DEFAULT '' COMMENT 'position in that statement, written by the adapter',
    until_at DATETIME(3)    NULL COMMENT 'end of the search, by the clock of the provider; NULL: none yet, or no current day listed',
    due_at   DATETIME(3)    NOT NULL COMMENT 'time of the next turn, of any worker'
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS return_watches;
