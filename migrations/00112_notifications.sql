-- Notifications of providers. A notification moves nothing: stored once, it causes a query.
-- +goose Up
CREATE TABLE IF NOT EXISTS notifications (
    provider    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    event_id    VARBINARY(128) NOT NULL,
    order_no    VARBINARY(64)  NOT NULL,
    known       BOOLEAN        NOT NULL COMMENT 'the order number is one of ours',
    body        BLOB           NOT NULL,
    received_at DATETIME(3)    NOT NULL,
    PRIMARY KEY (provider, event_id),
    KEY notifications_order (order_no),
    KEY notifications_received (received_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS notifications;
