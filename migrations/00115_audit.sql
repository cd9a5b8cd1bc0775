-- Audit: who, in which role, why, before and after. It is append-only: each entry hashes
-- the one before it. seq is the last column of every key without being named.
-- Where MySQL writes a binary log, the user that migrates needs
-- log_bin_trust_function_creators = 1 (or SUPER) to create a trigger.
-- +goose Up
CREATE TABLE IF NOT EXISTS audit (
    seq       BIGINT        NOT NULL PRIMARY KEY,
    at        DATETIME(3)   NOT NULL,
    actor     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    role      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    key_id    VARBINARY(16) NULL COMMENT 'of the key that acted; NULL: a command on a machine of ours, or the worker',
    action    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subject   VARBINARY(64) NOT NULL,
    reason    VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    before_is BLOB          NOT NULL,
    after_is  BLOB          NOT NULL,
    hash      BINARY(32)    NOT NULL,
    KEY audit_subject (subject, at),
    KEY audit_actor (actor, at),
    KEY audit_action (action, at),
    KEY audit_at (at)
) ENGINE = InnoDB;
CREATE TRIGGER IF NOT EXISTS audit_no_update BEFORE UPDATE ON audit FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit is append-only';
CREATE TRIGGER IF NOT EXISTS audit_no_delete BEFORE DELETE ON audit FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit is append-only';

-- +goose Down
DROP TABLE IF EXISTS audit;
