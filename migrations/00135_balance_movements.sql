-- Balance movements: credits and debits of apps' balances. Their reason, evidence and the two
-- persons are in decisions, whose payment_id is the movement's id; the transfer is made by the
-- approval. used_reference is the reference until the movement ends without moving money: no two
-- movements of an app have one.
-- +goose Up
CREATE TABLE IF NOT EXISTS balance_movements (
    id             VARBINARY(25)  NOT NULL PRIMARY KEY,
    app_id         VARBINARY(32)  NOT NULL,
    kind           VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount         BIGINT         NOT NULL,
    reference      VARBINARY(255) NOT NULL,
    used_reference VARBINARY(255) NULL,
    created_at     DATETIME(3)    NOT NULL,
    UNIQUE KEY balance_movements_reference (app_id, used_reference),
    CONSTRAINT balance_movements_kind CHECK (kind IN ('credit', 'debit')),
    CONSTRAINT balance_movements_amount CHECK (amount > 0),
    CONSTRAINT balance_movements_used CHECK (used_reference IS NULL OR used_reference = reference)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS balance_movements;
