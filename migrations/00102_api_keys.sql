-- API keys. Only the SHA-256 of the secret is stored: the secret has 256 random bits, so
-- a slow hash would protect nothing. app_id is set for role app alone.
-- +goose Up
CREATE TABLE IF NOT EXISTS api_keys (
    id           VARBINARY(16) NOT NULL PRIMARY KEY,
    role         VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    app_id       VARBINARY(32) NULL,
    owner        VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    secret_hash  BINARY(32)    NOT NULL,
    created_at   DATETIME(3)   NOT NULL,
    revoked_at   DATETIME(3)   NULL,
    name         VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'what it is for',
    expires_at   DATETIME(3)   NULL COMMENT 'NULL: never',
    replaced_by  VARBINARY(16) NULL COMMENT 'the key that its rotation made',
    last_used_at DATETIME(3)   NULL COMMENT 'to the minute; NULL: not known',
    made_by      VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'NULL: a command on a machine of ours',
    waiting      BOOLEAN       NOT NULL DEFAULT FALSE COMMENT 'for a second person',
    approved_by  VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'the second person',
    KEY api_keys_list (created_at, id),
    CONSTRAINT api_keys_app CHECK ((role = 'app') = (app_id IS NOT NULL)),
    CONSTRAINT api_keys_approval CHECK (approved_by IS NULL OR made_by IS NOT NULL AND approved_by <> made_by AND NOT waiting),
    CONSTRAINT api_keys_two_persons CHECK (role <> 'finance' OR made_by IS NULL OR approved_by IS NOT NULL OR waiting),
    CONSTRAINT api_keys_roles CHECK (role IN ('app', 'finance', 'ops', 'auditor', 'admin'))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS api_keys;
