-- Breaks that reconciliation finds: about numbers that may not be ours, of an
-- amount, seen by a run.
-- +goose Up
ALTER TABLE breaks
    MODIFY COLUMN order_no VARBINARY(64) NOT NULL,
    ADD COLUMN provider VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'of reconciliation: whose statement',
    ADD COLUMN amount BIGINT NULL COMMENT 'of reconciliation: what moved or was booked',
    ADD COLUMN reconciliation_id VARBINARY(26) NULL COMMENT 'the run that saw it last',
    ADD KEY breaks_created (created_at, id),
    ADD KEY breaks_reconciliation (reconciliation_id, kind),
    ADD KEY breaks_provider (provider, resolved_at, id);

-- +goose Down
ALTER TABLE breaks DROP KEY breaks_created, DROP KEY breaks_reconciliation, DROP KEY breaks_provider,
    DROP COLUMN provider, DROP COLUMN amount, DROP COLUMN reconciliation_id, MODIFY COLUMN order_no VARBINARY(27) NOT NULL;
