-- Sign-ins to the console that were ended before their time. A sign-in is a sealed cookie
-- and needs no row; its end needs one until the cookie expires.
-- +goose Up
CREATE TABLE IF NOT EXISTS ended_sign_ins (
    id       VARBINARY(32) NOT NULL PRIMARY KEY COMMENT 'SHA-256 of what the cookie holds',
    key_id   VARBINARY(64) NOT NULL COMMENT 'key of the sign-in',
    ended_at DATETIME(3)   NOT NULL,
    until_at DATETIME(3)   NOT NULL COMMENT 'the cookie has expired by then',
    KEY ended_sign_ins_until (until_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS ended_sign_ins;
