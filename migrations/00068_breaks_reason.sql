-- The reason for which a break is resolved has 500 characters, as every other one.
-- +goose Up
ALTER TABLE breaks MODIFY COLUMN reason VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

-- +goose Down
ALTER TABLE breaks MODIFY COLUMN reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;
