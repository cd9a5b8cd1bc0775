-- A day of a campaign is reserved before its packet is made: a pause or an end comes
-- before that or after it, and a day that cannot be decided holds up no other.
-- +goose Up
ALTER TABLE campaign_days
    DROP CONSTRAINT campaign_days_status,
    ADD CONSTRAINT campaign_days_statuses CHECK (status IN ('making', 'made', 'missed')),
    MODIFY COLUMN decided_at DATETIME(3) NOT NULL COMMENT 'of one that is being made: when it was reserved',
    ADD KEY campaign_days_making (status, campaign_id, day);

-- +goose Down
-- Refused while a day is being made: nobody would make it any more.
ALTER TABLE campaign_days
    DROP KEY campaign_days_making,
    DROP CONSTRAINT campaign_days_statuses,
    ADD CONSTRAINT campaign_days_status CHECK (status IN ('made', 'missed'));
