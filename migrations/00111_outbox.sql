-- Outbox: a transaction that sets a payment to pending, or wants the provider queried,
-- leaves an entry. The dispatcher of the worker starts or wakes the run until the row of the
-- payment has moved, then deletes the entry.
-- +goose Up
CREATE TABLE IF NOT EXISTS outbox (
    payment_id VARBINARY(25) NOT NULL,
    kind       VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'begin, ask, decide, close or finish',
    due_at     DATETIME(3)   NOT NULL,
    tries      INT           NOT NULL DEFAULT 0,
    created_at DATETIME(3)   NOT NULL,
    reached_at DATETIME(3)   NULL COMMENT 'when its run was started or woken last; NULL: never',
    PRIMARY KEY (payment_id, kind),
    KEY outbox_due (due_at),
    CONSTRAINT outbox_known_kind CHECK (kind IN ('begin', 'ask', 'decide', 'close', 'finish'))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS outbox;
