-- Where in its lane's history a share was won (rule R9): how many of the grabs that a
-- lost or older Redis does not know are in the books. NULL: not known, as of claims
-- that the watch found among the winners.
-- +goose Up
ALTER TABLE claims
    ADD COLUMN epoch BIGINT NULL,
    ADD COLUMN seq   BIGINT NULL COMMENT 'the lane''s seq with this claim, in that epoch',
    ADD CONSTRAINT claims_seq CHECK ((epoch IS NULL) = (seq IS NULL));

-- +goose Down
ALTER TABLE claims
    DROP CONSTRAINT claims_seq,
    DROP COLUMN epoch,
    DROP COLUMN seq;
