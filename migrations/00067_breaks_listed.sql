-- Lists of the breaks of a packet and of a run, in their order: a bad statement may leave
-- as many as the day has payments, and their file is read step by step.
-- +goose Up
ALTER TABLE breaks
    ADD KEY breaks_packet_list (packet_id, created_at),
    ADD KEY breaks_reconciliation_list (reconciliation_id, created_at);

-- +goose Down
ALTER TABLE breaks DROP KEY breaks_packet_list, DROP KEY breaks_reconciliation_list;
