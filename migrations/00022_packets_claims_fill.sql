-- The same for packets whose books were closed before there were the columns.
-- +goose Up
UPDATE packets p SET
    claimed_count = (SELECT COUNT(*) FROM shares s WHERE s.packet_id = p.id AND s.user_id IS NOT NULL),
    best_share = (SELECT s.share_index FROM shares s WHERE s.packet_id = p.id AND s.user_id IS NOT NULL
        ORDER BY s.amount DESC, s.claimed_at, s.share_index LIMIT 1),
    last_share = (SELECT MAX(s.share_index) FROM shares s WHERE s.packet_id = p.id AND s.user_id IS NOT NULL)
WHERE p.books_closed_at IS NOT NULL AND p.claimed_count IS NULL;

-- +goose Down
UPDATE packets SET claimed_count = NULL, best_share = NULL, last_share = NULL WHERE claimed_count IS NOT NULL;
