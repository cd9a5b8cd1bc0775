-- Who resolves a break says who he is and why. One that was seen again is open,
-- and keeps both, which are about the time before.
-- +goose Up
ALTER TABLE breaks
    ADD CONSTRAINT breaks_resolved CHECK (resolved_at IS NULL OR resolved_by IS NOT NULL AND reason IS NOT NULL);

-- +goose Down
ALTER TABLE breaks DROP CONSTRAINT breaks_resolved;
