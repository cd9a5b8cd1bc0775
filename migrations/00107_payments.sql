-- Payments: every obligation to move money once. Charges (c), payouts (p), refunds (r) and
-- honoured share conflicts (h) use one table, because one transition table moves them all.
-- status is written by a compare-and-set on (status, version) alone. deciding holds a
-- decision that queries the provider before it takes effect (cancel, not_moved). needs_second_person: the
-- next retry needs a second person, whatever its amount. Keys that lists go by have the
-- amount, so that sums read no rows.
-- +goose Up
CREATE TABLE IF NOT EXISTS payments (
    id                VARBINARY(25) NOT NULL PRIMARY KEY COMMENT 'order number without the attempt',
    kind              CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    packet_id         VARBINARY(20) NOT NULL,
    app_id            VARBINARY(32) NOT NULL,
    user_id           VARBINARY(64) NOT NULL,
    share_index       INT           NOT NULL COMMENT '-1 unless a payout',
    account           VARBINARY(64) NOT NULL COMMENT 'of the next attempt',
    recipient_name    VARBINARY(512) NULL COMMENT 'of a payout: AES-GCM; NULL: not stated',
    authorization     VARBINARY(64) NULL COMMENT 'of a payout: the recipient''s agreement to be paid without confirming',
    amount            BIGINT        NOT NULL,
    currency          CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    remark            VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    provider          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    provider_account  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'ours there; empty: never sent',
    status            VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version           INT           NOT NULL DEFAULT 0,
    attempt           INT           NOT NULL DEFAULT 0,
    order_no          VARBINARY(27) NULL COMMENT 'of the current attempt',
    decided_at        DATETIME(6)   NULL,
    failure_code      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    failure_message   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    created_at        DATETIME(3)   NOT NULL,
    updated_at        DATETIME(3)   NOT NULL,
    settled_at        DATETIME(3)   NULL,
    deciding          VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    needs_second_person BOOLEAN     NOT NULL DEFAULT FALSE,
    pay_until         DATETIME(3)   NULL COMMENT 'of a charge whose sender pays in an app: closed at the provider from then on',
    close_requested_at DATETIME(6)  NULL COMMENT 'from then on nothing is sent under the current number; of a charge before pay_until: withdrawn',
    closed_at         DATETIME(6)   NULL COMMENT 'the provider has answered the close, which has had an effect as far as known',
    KEY payments_packet (packet_id, kind, share_index),
    KEY payments_user (kind, user_id, created_at, id),
    KEY payments_failure (kind, failure_code, created_at, id),
    KEY payments_order (order_no),
    KEY payments_packet_list (packet_id, kind, created_at, id),
    KEY payments_created (kind, created_at, id, amount),
    KEY payments_status (kind, status, created_at, id, amount, failure_code),
    KEY payments_amount (kind, amount, created_at, id),
    CONSTRAINT payments_kind CHECK (kind IN ('c', 'p', 'r', 'h')),
    CONSTRAINT payments_amount CHECK (amount > 0),
    CONSTRAINT payments_known_status CHECK (status IN (
        'pending', 'sending', 'unknown', 'awaiting_recipient', 'awaiting_payer', 'paid', 'failed', 'returned', 'cancelled', 'paid_outside')),
    CONSTRAINT payments_settled CHECK ((settled_at IS NULL) = (status IN (
        'pending', 'sending', 'unknown', 'awaiting_recipient', 'awaiting_payer'))),
    CONSTRAINT payments_failed CHECK ((status IN ('failed', 'returned')) = (failure_code IS NOT NULL)),
    CONSTRAINT payments_deciding CHECK (deciding = '' OR deciding = 'cancel' AND (status IN ('failed', 'returned') OR kind = 'r' AND settled_at IS NULL)
        OR deciding = 'not_moved' AND status IN ('sending', 'unknown', 'awaiting_recipient')),
    CONSTRAINT payments_payer CHECK (pay_until IS NULL AND status <> 'awaiting_payer' OR kind = 'c' AND pay_until IS NOT NULL),
    CONSTRAINT payments_closing CHECK ((close_requested_at IS NULL OR pay_until IS NOT NULL OR kind = 'p') AND (closed_at IS NULL OR close_requested_at IS NOT NULL)),
    CONSTRAINT payments_numbered CHECK ((attempt = 0) = (order_no IS NULL) AND attempt BETWEEN 0 AND 1023),
    CONSTRAINT payments_share CHECK ((kind = 'p') = (share_index >= 0)),
    CONSTRAINT payments_charge CHECK (kind <> 'c' OR status NOT IN ('cancelled', 'paid_outside'))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS payments;
