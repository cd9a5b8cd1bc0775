-- Shares (份): one row each, split beforehand, claimed by one UPDATE that can succeed
-- once. app_id belongs to the user: the same user id in two apps is two users.
-- +goose Up
CREATE TABLE IF NOT EXISTS shares (
    packet_id   VARBINARY(20) NOT NULL,
    share_index INT           NOT NULL,
    amount      BIGINT        NOT NULL,
    user_id     VARBINARY(64) NULL,
    nickname    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    avatar_url  VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    recipient   VARBINARY(64) NULL COMMENT 'account the provider pays; NULL: the user id',
    claimed_at  DATETIME(3)   NULL,
    app_id      VARBINARY(32) NULL COMMENT 'set with user_id',
    PRIMARY KEY (packet_id, share_index),
    CONSTRAINT shares_amount CHECK (amount > 0),
    CONSTRAINT shares_claimed CHECK ((user_id IS NULL) = (claimed_at IS NULL)),
    CONSTRAINT shares_claimed_app CHECK ((user_id IS NULL) = (app_id IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS shares;
