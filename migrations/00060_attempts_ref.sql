-- People who talk to a provider are told its own number of a payment, and look
-- for the payment by it.
-- +goose Up
ALTER TABLE attempts ADD KEY attempts_ref (provider_ref);

-- +goose Down
ALTER TABLE attempts DROP KEY attempts_ref;
