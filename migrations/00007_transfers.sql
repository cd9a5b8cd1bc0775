-- The ledger: append-only double entry. amount leaves debit and goes to credit.
-- reference (order number and kind) is unique, so nothing is booked twice.
-- Balances are sums, so there is no hot row.
-- +goose Up
CREATE TABLE transfers (
    id         BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    packet_id  VARBINARY(20) NOT NULL,
    kind       VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    debit      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    credit     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount     BIGINT        NOT NULL,
    order_no   VARBINARY(27) NOT NULL,
    reference  VARBINARY(64) NOT NULL,
    created_at DATETIME(3)   NOT NULL,
    UNIQUE KEY transfers_reference (reference),
    KEY transfers_packet (packet_id, id),
    CONSTRAINT transfers_amount CHECK (amount > 0),
    CONSTRAINT transfers_two_sides CHECK (debit <> credit)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE transfers;
