-- Breaks (差异): differences for staff. One row a payment, order number, kind and user; a
-- repeat only counts up. A resolved break that is seen again is open, and keeps resolved_by
-- and reason of the time before. Breaks of reconciliation may have order numbers that are
-- not ours.
-- +goose Up
CREATE TABLE IF NOT EXISTS breaks (
    id                BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind              VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    packet_id         VARBINARY(20) NOT NULL,
    payment_id        VARBINARY(25) NOT NULL,
    order_no          VARBINARY(64) NOT NULL,
    user_id           VARBINARY(64) NOT NULL DEFAULT '' COMMENT 'of a claim that cannot be recorded: its user',
    detail            VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    seen              INT           NOT NULL DEFAULT 1,
    created_at        DATETIME(3)   NOT NULL,
    last_seen         DATETIME(3)   NOT NULL,
    resolved_at       DATETIME(3)   NULL,
    resolved_by       VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    reason            VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    provider          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'of reconciliation: whose statement',
    amount            BIGINT        NULL COMMENT 'of reconciliation: what moved or was booked',
    reconciliation_id VARBINARY(26) NULL COMMENT 'the run that saw it last',
    UNIQUE KEY breaks_subject (payment_id, order_no, kind, user_id),
    KEY breaks_packet (packet_id, kind),
    KEY breaks_open (resolved_at, created_at),
    KEY breaks_created (created_at, id),
    KEY breaks_reconciliation (reconciliation_id, kind),
    KEY breaks_provider (provider, resolved_at, id),
    KEY breaks_packet_list (packet_id, created_at),
    KEY breaks_reconciliation_list (reconciliation_id, created_at),
    CONSTRAINT breaks_resolved CHECK (resolved_at IS NULL OR resolved_by IS NOT NULL AND reason IS NOT NULL)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS breaks;
