-- Answers of staff writes, stored in the transaction of their effect.
-- +goose Up
CREATE TABLE staff_idempotency (
    owner      VARBINARY(64)  NOT NULL,
    route      VARBINARY(255) NOT NULL COMMENT 'method and path',
    idem_key   VARBINARY(128) NOT NULL,
    body_hash  VARBINARY(64)  NOT NULL,
    status     SMALLINT       NOT NULL,
    body       MEDIUMBLOB     NOT NULL,
    created_at DATETIME(3)    NOT NULL,
    PRIMARY KEY (owner, route, idem_key)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE staff_idempotency;
