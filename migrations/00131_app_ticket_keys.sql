-- Public keys of apps for tickets. An app may have several, so that a new key is known
-- before the old one ends. A public key is added once: a revoked key stays revoked, for
-- every app.
-- +goose Up
CREATE TABLE IF NOT EXISTS app_ticket_keys (
    kid        VARBINARY(16) NOT NULL PRIMARY KEY,
    app_id     VARBINARY(32) NOT NULL,
    name       VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'what it is for',
    public_key BINARY(32)    NOT NULL COMMENT 'Ed25519',
    created_at DATETIME(3)   NOT NULL,
    revoked_at DATETIME(3)   NULL,
    UNIQUE KEY app_ticket_keys_public (public_key),
    KEY app_ticket_keys_list (created_at, kid)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS app_ticket_keys;
