-- Claims: which user claimed which share. One share a user and packet is the second lock
-- behind the grab script. The table counts the claims of a packet and lists those of a user.
-- Keys of shares would cost more: a share without a claim takes a place in every key, and a
-- million of them take a third longer to write. epoch and seq are the position in the
-- history of the lane (rule R9); NULL: not known, as of claims that the watch found.
-- +goose Up
CREATE TABLE IF NOT EXISTS claims (
    packet_id   VARBINARY(20) NOT NULL,
    user_id     VARBINARY(64) NOT NULL,
    share_index INT           NOT NULL,
    app_id      VARBINARY(32) NOT NULL,
    claimed_at  DATETIME(3)   NOT NULL,
    epoch       BIGINT        NULL,
    seq         BIGINT        NULL COMMENT 'the lane''s seq with this claim, in that epoch',
    PRIMARY KEY (packet_id, user_id),
    KEY claims_user (app_id, user_id, claimed_at, packet_id),
    CONSTRAINT claims_seq CHECK ((epoch IS NULL) = (seq IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS claims;
