-- A payment that waits for its provider keeps its row although its run knows: that is
-- not what people are called for, and not worth being told every five seconds.
-- +goose Up
ALTER TABLE outbox ADD COLUMN reached_at DATETIME(3) NULL COMMENT 'when its run was started or woken last; NULL: not that anybody knows';

-- +goose Down
ALTER TABLE outbox DROP COLUMN reached_at;
