-- The number of the data format (dataformat.Number): what rows, Redis keys and
-- workflow histories mean. A process refuses a database with another number.
-- +goose Up
CREATE TABLE IF NOT EXISTS data_format (
    id     TINYINT NOT NULL PRIMARY KEY,
    number INT     NOT NULL,
    CONSTRAINT data_format_one CHECK (id = 1)
) ENGINE = InnoDB;
INSERT IGNORE INTO data_format (id, number) VALUES (1, 12);

-- +goose Down
DROP TABLE IF EXISTS data_format;
