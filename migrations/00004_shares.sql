-- One row a share (份), split beforehand; claimed by one UPDATE that can succeed
-- once. The unique key on (packet, user) is the second lock behind the grab
-- script, and counts the unclaimed shares of a packet quickly.
-- +goose Up
CREATE TABLE shares (
    packet_id   VARBINARY(20) NOT NULL,
    share_index INT           NOT NULL,
    amount      BIGINT        NOT NULL,
    user_id     VARBINARY(64) NULL,
    nickname    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    avatar_url  VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    recipient   VARBINARY(64) NULL COMMENT 'account the provider pays; NULL: the user id',
    claimed_at  DATETIME(3)   NULL,
    PRIMARY KEY (packet_id, share_index),
    UNIQUE KEY shares_claimer (packet_id, user_id),
    KEY shares_user (user_id, claimed_at, packet_id),
    CONSTRAINT shares_amount CHECK (amount > 0),
    CONSTRAINT shares_claimed CHECK ((user_id IS NULL) = (claimed_at IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE shares;
