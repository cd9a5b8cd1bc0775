-- A decision that is carried out by asking first (a cancel) keeps the status until it is done; and whether two
-- persons agreed to a new number although the provider no longer knows the last one (rule R5).
-- On a big table: the columns alone would be instant, but with the check MySQL copies the whole table, and writes to
-- it wait until it is done; stop the workers and run it at a quiet time.

-- +goose Up
ALTER TABLE payments
    ADD COLUMN deciding          VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    ADD COLUMN new_number_agreed BOOLEAN NOT NULL DEFAULT FALSE,
    ADD CONSTRAINT payments_deciding CHECK (deciding = '' OR deciding = 'cancel' AND status IN ('failed', 'returned'));

-- +goose Down
ALTER TABLE payments DROP CONSTRAINT payments_deciding, DROP COLUMN new_number_agreed, DROP COLUMN deciding;
