-- Breaks (差异): disagreements a person has to look at. One row a payment, order
-- number and kind; seen again only counts up.
-- +goose Up
CREATE TABLE breaks (
    id          BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind        VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    packet_id   VARBINARY(20) NOT NULL,
    payment_id  VARBINARY(25) NOT NULL,
    order_no    VARBINARY(27) NOT NULL,
    user_id     VARBINARY(64) NOT NULL DEFAULT '' COMMENT 'of a promise that cannot be booked: whose',
    detail      VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    seen        INT           NOT NULL DEFAULT 1,
    created_at  DATETIME(3)   NOT NULL,
    last_seen   DATETIME(3)   NOT NULL,
    resolved_at DATETIME(3)   NULL,
    resolved_by VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    reason      VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    UNIQUE KEY breaks_subject (payment_id, order_no, kind, user_id),
    KEY breaks_packet (packet_id, kind),
    KEY breaks_open (resolved_at, created_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE breaks;
