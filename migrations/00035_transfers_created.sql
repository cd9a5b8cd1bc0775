-- The postings of a day, for the comparison with the provider's statement; and
-- the postings of one order number.
-- +goose Up
ALTER TABLE transfers ADD KEY transfers_created (created_at, id), ADD KEY transfers_order (order_no);

-- +goose Down
ALTER TABLE transfers DROP KEY transfers_created, DROP KEY transfers_order;
