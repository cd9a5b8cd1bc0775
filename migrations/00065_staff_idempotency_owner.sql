-- An owner has 64 characters, which are up to 256 bytes. MariaDB changes nothing but the
-- definition; MySQL copies the table meanwhile, and only the writes of staff wait for that.
-- +goose Up
ALTER TABLE staff_idempotency MODIFY COLUMN owner VARBINARY(256) NOT NULL;

-- +goose Down
ALTER TABLE staff_idempotency MODIFY COLUMN owner VARBINARY(64) NOT NULL;
