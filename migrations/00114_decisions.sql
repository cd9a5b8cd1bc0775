-- Decisions of staff about payments, and credits and debits of apps' balances. The approval by a second person is part of the row;
-- a payment made outside needs evidence, and so does what became of the money of an order
-- number, which is about a break.
-- +goose Up
CREATE TABLE IF NOT EXISTS decisions (
    id             VARBINARY(26) NOT NULL PRIMARY KEY,
    payment_id     VARBINARY(25) NOT NULL COMMENT 'of credit and debit: of the movement',
    kind           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason         VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    decided_by     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_id         VARBINARY(16) NULL,
    role           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status         VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    approval_id    VARBINARY(26) NULL,
    expires_at     DATETIME(3)   NULL,
    approved_by    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    approve_key_id VARBINARY(16) NULL COMMENT 'of the key that answered, or withdrew',
    approve_reason VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    created_at     DATETIME(3)   NOT NULL,
    ended_at       DATETIME(3)   NULL,
    evidence       VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    order_no       VARBINARY(27) NULL,
    break_id       BIGINT        NULL,
    preview_hash   BINARY(32)    NULL COMMENT 'of what the deciding person was shown',
    UNIQUE KEY decisions_approval (approval_id),
    KEY decisions_payment (payment_id, created_at),
    KEY decisions_waiting (status, created_at, approval_id),
    KEY decisions_created (created_at, approval_id),
    CONSTRAINT decisions_known_status CHECK (status IN ('waiting', 'open', 'carried_out', 'overtaken', 'rejected', 'expired',
        'withdrawn')),
    CONSTRAINT decisions_known_kind CHECK (kind IN ('retry', 'cancel', 'mark_paid', 'ask', 'moved', 'not_moved', 'written_off', 'credit',
        'debit')),
    CONSTRAINT decisions_ended CHECK ((ended_at IS NULL) = (status IN ('waiting', 'open'))),
    CONSTRAINT decisions_two_persons CHECK (approved_by IS NULL OR approved_by <> decided_by AND approval_id IS NOT NULL),
    CONSTRAINT decisions_approval_life CHECK ((approval_id IS NULL) = (expires_at IS NULL)),
    CONSTRAINT decisions_preview CHECK ((approval_id IS NULL) = (preview_hash IS NULL)),
    CONSTRAINT decisions_waiting_for CHECK (status <> 'waiting' OR approval_id IS NOT NULL),
    CONSTRAINT decisions_evidence CHECK (kind NOT IN ('mark_paid', 'moved', 'not_moved', 'written_off', 'credit', 'debit')
        OR evidence IS NOT NULL),
    CONSTRAINT decisions_about_order CHECK ((kind IN ('moved', 'not_moved', 'written_off')) = (order_no IS NOT NULL)
        AND (order_no IS NULL) = (break_id IS NULL)),
    CONSTRAINT decisions_observed_by_two CHECK (kind NOT IN ('moved', 'not_moved', 'written_off', 'credit', 'debit') OR approval_id IS NOT NULL)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS decisions;
