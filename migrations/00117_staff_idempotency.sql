-- Answers to staff writes, stored in the transaction of their effect. owner: 64 characters
-- are up to 256 bytes.
-- +goose Up
CREATE TABLE IF NOT EXISTS staff_idempotency (
    owner      VARBINARY(256) NOT NULL,
    route      VARBINARY(255) NOT NULL COMMENT 'method and path',
    idem_key   VARBINARY(128) NOT NULL,
    body_hash  VARBINARY(64)  NOT NULL,
    status     SMALLINT       NOT NULL,
    body       MEDIUMBLOB     NOT NULL,
    created_at DATETIME(3)    NOT NULL,
    PRIMARY KEY (owner, route, idem_key),
    KEY staff_idempotency_created (created_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS staff_idempotency;
