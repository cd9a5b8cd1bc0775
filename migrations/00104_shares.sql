-- Shares (份): one row each, split beforehand, claimed by one UPDATE that can succeed
-- once. Its claim is in claims.
-- +goose Up
CREATE TABLE IF NOT EXISTS shares (
    packet_id   VARBINARY(20) NOT NULL,
    share_index INT           NOT NULL,
    amount      BIGINT        NOT NULL,
    user_id     VARBINARY(64) NULL,
    claimed_at  DATETIME(3)   NULL,
    PRIMARY KEY (packet_id, share_index),
    CONSTRAINT shares_amount CHECK (amount > 0),
    CONSTRAINT shares_claimed CHECK ((user_id IS NULL) = (claimed_at IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS shares;
