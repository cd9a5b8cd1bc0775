-- Share conflicts (rule R10): acknowledged claims that cannot be recorded, because another user
-- has the share or the books of the packet are closed. One row a user and packet: a repeat
-- of the claim finds the payment (h, a running number) of the first time.
-- +goose Up
CREATE TABLE IF NOT EXISTS promises (
    packet_id   VARBINARY(20) NOT NULL,
    user_id     VARBINARY(64) NOT NULL,
    payment_id  VARBINARY(25) NOT NULL,
    app_id      VARBINARY(32) NOT NULL,
    share_index INT           NOT NULL COMMENT 'as acknowledged; another user has it',
    nickname    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    avatar_url  VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    recipient   VARBINARY(64) NULL COMMENT 'account the provider pays; NULL: the user id',
    claimed_at  DATETIME(3)   NOT NULL,
    PRIMARY KEY (packet_id, user_id),
    UNIQUE KEY promises_payment (payment_id),
    KEY promises_user (app_id, user_id, claimed_at, packet_id),
    CONSTRAINT promises_payment_kind CHECK (SUBSTRING(payment_id, 1, 1) = 'h' AND SUBSTRING(payment_id, 2, 20) = packet_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS promises;
