-- A decision that is over says since when; nobody approves his own; what was
-- paid outside has its evidence.
-- +goose Up
ALTER TABLE decisions
    ADD CONSTRAINT decisions_known_status CHECK (status IN ('waiting', 'open', 'carried_out', 'overtaken', 'rejected', 'expired')),
    ADD CONSTRAINT decisions_known_kind CHECK (kind IN ('retry', 'cancel', 'mark_paid', 'ask')),
    ADD CONSTRAINT decisions_ended CHECK ((ended_at IS NULL) = (status IN ('waiting', 'open'))),
    ADD CONSTRAINT decisions_two_persons CHECK (approved_by IS NULL OR approved_by <> decided_by AND approval_id IS NOT NULL),
    ADD CONSTRAINT decisions_approval_life CHECK ((approval_id IS NULL) = (expires_at IS NULL)),
    ADD CONSTRAINT decisions_waiting_for CHECK (status <> 'waiting' OR approval_id IS NOT NULL),
    ADD CONSTRAINT decisions_evidence CHECK (kind <> 'mark_paid' OR evidence IS NOT NULL);

-- +goose Down
ALTER TABLE decisions DROP CONSTRAINT decisions_known_status, DROP CONSTRAINT decisions_known_kind, DROP CONSTRAINT decisions_ended,
    DROP CONSTRAINT decisions_two_persons, DROP CONSTRAINT decisions_approval_life, DROP CONSTRAINT decisions_waiting_for, DROP CONSTRAINT decisions_evidence;
