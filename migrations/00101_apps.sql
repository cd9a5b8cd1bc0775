-- Apps: backends that create packets. id_salt never changes: every packet id derives
-- from it (rule R1).
-- +goose Up
CREATE TABLE IF NOT EXISTS apps (
    id         VARBINARY(32) NOT NULL PRIMARY KEY,
    name       VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    id_salt    VARBINARY(32) NOT NULL,
    created_at DATETIME(3)   NOT NULL
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS apps;
