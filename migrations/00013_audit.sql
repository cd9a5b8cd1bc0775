-- Audit: who, in which role, why, before and after; each entry hashes the one before.
-- +goose Up
CREATE TABLE audit (
    seq       BIGINT      NOT NULL PRIMARY KEY,
    at        DATETIME(3) NOT NULL,
    actor     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    role      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    action    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subject   VARBINARY(64) NOT NULL,
    reason    VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    before_is BLOB        NOT NULL,
    after_is  BLOB        NOT NULL,
    hash      BINARY(32)  NOT NULL,
    KEY audit_subject (subject, seq)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE audit;
