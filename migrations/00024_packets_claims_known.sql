-- Closed books without these figures would be told as a packet nobody claimed from.
-- +goose Up
ALTER TABLE packets ADD CONSTRAINT packets_claims_known CHECK ((books_closed_at IS NULL) = (claimed_count IS NULL));

-- +goose Down
ALTER TABLE packets DROP CONSTRAINT packets_claims_known;
