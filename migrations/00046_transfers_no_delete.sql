-- The ledger is append-only: a posting is put right by another one (R12).
-- Where MySQL writes a binary log, whoever migrates needs
-- log_bin_trust_function_creators = 1 (or SUPER) to create a trigger.
-- +goose Up
CREATE TRIGGER transfers_no_delete BEFORE DELETE ON transfers FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'transfers is append-only';

-- +goose Down
DROP TRIGGER transfers_no_delete;
