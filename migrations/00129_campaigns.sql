-- Campaigns: one packet every day, from a template. The row says which day is next and
-- whether it is wanted; the schedule in Temporal is derived from the row and only gives the
-- time to look.
-- +goose Up
CREATE TABLE IF NOT EXISTS campaigns (
    id           VARBINARY(20) NOT NULL PRIMARY KEY,
    app_id       VARBINARY(32) NOT NULL,
    name         VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    salt         VARBINARY(32) NOT NULL COMMENT 'decides the ids of its packets',
    zone         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    opens_minute SMALLINT      NOT NULL COMMENT 'of the day, at which packets open',
    starts_on    CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    ends_on      CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'NULL: open end',
    template     BLOB          NOT NULL COMMENT 'JSON: campaign.Template',
    eligible     MEDIUMBLOB    NULL COMMENT 'JSON array of user ids; NULL: everyone',
    body_hash    CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    next_day     CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the day that is decided next',
    next_opens   DATETIME(3)   NULL COMMENT 'when the packet of next_day opens',
    revision     INT           NOT NULL DEFAULT 1 COMMENT 'rises with every change of status',
    unsynced     BOOLEAN       NULL COMMENT 'TRUE while its schedule does not follow the status',
    created_at   DATETIME(3)   NOT NULL,
    updated_at   DATETIME(3)   NOT NULL,
    ended_at     DATETIME(3)   NULL,
    KEY campaigns_app (app_id, created_at, id),
    KEY campaigns_next (status, next_opens),
    KEY campaigns_unsynced (unsynced),
    KEY campaigns_running (ended_at, id),
    KEY campaigns_created (created_at, id),
    KEY campaigns_status (status, created_at, id),
    CONSTRAINT campaigns_status CHECK (status IN ('active', 'paused', 'ended')),
    CONSTRAINT campaigns_minute CHECK (opens_minute BETWEEN 0 AND 1439),
    CONSTRAINT campaigns_next_agree CHECK ((next_day IS NULL) = (next_opens IS NULL) AND (status = 'active') = (next_day IS NOT NULL)),
    CONSTRAINT campaigns_ended CHECK ((status = 'ended') = (ended_at IS NOT NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS campaigns;
