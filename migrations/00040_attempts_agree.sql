-- What an attempt says of itself: booked means ended, only what was booked comes
-- back, its number is its payment's.
-- +goose Up
ALTER TABLE attempts
    ADD CONSTRAINT attempts_booked CHECK (booked = FALSE OR ended_at IS NOT NULL),
    ADD CONSTRAINT attempts_returned CHECK (return_booked = FALSE OR booked = TRUE),
    ADD CONSTRAINT attempts_op CHECK (op IN ('charge', 'transfer', 'refund')),
    ADD CONSTRAINT attempts_number CHECK (no BETWEEN 1 AND 1023 AND asks >= 0 AND SUBSTRING(order_no, 1, 25) = payment_id);

-- +goose Down
ALTER TABLE attempts DROP CONSTRAINT attempts_booked, DROP CONSTRAINT attempts_returned, DROP CONSTRAINT attempts_op, DROP CONSTRAINT attempts_number;
