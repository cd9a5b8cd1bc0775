-- The audit is listed newest first: all of it, by person, by kind of decision,
-- by what was decided about. seq is the last column of every key, unsaid.
-- +goose Up
ALTER TABLE audit
    DROP KEY audit_subject,
    ADD KEY audit_subject (subject, at),
    ADD KEY audit_actor (actor, at),
    ADD KEY audit_action (action, at),
    ADD KEY audit_at (at);

-- +goose Down
ALTER TABLE audit
    DROP KEY audit_subject,
    DROP KEY audit_actor,
    DROP KEY audit_action,
    DROP KEY audit_at,
    ADD KEY audit_subject (subject, seq);
