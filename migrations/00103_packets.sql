-- Packets. Ids and user ids are bytes: every text collation would merge some of them
-- (rule R8). Amounts are fen. After the pool is retired, the row is the idempotency record
-- of create: body hash and first answer. claimed_count, best_share and last_share are
-- written when the books of the packet close, so that no reader counts a million shares;
-- best_share and last_share stay NULL without any claim. Tickets and a list of users
-- exclude each other. A recovery that finds no list, but knows that there was one, writes
-- eligible_count alone: nobody may grab then, and the packet closes.
-- +goose Up
CREATE TABLE IF NOT EXISTS packets (
    id               VARBINARY(20) NOT NULL PRIMARY KEY,
    app_id           VARBINARY(32) NOT NULL,
    sender_id        VARBINARY(64) NOT NULL,
    currency         CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    total_amount     BIGINT        NOT NULL,
    share_count      INT           NOT NULL,
    split            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    min_share        BIGINT        NOT NULL,
    max_share        BIGINT        NOT NULL COMMENT '0: no cap',
    greeting         VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    group_id         VARBINARY(64) NULL,
    metadata         BLOB          NOT NULL COMMENT 'JSON object of strings',
    eligible         MEDIUMBLOB    NULL COMMENT 'JSON array of user ids; NULL with a count: lost',
    eligible_count   INT           NOT NULL DEFAULT 0 COMMENT 'users on the list; 0: everyone may grab',
    body_hash        VARBINARY(64) NOT NULL,
    commitment       VARBINARY(64) NOT NULL,
    sealed_seed      VARBINARY(128) NOT NULL COMMENT 'key id (8 bytes), AES-GCM; opened only when closed',
    status           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    close_reason     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL,
    failure_code     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    failure_message  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    first_status     SMALLINT      NULL,
    first_request_id VARBINARY(128) NULL,
    created_at       DATETIME(3)   NOT NULL,
    opens_at         DATETIME(3)   NOT NULL,
    expires_at       DATETIME(3)   NOT NULL,
    books_closed_at  DATETIME(3)   NULL,
    remainder        BIGINT        NULL COMMENT 'set with books_closed_at',
    closed_at        DATETIME(3)   NULL,
    updated_at       DATETIME(3)   NOT NULL,
    claimed_count    INT           NULL COMMENT 'set with books_closed_at',
    best_share       INT           NULL COMMENT 'share_index of the best luck',
    last_share       INT           NULL COMMENT 'largest share_index that was claimed',
    tickets          BOOLEAN       NOT NULL DEFAULT FALSE COMMENT 'grabs need a ticket of the app',
    one_win          BOOLEAN       NOT NULL DEFAULT FALSE COMMENT 'a winner in another packet of its campaign wins nothing',
    charge_provider  VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'charges and refunds; fixed at create',
    payout_provider  VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'pays the claims; fixed at create',
    charge_method    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'how the sender pays; fixed at create',
    KEY packets_sender (app_id, sender_id, created_at, id),
    KEY packets_app (app_id, created_at, id),
    KEY packets_created (created_at, id),
    KEY packets_status (status, expires_at),
    KEY packets_app_status (app_id, status, created_at, id),
    KEY packets_sender_status (app_id, sender_id, status, created_at, id),
    KEY packets_any_status (status, created_at, id),
    KEY packets_any_sender (sender_id, status, created_at, id),
    CONSTRAINT packets_known_status CHECK (status IN ('funding', 'rejected', 'open', 'closing', 'closed')),
    CONSTRAINT packets_total CHECK (total_amount > 0 AND share_count > 0),
    CONSTRAINT packets_books CHECK ((books_closed_at IS NULL) = (remainder IS NULL)),
    CONSTRAINT packets_closed CHECK ((status = 'closed') = (closed_at IS NOT NULL)),
    CONSTRAINT packets_closed_books CHECK (status <> 'closed' OR books_closed_at IS NOT NULL),
    CONSTRAINT packets_claims_known CHECK ((books_closed_at IS NULL) = (claimed_count IS NULL)),
    CONSTRAINT packets_rejected CHECK ((status = 'rejected') = (failure_code IS NOT NULL)),
    CONSTRAINT packets_reason CHECK ((status IN ('closing', 'closed')) = (close_reason IS NOT NULL)),
    CONSTRAINT packets_books_late CHECK (books_closed_at IS NULL OR status IN ('closing', 'closed')),
    CONSTRAINT packets_remainder CHECK (remainder IS NULL OR remainder BETWEEN 0 AND total_amount),
    CONSTRAINT packets_counted CHECK (claimed_count IS NULL OR claimed_count BETWEEN 0 AND share_count),
    CONSTRAINT packets_life CHECK (expires_at > opens_at),
    CONSTRAINT packets_tickets CHECK (tickets = FALSE OR eligible_count = 0),
    CONSTRAINT packets_eligible CHECK (eligible_count >= 0 AND (eligible IS NULL OR eligible_count > 0))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS packets;
