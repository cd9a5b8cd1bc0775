-- A number is there exactly when an attempt is; only a payout has a share; only
-- a payout can be cancelled, and a charge never comes back (rules R4, R5).
-- +goose Up
ALTER TABLE payments
    ADD CONSTRAINT payments_numbered CHECK ((attempt = 0) = (order_no IS NULL) AND attempt BETWEEN 0 AND 1023),
    ADD CONSTRAINT payments_share CHECK ((kind = 'p') = (share_index >= 0)),
    ADD CONSTRAINT payments_charge CHECK (kind <> 'c' OR status NOT IN ('returned', 'cancelled', 'paid_outside')),
    ADD CONSTRAINT payments_cancelled CHECK (status <> 'cancelled' OR kind IN ('p', 'h'));

-- +goose Down
ALTER TABLE payments DROP CONSTRAINT payments_numbered, DROP CONSTRAINT payments_share, DROP CONSTRAINT payments_charge, DROP CONSTRAINT payments_cancelled;
