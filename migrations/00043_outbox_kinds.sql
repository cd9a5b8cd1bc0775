-- What the dispatcher cannot tell to be done would be started for ever.
-- +goose Up
ALTER TABLE outbox ADD CONSTRAINT outbox_known_kind CHECK (kind IN ('begin', 'ask', 'decide', 'finish'));

-- +goose Down
ALTER TABLE outbox DROP CONSTRAINT outbox_known_kind;
