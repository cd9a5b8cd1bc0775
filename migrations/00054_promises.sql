-- Promises (rule R10): claims that were acknowledged and cannot be booked, because
-- another has the share or the books are closed. One row a user and packet: a
-- repeat of the claim finds the payment (h, a running number) that it got first.
-- It keeps what the user was told beside the amount; the payment has no share.
-- +goose Up
CREATE TABLE promises (
    packet_id   VARBINARY(20) NOT NULL,
    user_id     VARBINARY(64) NOT NULL,
    payment_id  VARBINARY(25) NOT NULL,
    app_id      VARBINARY(32) NOT NULL,
    share_index INT           NOT NULL COMMENT 'as told; it is not his',
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
DROP TABLE promises;
