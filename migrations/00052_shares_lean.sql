-- The keys of shares that the table of claims replaces.
-- +goose Up
ALTER TABLE shares DROP KEY shares_claimer, DROP KEY shares_user;

-- +goose Down
ALTER TABLE shares ADD UNIQUE KEY shares_claimer (packet_id, user_id), ADD KEY shares_user (app_id, user_id, claimed_at, packet_id);
