-- Attempts: one order number at the provider each. The exact request is stored
-- before the first send; sends are noted before they go out and after their answer.
-- +goose Up
CREATE TABLE attempts (
    order_no         VARBINARY(27) NOT NULL PRIMARY KEY,
    payment_id       VARBINARY(25) NOT NULL,
    no               INT           NOT NULL,
    op               VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    request          BLOB          NOT NULL,
    sends            INT           NOT NULL,
    asks             INT           NOT NULL,
    noted_until      DATETIME(6)   NULL COMMENT 'the noted send, not answered yet, may land until then',
    open_until       DATETIME(6)   NULL COMMENT 'earlier sends without an answer may land until then',
    statement        VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    refused          BOOLEAN       NOT NULL,
    booked           BOOLEAN       NOT NULL COMMENT 'its success is in the ledger',
    return_booked    BOOLEAN       NOT NULL COMMENT 'so is its return',
    next_action      VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    next_at          DATETIME(6)   NULL,
    asked_at         DATETIME(6)   NULL,
    ask_requested    BOOLEAN       NOT NULL,
    observed         VARBINARY(128) NOT NULL COMMENT 'ids of the last observations settled',
    code             VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    message          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    provider_ref     VARBINARY(64) NOT NULL,
    token            VARBINARY(512) NOT NULL,
    started_at       DATETIME(6)   NOT NULL,
    ask_until        DATETIME(6)   NOT NULL,
    ended_at         DATETIME(6)   NULL,
    UNIQUE KEY attempts_no (payment_id, no),
    CONSTRAINT attempts_sent CHECK (sends > 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE attempts;
