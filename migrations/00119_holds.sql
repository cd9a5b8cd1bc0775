-- Holds: what stops sends, closings and decisions of a provider, a packet or a payment until
-- it is released. Every transaction that would move money reads the active ones of its names.
-- A hold placed by a cause exists once; one by staff has an empty cause while it is active.
-- +goose Up
CREATE TABLE IF NOT EXISTS holds (
    id               BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    scope            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name             VARBINARY(32) NOT NULL COMMENT 'provider, packet id or payment id; empty: all',
    kind             VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    cause            VARBINARY(64) NOT NULL COMMENT 'the observation that placed it',
    reason           VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    placed_by        VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    placed_role      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    placed_at        DATETIME(3)   NOT NULL,
    release_by       VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'first of the two persons who release it',
    release_key_id   VARBINARY(16) NULL COMMENT 'the key of that person',
    release_role     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL,
    release_reason   VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    release_shown    BINARY(32)    NULL COMMENT 'hash of what that person was shown',
    release_at       DATETIME(3)   NULL,
    released_by      VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    released_at      DATETIME(3)   NULL COMMENT 'NULL: active',
    UNIQUE KEY holds_cause (scope, name, kind, cause),
    KEY holds_active (name, released_at),
    KEY holds_list (released_at),
    CONSTRAINT holds_scope CHECK (scope IN ('all', 'provider', 'packet', 'payment')),
    CONSTRAINT holds_all CHECK ((scope = 'all') = (name = '')),
    CONSTRAINT holds_release CHECK ((release_at IS NULL) = (release_by IS NULL) AND (release_at IS NULL) = (release_role IS NULL)
        AND (release_at IS NULL) = (release_reason IS NULL) AND (release_at IS NULL) = (release_shown IS NULL)),
    CONSTRAINT holds_released CHECK ((released_at IS NULL) = (released_by IS NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS holds;
