-- Payment events: the timeline of a payment.
-- +goose Up
CREATE TABLE IF NOT EXISTS payment_events (
    id         BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    payment_id VARBINARY(25) NOT NULL,
    at         DATETIME(3)   NOT NULL,
    source     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    op         VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'send or ask; empty otherwise',
    order_no   VARBINARY(27) NOT NULL,
    outcome    VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    code       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    event      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'payout.EventCode',
    args       BLOB          NOT NULL COMMENT 'JSON object of strings: arguments that have no column',
    started_at DATETIME(3)   NULL,
    ended_at   DATETIME(3)   NULL,
    KEY payment_events_payment (payment_id, id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS payment_events;
