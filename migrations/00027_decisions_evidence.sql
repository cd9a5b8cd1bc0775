-- What proves that a payment was made outside.

-- +goose Up
ALTER TABLE decisions ADD COLUMN evidence VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

-- +goose Down
ALTER TABLE decisions DROP COLUMN evidence;
