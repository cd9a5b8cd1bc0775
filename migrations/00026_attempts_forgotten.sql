-- The provider was asked past ask_until and did not know the number: from then on people may decide (rule R5).

-- +goose Up
ALTER TABLE attempts ADD COLUMN forgotten BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE attempts DROP COLUMN forgotten;
