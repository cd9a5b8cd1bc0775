-- Lists of payments by amount, and counts and sums without a look at the rows: amount
-- is the last column of the keys that lists without a name to look for go by.
-- Up to 10,000 payments of a filter are counted, so a sum reads at most so many entries.
-- On a big table: both servers build the keys beside writes; it takes minutes on tens of millions of rows.
-- +goose Up
ALTER TABLE payments
    DROP KEY payments_created,
    DROP KEY payments_status,
    ADD KEY payments_created (kind, created_at, id, amount),
    ADD KEY payments_status (kind, status, created_at, id, amount),
    ADD KEY payments_amount (kind, amount, created_at, id);

-- +goose Down
ALTER TABLE payments
    DROP KEY payments_amount,
    DROP KEY payments_created,
    DROP KEY payments_status,
    ADD KEY payments_created (kind, created_at, id),
    ADD KEY payments_status (kind, status, created_at, id);
