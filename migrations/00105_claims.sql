-- Claims: the acknowledged claims of users, with or without a share (rule R10). One claim a user,
-- packet and kind is the second lock behind the grab script. The table counts the claims of a packet
-- and lists those of a user. Keys of shares would cost more: a share without a claim takes a place in
-- every key, and a million of them take a third longer to write. epoch and seq are the position in
-- the history of the lane; NULL: not known, as of claims that the watch found.
-- +goose Up
CREATE TABLE IF NOT EXISTS claims (
    packet_id   VARBINARY(20) NOT NULL,
    user_id     VARBINARY(64) NOT NULL,
    kind        VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'conflict: acknowledged without a share',
    share_index INT           NOT NULL COMMENT 'as acknowledged; of a conflict another user may have it',
    amount      BIGINT        NOT NULL COMMENT 'as acknowledged',
    payment_id  VARBINARY(25) NOT NULL,
    app_id      VARBINARY(32) NOT NULL,
    nickname    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    avatar_url  VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    recipient   VARBINARY(64) NULL COMMENT 'account the provider pays; NULL: the user id',
    claimed_at  DATETIME(3)   NOT NULL,
    epoch       BIGINT        NULL,
    seq         BIGINT        NULL COMMENT 'the lane''s seq with this claim, in that epoch',
    PRIMARY KEY (packet_id, kind, user_id),
    KEY claims_user (app_id, user_id, claimed_at, packet_id),
    CONSTRAINT claims_known_kind CHECK (kind IN ('share', 'conflict')),
    CONSTRAINT claims_payment CHECK (SUBSTRING(payment_id, 1, 1) = IF(kind = 'share', 'p', 'h') AND
        SUBSTRING(payment_id, 2, 20) = packet_id),
    CONSTRAINT claims_amount CHECK (amount > 0),
    CONSTRAINT claims_seq CHECK ((epoch IS NULL) = (seq IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS claims;
