-- What became of the days of campaigns, each decided once.
-- +goose Up
CREATE TABLE campaign_days (
    campaign_id VARBINARY(20) NOT NULL,
    day         CHAR(10)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in the time zone of the campaign',
    status      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    packet_id   VARBINARY(20) NOT NULL,
    opens_at    DATETIME(3) NOT NULL,
    decided_at  DATETIME(3) NOT NULL,
    PRIMARY KEY (campaign_id, day),
    UNIQUE KEY campaign_days_packet (packet_id),
    KEY campaign_days_decided (decided_at),
    CONSTRAINT campaign_days_status CHECK (status IN ('made', 'missed'))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE campaign_days;
