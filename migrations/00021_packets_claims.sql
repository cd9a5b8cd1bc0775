-- What was claimed of a packet, written when its books are closed: nobody has to
-- read a million shares to tell it. best_share and last_share stay NULL when
-- nobody claimed anything.
-- +goose Up
ALTER TABLE packets
    ADD COLUMN claimed_count INT NULL COMMENT 'set with books_closed_at',
    ADD COLUMN best_share    INT NULL COMMENT 'share_index of the best luck',
    ADD COLUMN last_share    INT NULL COMMENT 'largest share_index that was claimed';

-- +goose Down
ALTER TABLE packets DROP COLUMN claimed_count, DROP COLUMN best_share, DROP COLUMN last_share;
