-- App balances: what an app has paid in and not spent. available pays packets that the app funds
-- itself, reserved is in packets whose books are open. Both are sums of the ledger, kept as a row
-- so that a lock on it makes an overdraft impossible; it is the last lock of a transaction.
-- recovered: a recovery has reserved more than a restored balance covers. Only then available is
-- below zero, and nothing is reserved until credits cover it.
-- +goose Up
CREATE TABLE IF NOT EXISTS app_balances (
    app_id    VARBINARY(32) NOT NULL PRIMARY KEY,
    currency  CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    available BIGINT        NOT NULL,
    reserved  BIGINT        NOT NULL,
    version   BIGINT        NOT NULL,
    recovered BOOLEAN       NOT NULL DEFAULT FALSE,
    CONSTRAINT app_balances_available CHECK (available >= 0 OR recovered),
    CONSTRAINT app_balances_reserved CHECK (reserved >= 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS app_balances;
