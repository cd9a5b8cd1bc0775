-- Whether whoever grabs has to bring a ticket that the packet's app signed. Never with a
-- list of users: that is another way to say who may grab.
-- +goose Up
ALTER TABLE packets
    ADD COLUMN tickets BOOLEAN NOT NULL DEFAULT FALSE COMMENT 'grabs need a ticket of the app',
    ADD CONSTRAINT packets_tickets CHECK (tickets = FALSE OR eligible IS NULL);

-- +goose Down
ALTER TABLE packets
    DROP CONSTRAINT packets_tickets,
    DROP COLUMN tickets;
