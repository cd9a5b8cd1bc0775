-- The payments of one packet in the order in which they are listed: a packet may
-- have a million.
-- +goose Up
ALTER TABLE payments ADD KEY payments_packet_list (packet_id, kind, created_at, id);

-- +goose Down
ALTER TABLE payments DROP KEY payments_packet_list;
