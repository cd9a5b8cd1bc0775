-- Approvals in the order in which they are listed: all, and those in one status.
-- +goose Up
ALTER TABLE decisions
    DROP KEY decisions_waiting,
    ADD KEY decisions_waiting (status, created_at, approval_id),
    ADD KEY decisions_created (created_at, approval_id);

-- +goose Down
ALTER TABLE decisions
    DROP KEY decisions_created,
    DROP KEY decisions_waiting,
    ADD KEY decisions_waiting (status, created_at);
