-- Days of campaigns, each decided once. A day is reserved (making) before its packet is
-- made: a pause or an end comes before the reservation or after it.
-- +goose Up
CREATE TABLE IF NOT EXISTS campaign_days (
    campaign_id VARBINARY(20) NOT NULL,
    day         CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in the time zone of the campaign',
    status      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    packet_id   VARBINARY(20) NOT NULL,
    opens_at    DATETIME(3)   NOT NULL,
    decided_at  DATETIME(3)   NOT NULL COMMENT 'of one that is being made: when it was reserved',
    PRIMARY KEY (campaign_id, day),
    UNIQUE KEY campaign_days_packet (packet_id),
    KEY campaign_days_decided (decided_at),
    KEY campaign_days_making (status, campaign_id, day),
    CONSTRAINT campaign_days_statuses CHECK (status IN ('making', 'made', 'missed'))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS campaign_days;
