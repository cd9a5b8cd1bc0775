-- API keys. Only SHA-256 of the secret is stored: it has 256 random bits, so a
-- slow hash would protect nothing. app_id is set for role app only.
-- +goose Up
CREATE TABLE api_keys (
    id          VARBINARY(16) NOT NULL PRIMARY KEY,
    role        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    app_id      VARBINARY(32) NULL,
    owner       VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    secret_hash BINARY(32)    NOT NULL,
    created_at  DATETIME(3)   NOT NULL,
    revoked_at  DATETIME(3)   NULL,
    CONSTRAINT api_keys_role CHECK (role IN ('app', 'finance', 'ops', 'auditor')),
    CONSTRAINT api_keys_app CHECK ((role = 'app') = (app_id IS NOT NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE api_keys;
