-- The packets of an app, or of one sender, in one status, in the order in which
-- they are listed.
-- +goose Up
ALTER TABLE packets
    ADD KEY packets_app_status (app_id, status, created_at, id),
    ADD KEY packets_sender_status (app_id, sender_id, status, created_at, id);

-- +goose Down
ALTER TABLE packets DROP KEY packets_app_status, DROP KEY packets_sender_status;
