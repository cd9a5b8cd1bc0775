-- The claims that were recorded before there was the table. Workers are stopped
-- meanwhile: what an older one records is missing in it.
-- +goose Up
INSERT INTO claims (packet_id, user_id, share_index, app_id, claimed_at)
    SELECT packet_id, user_id, share_index, app_id, claimed_at FROM shares WHERE user_id IS NOT NULL;

-- +goose Down
DELETE FROM claims;
