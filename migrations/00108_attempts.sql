-- Attempts: one order number at the provider each. The exact request is stored before the
-- first send; a send is recorded before it goes out and after its answer. Past ask_until two
-- persons may decide without the outcome (rule R5). consented: the last answer that both were
-- shown. forgotten: a query past ask_until found that the provider does not know the number.
-- +goose Up
CREATE TABLE IF NOT EXISTS attempts (
    order_no      VARBINARY(27) NOT NULL PRIMARY KEY,
    payment_id    VARBINARY(25) NOT NULL,
    no            INT           NOT NULL,
    op            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    account       VARBINARY(64) NOT NULL COMMENT 'in the request',
    request       BLOB          NOT NULL,
    sends         INT           NOT NULL,
    asks          INT           NOT NULL,
    noted_until   DATETIME(6)   NULL COMMENT 'the noted send, not answered yet, may land until then',
    open_until    DATETIME(6)   NULL COMMENT 'earlier sends without an answer may land until then',
    statement     VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    refused       BOOLEAN       NOT NULL,
    booked        BOOLEAN       NOT NULL COMMENT 'its success is in the ledger',
    return_booked BOOLEAN       NOT NULL COMMENT 'so is its return',
    next_action   VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    next_at       DATETIME(6)   NULL,
    asked_at      DATETIME(6)   NULL,
    ask_wanted_at DATETIME(6)   NULL COMMENT 'only the answer to a query put at or after it ends the wait',
    observed      VARBINARY(128) NOT NULL COMMENT 'ids of the last observations settled',
    code          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    message       VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    provider_ref  VARBINARY(64) NOT NULL,
    sealed_action VARBINARY(2048) NULL COMMENT 'what the recipient needs in order to confirm, AES-GCM; none once the payment has ended',
    started_at    DATETIME(6)   NOT NULL,
    ask_until     DATETIME(6)   NOT NULL,
    ended_at      DATETIME(6)   NULL,
    forgotten     BOOLEAN       NOT NULL DEFAULT FALSE,
    consented     VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'no_answer: there was none',
    renew_at      DATETIME(6)   NULL COMMENT 'the client data of an unpaid charge is obtained again then',
    UNIQUE KEY attempts_no (payment_id, no),
    KEY attempts_ref (provider_ref),
    CONSTRAINT attempts_sent CHECK (sends > 0),
    CONSTRAINT attempts_booked CHECK (booked = FALSE OR return_booked = TRUE OR ended_at IS NOT NULL),
    CONSTRAINT attempts_returned CHECK (return_booked = FALSE OR booked = TRUE),
    CONSTRAINT attempts_op CHECK (op IN ('charge', 'transfer', 'refund')),
    CONSTRAINT attempts_number CHECK (no BETWEEN 1 AND 1023 AND asks >= 0 AND SUBSTRING(order_no, 1, 25) = payment_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS attempts;
