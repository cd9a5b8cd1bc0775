-- Those that have not ended, however many have.
-- +goose Up
ALTER TABLE campaigns
    ADD KEY campaigns_running (ended_at, id);

-- +goose Down
ALTER TABLE campaigns
    DROP KEY campaigns_running;
