-- A claim without its app would be missing in the list of its user.
-- +goose Up
ALTER TABLE shares ADD CONSTRAINT shares_claimed_app CHECK ((user_id IS NULL) = (app_id IS NULL));

-- +goose Down
ALTER TABLE shares DROP CONSTRAINT shares_claimed_app;
