-- Staff lists the packets of all apps: those in one status, those of one sender,
-- or both, in the order in which they are listed.
-- +goose Up
ALTER TABLE packets
    ADD KEY packets_any_status (status, created_at, id),
    ADD KEY packets_any_sender (sender_id, status, created_at, id);

-- +goose Down
ALTER TABLE packets DROP KEY packets_any_status, DROP KEY packets_any_sender;
