-- What tells of a packet's state agrees with its status, whoever writes it.
-- On a big table: checks are verified by reading every row once, and MySQL copies the whole table for it while writes
-- to it wait; stop the workers and run it at a quiet time.
-- +goose Up
ALTER TABLE packets
    ADD CONSTRAINT packets_rejected CHECK ((status = 'rejected') = (failure_code IS NOT NULL)),
    ADD CONSTRAINT packets_reason CHECK ((status IN ('closing', 'closed')) = (close_reason IS NOT NULL)),
    ADD CONSTRAINT packets_books_late CHECK (books_closed_at IS NULL OR status IN ('closing', 'closed')),
    ADD CONSTRAINT packets_remainder CHECK (remainder IS NULL OR remainder BETWEEN 0 AND total_amount),
    ADD CONSTRAINT packets_counted CHECK (claimed_count IS NULL OR claimed_count BETWEEN 0 AND share_count),
    ADD CONSTRAINT packets_life CHECK (expires_at > opens_at);

-- +goose Down
ALTER TABLE packets DROP CONSTRAINT packets_rejected, DROP CONSTRAINT packets_reason, DROP CONSTRAINT packets_books_late,
    DROP CONSTRAINT packets_remainder, DROP CONSTRAINT packets_counted, DROP CONSTRAINT packets_life;
