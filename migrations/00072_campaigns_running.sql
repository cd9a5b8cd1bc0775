-- Those that have not ended, however many have; and those of all apps, for staff.
-- +goose Up
ALTER TABLE campaigns
    ADD KEY campaigns_running (ended_at, id),
    ADD KEY campaigns_created (created_at, id),
    ADD KEY campaigns_status (status, created_at, id);

-- +goose Down
ALTER TABLE campaigns
    DROP KEY campaigns_status,
    DROP KEY campaigns_created,
    DROP KEY campaigns_running;
