-- The audit is append-only: each entry hashes the one before it.
-- Where MySQL writes a binary log, whoever migrates needs
-- log_bin_trust_function_creators = 1 (or SUPER) to create a trigger.
-- +goose Up
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit is append-only';

-- +goose Down
DROP TRIGGER audit_no_delete;
