-- Outbox: whoever sets a payment to pending, or wants the provider asked, leaves
-- a row here in the same transaction. The worker's dispatcher starts or wakes
-- the run until the row of the payment has moved, then deletes this one.
-- +goose Up
CREATE TABLE outbox (
    payment_id VARBINARY(25) NOT NULL,
    kind       VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'begin or ask',
    due_at     DATETIME(3)   NOT NULL,
    tries      INT           NOT NULL DEFAULT 0,
    created_at DATETIME(3)   NOT NULL,
    PRIMARY KEY (payment_id, kind),
    KEY outbox_due (due_at)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE outbox;
