-- The app of shares that were claimed before there was the column.
-- +goose Up
UPDATE shares s JOIN packets p ON p.id = s.packet_id SET s.app_id = p.app_id WHERE s.user_id IS NOT NULL AND s.app_id IS NULL;

-- +goose Down
UPDATE shares SET app_id = NULL WHERE app_id IS NOT NULL;
