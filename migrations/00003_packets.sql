-- Packets. Ids and user ids are bytes: every text collation would merge some of
-- them (rule R8). Amounts are fen. The row is the idempotency record of create
-- once the pool is gone: body hash and first answer.
-- +goose Up
CREATE TABLE packets (
    id               VARBINARY(20) NOT NULL PRIMARY KEY,
    app_id           VARBINARY(32) NOT NULL,
    sender_id        VARBINARY(64) NOT NULL,
    currency         CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    total_amount     BIGINT NOT NULL,
    share_count      INT    NOT NULL,
    split            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    min_share        BIGINT NOT NULL,
    max_share        BIGINT NOT NULL COMMENT '0: no cap',
    greeting         VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    group_id         VARBINARY(64) NULL,
    metadata         BLOB NOT NULL COMMENT 'JSON object of strings',
    eligible         MEDIUMBLOB NULL COMMENT 'JSON array of user ids; NULL: everyone',
    body_hash        VARBINARY(64) NOT NULL,
    commitment       VARBINARY(64) NOT NULL,
    sealed_seed      VARBINARY(128) NOT NULL COMMENT 'AES-GCM; opened only when closed',
    status           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    close_reason     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL,
    failure_code     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    failure_message  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    first_status     SMALLINT NULL,
    first_request_id VARBINARY(128) NULL,
    created_at       DATETIME(3) NOT NULL,
    opens_at         DATETIME(3) NOT NULL,
    expires_at       DATETIME(3) NOT NULL,
    books_closed_at  DATETIME(3) NULL,
    remainder        BIGINT NULL COMMENT 'set with books_closed_at',
    closed_at        DATETIME(3) NULL,
    updated_at       DATETIME(3) NOT NULL,
    KEY packets_sender (app_id, sender_id, created_at, id),
    KEY packets_app (app_id, created_at, id),
    KEY packets_created (created_at, id),
    KEY packets_status (status, expires_at),
    CONSTRAINT packets_known_status CHECK (status IN ('funding', 'rejected', 'open', 'closing', 'closed')),
    CONSTRAINT packets_total CHECK (total_amount > 0 AND share_count > 0),
    CONSTRAINT packets_books CHECK ((books_closed_at IS NULL) = (remainder IS NULL)),
    CONSTRAINT packets_closed CHECK ((status = 'closed') = (closed_at IS NOT NULL)),
    CONSTRAINT packets_closed_books CHECK (status <> 'closed' OR books_closed_at IS NOT NULL)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE packets;
