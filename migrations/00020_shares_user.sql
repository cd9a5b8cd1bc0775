-- The claims of a user of an app, in the order in which they are listed.
-- +goose Up
ALTER TABLE shares DROP KEY shares_user, ADD KEY shares_user (app_id, user_id, claimed_at, packet_id);

-- +goose Down
ALTER TABLE shares DROP KEY shares_user, ADD KEY shares_user (user_id, claimed_at, packet_id);
