-- Notifications of providers. They move nothing: stored once, they cause the provider to be asked.
-- +goose Up
CREATE TABLE notifications (
    provider    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    event_id    VARBINARY(128) NOT NULL,
    order_no    VARBINARY(64)  NOT NULL,
    known       BOOLEAN        NOT NULL COMMENT 'the order number is one of ours',
    body        BLOB           NOT NULL,
    received_at DATETIME(3)    NOT NULL,
    PRIMARY KEY (provider, event_id),
    KEY notifications_order (order_no)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE notifications;
