-- Sign-ins to the console that somebody ended. A sign-in is a sealed cookie and
-- nothing else is kept of it: what was ended before its time is kept here until the
-- cookie would have ended by itself.
-- +goose Up
CREATE TABLE ended_sign_ins (
    id       VARBINARY(32) NOT NULL PRIMARY KEY COMMENT 'SHA-256 of what the cookie holds',
    key_id   VARBINARY(64) NOT NULL COMMENT 'with which somebody had signed in',
    ended_at DATETIME(3)   NOT NULL,
    until_at DATETIME(3)   NOT NULL COMMENT 'the cookie ends by itself before',
    KEY ended_sign_ins_until (until_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE ended_sign_ins;
