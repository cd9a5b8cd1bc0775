-- Provider accounts: the merchant account that belongs to the name of a provider. The first start
-- with a name writes it, each start and each send compares it: another account is another name.
-- +goose Up
CREATE TABLE IF NOT EXISTS provider_accounts (
    provider         VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    kind             VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the adapter',
    provider_account VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'ours there',
    bound_at         DATETIME(3) NOT NULL
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS provider_accounts;
