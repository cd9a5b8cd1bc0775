-- Who claimed which share: one share a user and packet is the second lock behind
-- the grab script. It counts the claims of a packet and lists those of a user in
-- the order in which they are shown. As keys of the table of shares the same cost
-- two thirds of the time and half of the bytes in which a million shares are
-- written, because a share that nobody has yet takes its place in every key.
-- +goose Up
CREATE TABLE claims (
    packet_id   VARBINARY(20) NOT NULL,
    user_id     VARBINARY(64) NOT NULL,
    share_index INT           NOT NULL,
    app_id      VARBINARY(32) NOT NULL,
    claimed_at  DATETIME(3)   NOT NULL,
    PRIMARY KEY (packet_id, user_id),
    KEY claims_user (app_id, user_id, claimed_at, packet_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE claims;
