-- Keys are administered over HTTP, by the role admin. A key may end by itself:
-- at its rotation, after the grace time, or because it was made for a time.
-- +goose Up
ALTER TABLE api_keys
    DROP CONSTRAINT api_keys_role,
    ADD CONSTRAINT api_keys_roles CHECK (role IN ('app', 'finance', 'ops', 'auditor', 'admin')),
    ADD COLUMN name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'what it is for',
    ADD COLUMN expires_at DATETIME(3) NULL COMMENT 'NULL: never',
    ADD COLUMN replaced_by VARBINARY(16) NULL COMMENT 'the key that its rotation made',
    ADD COLUMN last_used_at DATETIME(3) NULL COMMENT 'to the minute; NULL: not known',
    ADD INDEX api_keys_list (created_at, id);

-- +goose Down
ALTER TABLE api_keys
    DROP INDEX api_keys_list,
    DROP COLUMN name,
    DROP COLUMN expires_at,
    DROP COLUMN replaced_by,
    DROP COLUMN last_used_at,
    DROP CONSTRAINT api_keys_roles,
    ADD CONSTRAINT api_keys_role CHECK (role IN ('app', 'finance', 'ops', 'auditor'));
