-- The app of a claimed share: the claims of a user are listed by app, and the
-- same user id in two apps is two users.
-- +goose Up
ALTER TABLE shares ADD COLUMN app_id VARBINARY(32) NULL COMMENT 'set with user_id';

-- +goose Down
ALTER TABLE shares DROP COLUMN app_id;
