-- Decisions of people about payments. A second person's approval is part of the row.
-- +goose Up
CREATE TABLE decisions (
    id             VARBINARY(26) NOT NULL PRIMARY KEY,
    payment_id     VARBINARY(25) NOT NULL,
    kind           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason         VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    decided_by     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    role           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status         VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'waiting, carried_out, rejected or expired',
    approval_id    VARBINARY(26) NULL,
    expires_at     DATETIME(3)   NULL,
    approved_by    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    approve_reason VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    created_at     DATETIME(3)   NOT NULL,
    ended_at       DATETIME(3)   NULL,
    KEY decisions_payment (payment_id, created_at),
    KEY decisions_waiting (status, created_at),
    UNIQUE KEY decisions_approval (approval_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE decisions;
